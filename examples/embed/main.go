// Command embed serves Go tools and tool files from one binary. Scripts of the files
// run in worker processes, which the command starts itself.
package main

import (
	"context"
	"embed"
	"log"
	"os"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/scripting/worker"
	"github.com/mcpd/mcpd/serve"
)

//go:embed *.hcl
var files embed.FS

func track(ctx context.Context, agent identity.Agent, in struct{ ID string }) (map[string]string, error) {
	caller, _ := engine.CallerFromContext(ctx)
	return map[string]string{"state": in.ID + " is on its way to " + agent.AgentID, "principal": caller.Principal.ID}, nil
}

func named(in engine.PolicyInput) engine.Decision {
	if in.Caller.Agent.AgentID == identity.AnonymousAgent {
		return engine.Deny("say who you are")
	}
	return engine.Allow()
}

func run(ctx context.Context, self string, o serve.Options) error {
	executor, err := worker.NewExecutor(worker.Options{}, self, "embed", "worker")
	if err != nil {
		return err
	}
	server, err := engine.New(engine.Options{Name: "shop", Files: engine.Files{Tools: files}, Scripts: engine.Scripts{Executor: executor}, Policies: []engine.Policy{named}})
	if err != nil {
		return err
	}
	if err := engine.AddTool(server, engine.ToolOptions{Name: "track_order"}, track); err != nil {
		return err
	}
	return serve.New(server, o).Run(ctx)
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "worker" {
		if err := worker.Main(os.Stdin, os.Stdout); err != nil {
			log.Fatal(err)
		}
		return
	}
	self, err := os.Executable()
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(run(context.Background(), self, serve.Options{}))
}
