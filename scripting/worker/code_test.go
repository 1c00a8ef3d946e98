package worker

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/js/esbuild"
	"github.com/mcpd/mcpd/scripting"
)

// codeCall returns a call of agent code that may call one tool.
func codeCall(t testing.TB, text string) scripting.Call {
	t.Helper()
	p, problems := scripting.Compile(scripting.Source{
		Name: "run_code", Kind: scripting.Code, Text: diag.WholeFile("code", text), Transpiler: esbuild.New(),
		Objects: []scripting.Object{{Kind: "tools", Name: "crm_list"}},
		Members: []scripting.Member{{Group: "crm", Name: "list", Tool: "crm_list"}},
	})
	if p == nil {
		t.Fatal(problems)
	}
	return scripting.Call{Program: p, NoShedding: true}
}

func TestCode_runs(t *testing.T) {
	e := executor(t, Options{})
	host := hostFunc(func(_ context.Context, _ int, op string, payload []byte) ([]byte, error) { return payload, nil })
	for _, c := range []struct{ text, result, stdout string }{
		{"import os\nrows = await parallel([crm.list({ a: 1 }), () => crm_list()])\nprint('rows', rows.length)\nrows", `[{"tool":"crm_list","arguments":{"a":1}},{"tool":"crm_list","arguments":{}}]`, "rows 2\n"},
		{"const x: number = 5\nprint(x)\nx", "5", "5\n"},
		{"crm_lst({})", "failure crm_lst is not defined; did you mean crm_list?", ""},
		{"np = 5\nnp", "5", ""},
		{"import numpy as np\nprint('a')\nnp.x", "failure np is not defined: its import was removed, and nothing can be imported", "a\n"},
		{"for (let i = 0; i < 100; i++) print('0123456789')\ni = 1", "1", strings.Repeat("0123456789\n", 9) + "0 … [cut: what code prints may have 101 bytes]\n"},
	} {
		call := codeCall(t, c.text)
		call.Limits.Stdout = 101
		out, err := e.Run(t.Context(), call, host)
		if err != nil {
			t.Fatal(err)
		}
		result := ""
		if out.Failure != nil {
			result = "failure " + out.Failure.Message
		} else {
			result = string(out.Result.JSON)
		}
		if diff := cmp.Diff([]string{c.result, c.stdout}, []string{result, out.Stdout}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.text, diff)
		}
	}
}

// TestCode_escapes runs the escapes of package scripting: no process may exit.
func TestCode_escapes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED with -short: calls come one after the other")
	}
	files, err := filepath.Glob("../testdata/escapes/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	ends := make(exitLog, 64)
	e := executor(t, Options{KillDelay: time.Minute, Memory: 2 << 30, Logger: slog.New(ends)})
	host := hostFunc(func(_ context.Context, _ int, op string, payload []byte) ([]byte, error) {
		switch {
		case op == "console":
			return nil, nil
		case strings.Contains(string(payload), "fail"):
			return nil, &scripting.HostError{Code: "POLICY_DENIED", Message: "not today"}
		case strings.Contains(string(payload), "screenshot"):
			return []byte(`[{"type":"text","text":"a page"},{"type":"image","data":"AAAA","mimeType":"image/png"}]`), nil
		}
		return payload, nil
	})
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			code, _, _ := strings.Cut(string(f.Data), "\n=> ")
			src := scripting.Source{Name: "run_code", Kind: scripting.Code, Text: diag.WholeFile("code", code), Members: []scripting.Member{{Group: "crm", Name: "list", Tool: "crm_list"}}}
			for _, name := range []string{"crm_list", "search_web", "fail", "screenshot"} {
				src.Objects = append(src.Objects, scripting.Object{Kind: "tools", Name: name})
			}
			p, _ := scripting.Compile(src)
			if p == nil {
				continue
			}
			call := scripting.Call{Program: p, Seed: scripting.Seed{7}, Start: time.Unix(1000, 0), NoShedding: true}
			var both [2]string
			for i, x := range []scripting.Executor{scripting.Inline(), e} {
				out, err := x.Run(t.Context(), call, host)
				if err != nil {
					t.Fatalf("%s: %v", f.Name, err)
				}
				text, err := out.AppendBinary(nil)
				if err != nil {
					t.Fatalf("%s: %v", f.Name, err)
				}
				both[i] = string(text) + out.Stdout
			}
			if diff := cmp.Diff(both[0], both[1]); diff != "" {
				t.Errorf("%s (-inline +worker):\n%s", f.Name, diff)
			}
		}
	}
	select {
	case end := <-ends:
		t.Errorf("a process exited: %s", end)
	default:
	}
}

