package scripting

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/js/esbuild"
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // the heaps are small, and their collection takes a quarter of the processor time
	goleak.VerifyTestMain(m)
}

// inFile returns a script at line 5, column 1 of tools.d/t.hcl.
func inFile(body string) diag.Text {
	return diag.NewText("tools.d/t.hcl", body, diag.Pos{Line: 5, Column: 1, Byte: 100})
}

// tool returns the source of a tool with one grant and two variables.
func tool(body string) Source {
	return Source{
		Name: "t", Text: inFile(body), Objects: []Object{{Kind: "http", Name: "crm"}},
		Transpiler: esbuild.New(),
		Vars:       json.RawMessage(`{"stage":"dev","nested":{"list":[1]}}`),
	}
}

func compiled(t testing.TB, src Source) *Program {
	t.Helper()
	p, list := Compile(src)
	if list.HasErrors() {
		t.Fatalf("compile: %v", list)
	}
	return p
}

// fakeHost implements each operation with a function, and records its calls.
type fakeHost struct {
	answer func(ctx context.Context, op string, payload []byte) ([]byte, error)

	mu    sync.Mutex
	asked []string
}

func (h *fakeHost) Do(ctx context.Context, seq int, op string, payload []byte) ([]byte, error) {
	h.mu.Lock()
	h.asked = append(h.asked, op+" "+string(payload))
	h.mu.Unlock()
	if h.answer == nil {
		return nil, nil
	}
	return h.answer(ctx, op, payload)
}

func (h *fakeHost) calls() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.asked...)
}

// call returns a call of a program with fixed agent and info.
func call(p *Program, input string) Call {
	return Call{
		Program: p, Input: []byte(input), Agent: []byte(`{"agent_id":"a","model":null}`), Info: []byte(`{"id":"1","via":"test"}`),
		Seed: Seed{7}, Start: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
}

// runScript compiles and runs a script.
func runScript(t testing.TB, body, input string) Outcome {
	t.Helper()
	return runWith(t, call(compiled(t, tool(body)), input), &fakeHost{})
}

func runWith(t testing.TB, c Call, h Host) Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	out, err := Inline().Run(ctx, c, h)
	if err != nil {
		t.Fatalf("run: %v", err)
	}
	return out
}

// shown formats an outcome on one line.
func shown(out Outcome) string {
	switch {
	case out.Failure != nil:
		return "failure " + out.Failure.Kind.String() + ": " + out.Failure.Message
	case out.Suspended != nil:
		var asks []string
		for _, ask := range out.Suspended {
			asks = append(asks, fmt.Sprintf("%d %s", ask.Seq, ask.Payload))
		}
		return "suspended " + strings.Join(asks, ", ")
	case out.Result.Kind == Nothing:
		return "nothing"
	case out.Result.Kind == Content:
		return "content " + string(out.Result.Content) + " " + string(out.Result.JSON)
	}
	return string(out.Result.JSON)
}
