package hosttest

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/mcpd/mcpd/scripting"
)

// greeter is a small host that keeps the contract.
type greeter struct{ secret string }

func (g greeter) Do(ctx context.Context, _ int, op string, payload []byte) ([]byte, error) {
	var question struct {
		Name *string `json:"name"`
	}
	switch {
	case op == "log":
		return nil, nil
	case op != "greet":
		return nil, &scripting.HostError{Code: scripting.NotGranted, Message: "there is no such operation"}
	case json.Unmarshal(payload, &question) != nil || question.Name == nil:
		return nil, &scripting.HostError{Code: scripting.Invalid, Message: "a name is needed"}
	case *question.Name == "nobody":
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return json.Marshal("hello " + *question.Name)
}

func TestAHostThatKeepsTheContractPasses(t *testing.T) {
	Suite{
		New: func(*testing.T) scripting.Host { return greeter{secret: "s3cret"} },
		Operations: []Operation{
			{Op: "greet", Payload: `{"name":"world"}`, Hung: `{"name":"nobody"}`},
			{Op: "log", Payload: `{"level":"info","message":"x"}`, Told: true},
		},
		Secrets: []string{"s3cret"},
	}.Run(t)
}