// Agent code is usually different for each call: neither side may keep it.
func TestCode_notRetained(t *testing.T) {
	e := executor(t, Options{Processes: 1})
	var together sync.WaitGroup
	for n := range 60 {
		together.Go(func() {
			call := codeCall(t, fmt.Sprintf("await crm.list()\n%d", n/2)) // each of them twice
			out, err := e.Run(t.Context(), call, silent)
			if err != nil || out.Result == nil || string(out.Result.JSON) != fmt.Sprint(n/2) {
				t.Errorf("%d: %v, %+v", n, err, out.Failure)
			}
			if r := e.history.lookup(call.Program.Hash()); r != unrated {
				t.Errorf("%d: its rating is %d", n, r)
			}
		})
	}
	together.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range e.processes {
		if len(p.programs) > 0 || p.weight != 0 {
			t.Errorf("a process keeps %d programs of %d bytes", len(p.programs), p.weight)
		}
	}
}

// The process drops the program when its call arrives.
func TestProcess_dropsOneShotProgram(t *testing.T) {
	quiet, end := io.Pipe() // no more frames
	s := newServer(io.Discard, esbuild.New())
	s.reader.in = bufio.NewReader(quiet)
	t.Cleanup(func() { _ = end.Close() })
	call := codeCall(t, "1")
	text, err := call.Program.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	as := [32]byte{7}
	if err := s.dispatch(0, frameOneShot, append(as[:], text...)); err != nil || len(s.programs) != 1 {
		t.Fatal(err, len(s.programs))
	}
	f := callFrame{id: 1, program: as, call: call}
	if err := s.dispatch(0, frameCall, f.append(nil)); err != nil || len(s.programs) != 0 {
		t.Fatal(err, len(s.programs))
	}
	f.id = 2
	if err := s.dispatch(0, frameCall, f.append(nil)); err == nil {
		t.Error("a second call had the program too")
	}
}

// An exited process loses no line, and no line is reported twice.
func TestStdout_afterProcessExit(t *testing.T) {
	e := executor(t, Options{})
	var lines atomic.Int64
	died := false
	host := hostFunc(func(_ context.Context, _ int, op string, _ []byte) ([]byte, error) {
		if op == "console" {
			lines.Add(1)
			return nil, nil
		}
		if !died {
			died = true
			e.mu.Lock()
			p := e.processes[0]
			e.mu.Unlock()
			p.kill(exitTimeout)
			<-p.exited
		}
		return []byte("5"), nil
	})
	out, err := e.Run(t.Context(), codeCall(t, "print('before')\nprint('after', await crm.list())"), host)
	if err != nil || out.Failure != nil || out.Stdout != "before\nafter 5\n" || lines.Load() != 2 {
		t.Errorf("%v, %+v, printed %q, reported %d lines", err, out.Failure, out.Stdout, lines.Load())
	}
}

// A script that neither an interrupt nor a limit stops returns its output when its process is
// killed.
func TestStdout_killedProcess(t *testing.T) {
	e := executor(t, Options{})
	ctx := &expiring{Context: t.Context(), done: make(chan struct{})}
	host := hostFunc(func(_ context.Context, _ int, op string, payload []byte) ([]byte, error) {
		if strings.Contains(string(payload), "lit") {
			ctx.expire()
		}
		return nil, nil
	})
	out, err := e.Run(ctx, codeCall(t, "print('quiet')\nprint('lit');\n/(?=a)(a+)+$/.test('a'.repeat(60) + '!')"), host)
	if err != nil || out.Failure == nil || out.Failure.Kind != scripting.Timeout || out.Stdout != "quiet\nlit\n" {
		t.Errorf("%v, %+v, printed %q", err, out.Failure, out.Stdout)
	}
}
