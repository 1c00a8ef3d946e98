package engine_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
)

// giveBack is a tool that uses its caller.
func giveBack(ctx context.Context, _ identity.Agent, in struct{ Order string }) (string, error) {
	caller, _ := engine.CallerFromContext(ctx)
	who := caller.Principal
	if who.Kind == identity.KindAnonymous {
		return "", errors.New("sign in first")
	}
	return in.Order + " is refunded by " + who.ID, nil
}

// staffOnly allows the principals of one issuer.
func staffOnly(in engine.PolicyInput) engine.Decision {
	who := in.Caller.Principal
	if who.Kind != identity.KindToken || who.Issuer != "https://login.example.com" {
		return engine.Deny("staff only")
	}
	return engine.Allow()
}

func ExampleCallerFromContext() {
	server, err := engine.New(engine.Options{Name: "shop", Policies: []engine.Policy{staffOnly}})
	if err != nil {
		panic(err)
	}
	defer server.Close(context.Background())
	if err := engine.AddTool(server, engine.ToolOptions{Name: "refund"}, giveBack); err != nil {
		panic(err)
	}
	if _, err := server.Load(context.Background()); err != nil {
		panic(err)
	}
	request := call.Request{Name: "refund", Arguments: []byte(`{"Order":"O-7"}`)}
	fmt.Println(server.Execute(context.Background(), request).Err)
	request.Caller.Principal = identity.Principal{ID: "ada", Kind: identity.KindToken, Issuer: "https://login.example.com"}
	fmt.Println(string(server.Execute(context.Background(), request).Value))
	// Output:
	// POLICY_DENIED: staff only
	// "O-7 is refunded by ada"
}
