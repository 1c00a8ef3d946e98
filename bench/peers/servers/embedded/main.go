// Embedded is a program that embeds mcpd and offers tools in Go.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/mcpd/mcpd/bench/peers/servers/workload"
	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/serve"
)

func main() {
	if err := run(workload.Parse()); err != nil {
		log.Fatal(err)
	}
}

func run(o workload.Options) error {
	options := engine.Options{Name: "embedded", Version: "1"}
	if o.Transport == "stdio" {
		options.Transport = "stdio"
	}
	if o.Config != "" {
		options.Files.Config = engine.Dir(o.Config)
	}
	s, err := engine.New(options)
	if err != nil {
		return err
	}
	if err := addTools(s, o.Tools); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	return serve.New(s, serve.Options{
		Address: "127.0.0.1:0", OnListen: workload.Announce, In: os.Stdin, Out: os.Stdout,
	}).Run(ctx)
}

func addTools(s *engine.Server, count int) error {
	add := func(_ context.Context, _ identity.Agent, in workload.AddIn) (workload.AddOut, error) {
		return workload.Add(in), nil
	}
	blob := func(context.Context, identity.Agent, struct{}) (call.Text, error) {
		return call.Text(workload.Blob()), nil
	}
	if err := engine.AddTool(s, engine.ToolOptions{Name: "add", Description: workload.AddDescription}, add); err != nil {
		return err
	}
	if err := engine.AddTool(s, engine.ToolOptions{Name: "blob", Description: workload.BlobDescription}, blob); err != nil {
		return err
	}
	for _, name := range workload.Fillers(count) {
		if err := engine.AddTool(s, engine.ToolOptions{Name: name, Description: workload.FillerDescription}, add); err != nil {
			return err
		}
	}
	return nil
}
