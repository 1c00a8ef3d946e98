package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/serve"
)

func TestScript_grantedBooks(t *testing.T) {
	server := start(t)
	for _, test := range []struct {
		tool string
		args map[string]any
		want string
	}{
		{"in_stock", map[string]any{"article": "lamp"}, `{"counts":{"north":4,"south":7}}`},
		{"in_stock", map[string]any{"article": "crown"}, `{"counts":{"north":0,"south":0}}`},
		{"peek", map[string]any{"warehouse": "north"}, `0`},
		{"peek", map[string]any{"warehouse": "vault"}, `EXECUTION_ERROR: this warehouse is not granted`},
	} {
		result, err := server.Call(t.Context(), test.tool, test.args)
		got := string(result.Value)
		if err != nil {
			got = err.Error()
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s %v (-want +got)\n%s", test.tool, test.args, diff)
		}
	}
}

func TestExample(t *testing.T) {
	results, err := start(t).RunTests(t.Context(), nil)
	if err != nil || len(results) != 2 {
		t.Fatalf("got %d tests, %v, want 2", len(results), err)
	}
	for _, r := range results {
		for _, failure := range r.Failures {
			t.Errorf("%s: %s: %s", r.Range, r.Name, failure)
		}
	}
}

func TestGrant_invalid(t *testing.T) {
	for grant, want := range map[string]string{
		`module "stock" { warehouses = ["moon"] }`: `there is no warehouse "moon"`,
		`module "stock" {}`:                        `warehouses must be a list of names`,
		`module "stack" {}`:                        `there is no module "stack"`,
	} {
		text := "tool \"t\" {\n  allow {\n    " + grant + "\n  }\n  run = \"return 1;\"\n}\n"
		server, err := newServer(fstest.MapFS{"t.hcl": &fstest.MapFile{Data: []byte(text), Mode: 0o644}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = server.Load(t.Context())
		if err == nil || !strings.Contains(err.Error(), "t.hcl:3:5") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", grant, err)
		}
		if err := server.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestProgram_stops(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := run(ctx, serve.Options{Address: "127.0.0.1:0"}); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// start returns a server of the example's files.
func start(t *testing.T) *engine.Server {
	t.Helper()
	server, err := newServer(engine.Dir("tools.d"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return server
}
