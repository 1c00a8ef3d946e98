// Command embed serves Go tools and tool files from one binary. Scripts of the files
// run in worker processes, which the command starts itself.
package main

import (
	"context"
	"embed"
	"log"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/scripting/worker"
	"github.com/mcpd/mcpd/serve"
)

//go:embed *.hcl
var files embed.FS

type order struct {
	ID string `json:"id" jsonschema:"the number of the order"`
}

func track(ctx context.Context, agent identity.Agent, in order) (map[string]string, error) {
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
	executor, err := worker.NewExecutor(worker.Options{Logger: slog.Default()}, self, "embed", "worker")
	if err != nil {
		return err
	}
	server, err := engine.New(engine.Options{
		Name: "shop", Files: engine.Files{Tools: files}, Scripts: engine.Scripts{Executor: executor},
		Policies: []engine.Policy{named}, Logger: slog.Default(),
	})
	if err != nil {
		return err
	}
	if err := engine.AddTool(server, engine.ToolOptions{Name: "track_order", Description: "Tells where an order is."}, track); err != nil {
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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	listening := func(a net.Addr) { slog.Info("listening", "address", a.String()) }
	if err := run(ctx, self, serve.Options{OnListen: listening}); err != nil {
		log.Fatal(err)
	}
}
