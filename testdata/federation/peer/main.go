// Command peer is the client that the official conformance suite tests: mcpd,
// with the server of a scenario as its only upstream.
//
//	peer URL
//
// The suite passes the scenario in environment variables. The calls are made as
// by callers of mcpd, through the engine, package federation and the client of
// package upstream.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// patience is the timeout of a scenario.
const patience = 20 * time.Second

// The environment variables of the suite.
const (
	scenarioVariable = "MCP_CONFORMANCE_SCENARIO"
	contextVariable  = "MCP_CONFORMANCE_CONTEXT"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: peer URL")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := run(ctx, os.Getenv(scenarioVariable), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

// scenarios have special steps; all others use each offer once.
var scenarios = map[string]func(*proxy, context.Context) error{
	"initialize":                       (*proxy).nothing,
	"json-schema-2020-12-preservation": (*proxy).echo,
}

// run runs a scenario.
func run(ctx context.Context, scenario, url string) (err error) {
	if scenario == "http-custom-headers" {
		return wanted(ctx, url)
	}
	p, err := open(ctx, scenario, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.server.Close(ctx)) }()
	if do := scenarios[scenario]; do != nil {
		return do(p, ctx)
	}
	return p.everything(ctx)
}
