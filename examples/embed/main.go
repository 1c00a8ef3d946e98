// Command embed serves a tool in Go and tools in files from one binary.
package main

import (
	"context"
	"embed"
	"log"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/serve"
)

//go:embed *.hcl
var files embed.FS

func track(_ context.Context, agent identity.Agent, in struct{ ID string }) (map[string]string, error) {
	return map[string]string{"state": in.ID + " is on its way to " + agent.AgentID}, nil
}

func named(agent identity.Agent, _ string, _ map[string]any) engine.Decision {
	if agent.AgentID == identity.AnonymousAgent {
		return engine.Deny("say who you are")
	}
	return engine.Allow()
}

func run(ctx context.Context, o serve.Options) error {
	server, err := engine.New(engine.Options{Name: "shop", Tools: files, Policies: []engine.Policy{named}})
	if err != nil {
		return err
	}
	if err := engine.AddTool(server, engine.ToolOptions{Name: "track_order"}, track); err != nil {
		return err
	}
	return serve.New(server, o).Run(ctx)
}

func main() { log.Fatal(run(context.Background(), serve.Options{})) }
