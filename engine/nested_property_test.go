package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
)

// Random call trees have calls that fail, are denied, do not exist or time out. The hook events
// must be consistent.
func TestNested_hooks(t *testing.T) {
	var mu sync.Mutex
	starts, ends, parents := map[string]int{}, map[string]int{}, map[string]call.Event{}
	s := server(t, engine.Options{
		Hooks: []engine.Hook{func(_ context.Context, e call.Event) {
			mu.Lock()
			defer mu.Unlock()
			if e.Phase == call.Start {
				starts[e.CallID]++
				parents[e.CallID] = e
			} else {
				ends[e.CallID]++
			}
		}},
		Files: engine.Files{Tools: files("desk.hcl", resultTools, "tree.hcl", `
tool "tree" {
  timeout = "20s"
  input "seed" { type = integer }
  allow {
    call { tools = ["*"] }
  }
  run = <<JS
    const leaves = ["object", "text", "throws", "denied", "hidden", "slow", "asks", "nowhere", "broken"];
    const of = (seed) => (seed * 48271 + 11) % 2147483647;
    const calls = [];
    for (let seed = of(input.seed), n = seed % 4; n > 0; n--, seed = of(seed)) {
      const call = seed % 3 === 0 ? tools.tree({ seed }) : tools[leaves[seed % leaves.length]]({ id: "a" });
      calls.push(seed % 5 === 0 ? call : call.catch((e) => e.code));
    }
    await Promise.allSettled(calls);
    if (input.seed % 7 === 0) await Promise.all(calls);
    return calls.length;
  JS
}`)}})
	for seed := range 60 {
		s.Execute(t.Context(), call.Request{Name: "tree", Arguments: json.RawMessage(fmt.Sprintf(`{"seed":%d}`, seed)), Caller: anonymous()})
	}
	nested := 0
	for id, e := range parents {
		if starts[id] != 1 || ends[id] != 1 {
			t.Errorf("%s of %s has %d starts and %d ends", id, e.Tool, starts[id], ends[id])
		}
		if e.ParentID == "" {
			continue
		}
		nested++
		parent := parents[e.ParentID]
		if e.Via != call.ViaTool || e.Depth != parent.Depth+1 || e.Parent != parent.Tool || e.Revision != parent.Revision {
			t.Errorf("%+v is nested in %+v", e, parent)
		}
	}
	if nested < 60 || len(ends) != len(starts) {
		t.Errorf("%d nested calls, %d starts, %d ends", nested, len(starts), len(ends))
	}
}

func TestNested_hostileArguments(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Tools: files("desk.hcl", resultTools, "lab.hcl", caller(`
    const cyclic = {};
    cyclic.self = cyclic;
    let deep = {};
    for (let i = 0; i < 60; i++) deep = { deep };
    const told = [];
    for (const args of [cyclic, deep, { id: "x".repeat(20e6) }, { id: 10n }, { get id() { throw new Error("got") } }, new Proxy({}, { ownKeys() { throw new Error("kept") } }),
      { id: "\ud800" }, { toJSON() { return { id: "json" } } }, new Map(), Symbol("s"), () => 1, { __proto__: { id: "inherited" } }, Array(1e3).fill({}), { id: "\u202e" }]) {
      try {
        told.push(JSON.stringify(await tools.object(args)).slice(0, 20));
      } catch (e) {
        told.push(e.code ?? e.name);
      }
    }
    for (const name of ["__proto__", "constructor", "toString", "then", "valueOf", "", "x".repeat(1e5), "\u202ename", "a\u0000", "\ud800", "*", "../object"]) {
      try {
        told.push(name in tools ? await tools[name]() : "absent");
      } catch (e) {
        told.push(e.code ?? e.name);
      }
    }
    return told;`))}})
	got := s.Execute(t.Context(), call.Request{Name: "outer", Caller: anonymous()})
	if got.Err != nil {
		t.Fatal(got.Err)
	}
	var told []string
	if err := json.Unmarshal(got.Value, &told); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"TypeError", "INVALID_INPUT", "TypeError", "INVALID_INPUT", "Error", "Error", "TypeError", `{"id":"json"}`, "INVALID_INPUT", "TypeError", "TypeError", "INVALID_INPUT", "TypeError", "{\"id\":\"\u202e\"}",
		"absent", "absent", "absent", "absent", "absent", "TOOL_NOT_FOUND", "TOOL_NOT_FOUND", "TOOL_NOT_FOUND", "TOOL_NOT_FOUND", "TOOL_NOT_FOUND", "TOOL_NOT_FOUND", "TOOL_NOT_FOUND",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if slices.Contains(told, "") {
		t.Error("a failure has no name")
	}
}
