package examples_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
)

func TestNestedCall_hiddenTool(t *testing.T) {
	var mu sync.Mutex // concurrent calls run hooks concurrently
	var told []string
	server := orders(t, func(_ context.Context, e call.Event) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, strings.TrimSpace(strings.Join([]string{string(e.Phase), e.Tool, string(e.Via), e.Parent}, " ")))
	})
	result, err := server.Call(t.Context(), "total", map[string]any{"orders": []string{"O-7", "O-0", "O-12"}})
	if err != nil || string(result.Value) != `{"cents":1900,"missing":["O-0"]}` {
		t.Errorf("got %s, %v", result.Value, err)
	}
	if _, err := server.Call(t.Context(), "total", map[string]any{"orders": []string{"7"}}); err == nil || !strings.Contains(err.Error(), "/id must match") {
		t.Errorf("invalid order: %v", err)
	}
	told = nil
	if _, err := server.Call(t.Context(), "get_order", map[string]any{"id": "O-7"}); err == nil || err.Error() != "POLICY_DENIED: Ask for the total" {
		t.Errorf("got %v", err)
	}
	if _, err := server.Call(t.Context(), "total", map[string]any{"orders": []string{"O-7"}}); err != nil {
		t.Error(err)
	}
	want := []string{
		"start get_order client", "error get_order client",
		"start total client", "start get_order tool total", "end get_order tool total", "end total client",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("hook events (-want +got)\n%s", diff)
	}
}

func TestMocks(t *testing.T) {
	passes(t, orders(t, func(context.Context, call.Event) {}), 2)
}

// orders returns a server of the example with a hook. Sequential calls run the hook in
// sequence too.
func orders(t *testing.T, hook engine.Hook) *engine.Server {
	t.Helper()
	server, err := engine.New(engine.Options{Name: "orders", Files: engine.Files{Tools: engine.Dir("calls/tools.d")}, Hooks: []engine.Hook{hook}})
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
