package engine_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/typescript"
	"github.com/mcpd/mcpd/scripting"
)

// staged is the configuration of a production server, with policies that depend on its stage.
const staged = `
reload { require_tests = true }
variable "stage" {
  type    = string
  default = "prod"
}
variable "pattern" {
  type    = string
  default = ".*"
}
variable "allowed" {
  type    = list(string)
  default = []
}
variable "word" {
  type      = string
  default   = "original-word"
  sensitive = true
}
policy "closed_in_prod" {
  deny   = "vars.stage == 'prod'"
  reason = "closed"
}
policy "named" {
  tools  = ["named"]
  deny   = "!(args.name in vars.allowed)"
  reason = "not named"
}
`

// stagedTools read the stage in every part of a definition.
const stagedTools = `
locals {
  host = "${var.stage}.example.com"
}
tool "where" {
  description = "Tools of ${var.stage}."
  input "given" {
    type    = string
    default = local.host
  }
  input "filled" {
    type = string
    from = "vars.stage"
  }
  run = <<JS
    return [vars.stage, input.given, input.filled].join(" ");
  JS
}
tool "named" {
  input "name" {
    type    = string
    pattern = var.pattern
  }
  run = "return vars.allowed.length;"
}
tool "typed" {
  run = file("typed.js")
}
tool "hidden" { run = "return vars.word.length;" }
tool "leaky" { run = "throw new Error('the word is ' + vars.word);" }
prompt "greet" {
  message "user" { text = "Hello ${var.stage}" }
}
`

const stagedTests = `
test "every place reads the stage" {
  tool = "where"
  vars = { stage = "dev" }
  expect { output = "dev dev.example.com dev" }
}
test "another stage" {
  tool = "where"
  vars = { stage = "test" }
  expect { output = "test ${local.host} test" }
}
test "the stage of the server" {
  tool = "where"
  expect { denied_by = "closed_in_prod" }
}
test "lists" {
  tool  = "named"
  vars  = { stage = "dev", allowed = ["ada", "bob"] }
  input = { name = "bob" }
  expect { output = 2 }
}
test "lists deny" {
  tool  = "named"
  vars  = { stage = "dev" }
  input = { name = "bob" }
  expect { denied_by = "named" }
}
test "files" {
  tool = "typed"
  vars = { stage = "dev" }
  expect { output = "dev" }
}
test "sensitive" {
  tool = "hidden"
  vars = { stage = "dev", word = "abc" }
  expect { output = 3 }
}
test "prompts" {
  prompt = "greet"
  vars   = { stage = "dev" }
  expect { text = "Hello dev" }
}
`

func stagedFiles(tests string) fstest.MapFS {
	return files("t.hcl", stagedTools+tests, "typed.js", "import { at } from './at.js';\nreturn at(vars);", "at.js", "export const at = (v) => v.stage;")
}

func TestVarsOfATest_reachEveryPlaceAVariableIsRead(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Tools: stagedFiles(stagedTests), Config: files("mcpd.hcl", staged), ConfigPath: "mcpd.hcl"}})
	results, err := s.RunTests(t.Context(), nil)
	if err != nil || len(results) != 8 {
		t.Fatal(len(results), err)
	}
	for _, r := range results {
		if !r.Passed() {
			t.Errorf("%s: %q", r.Name, r.Failures)
		}
	}
	// The serving snapshot is unchanged: it denies in production.
	if _, err := s.Call(t.Context(), "typed", nil); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("the server itself: %v", err)
	}
}

func TestVarsOfATest_checksAtLoadAndInRunTestsAgree(t *testing.T) {
	const broken = `
test "fails" {
  tool = "typed"
  vars = { stage = "dev" }
  expect { output = "prod" }
}
test "leaks nothing" {
  tool = "leaky"
  vars = { stage = "dev", word = "replaced-word" }
  expect { output = 1 }
}
test "cannot be" {
  tool = "typed"
  vars = { pattern = "(" }
  expect { output = "x" }
}
`
	required := files("mcpd.hcl", staged)
	strict, err := engine.New(engine.Options{Name: "t", Extensions: []engine.Extension{typescript.New()}, Files: engine.Files{Tools: stagedFiles(broken), Config: required, ConfigPath: "mcpd.hcl"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = strict.Close(t.Context()) })
	report, err := strict.Load(t.Context())
	if err == nil {
		t.Fatal("the files were loaded with tests that fail")
	}
	lax := server(t, engine.Options{Files: engine.Files{Tools: stagedFiles(broken), Config: files("mcpd.hcl", strings.Replace(staged, "require_tests = true", "watch = false", 1)), ConfigPath: "mcpd.hcl"}})
	results, err := lax.RunTests(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(failuresOf(report.Tests), failuresOf(results)); diff != "" {
		t.Errorf("a load and RunTests disagree (-load +RunTests)\n%s", diff)
	}
	told := fmt.Sprint(failuresOf(results), report.Problems)
	for _, want := range []string{`want`, "with the vars of the test the files have errors:\n" + `tools.d/t.hcl:`, "pattern"} {
		if !strings.Contains(told, want) {
			t.Errorf("%q is missing in %s", want, told)
		}
	}
	for _, secret := range []string{"replaced-word", "original-word"} {
		if strings.Contains(told, secret) {
			t.Errorf("%q is revealed in %s", secret, told)
		}
	}
}

func failuresOf(results []engine.TestResult) (told []string) {
	for _, r := range results {
		told = append(told, r.Name+": "+strings.Join(r.Failures, "; "))
	}
	return told
}

func TestVarsOfATest_runAgainOnlyWhatAReloadChanged(t *testing.T) {
	tools := stagedFiles(stagedTests)
	s := server(t, engine.Options{Files: engine.Files{Tools: tools, Config: files("mcpd.hcl", staged), ConfigPath: "mcpd.hcl"}})
	tools["typed.js"] = &fstest.MapFile{Data: []byte("import { at } from './at.js';\nreturn at(vars) + '';")}
	report, err := s.Reload(t.Context(), engine.Change{Paths: []string{"typed.js"}})
	if err != nil {
		t.Fatal(err)
	}
	var ran []string
	for _, r := range report.Tests {
		ran = append(ran, r.Name)
	}
	if !slices.Equal(ran, []string{"files"}) {
		t.Errorf("ran %q", ran)
	}
}

func TestVarsOfATest_areBoundedInNumber(t *testing.T) {
	var tests strings.Builder
	for i := range 34 {
		fmt.Fprintf(&tests, "test \"n%d\" {\n  tool = \"typed\"\n  vars = { stage = \"s%d\" }\n  expect { output = \"s%d\" }\n}\n", i, i, i)
	}
	s := server(t, engine.Options{Files: engine.Files{Tools: stagedFiles(tests.String()), Config: files("mcpd.hcl", strings.Replace(staged, "require_tests = true", "watch = false", 1)), ConfigPath: "mcpd.hcl"}})
	results, err := s.RunTests(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if r.Passed() != (i < 32) {
			t.Errorf("test %d: %q", i, r.Failures)
		}
	}
	if last := results[33].Failures; len(last) != 1 || !strings.Contains(last[0], "more than 32") {
		t.Errorf("the last: %q", last)
	}
}

func TestCallerOfATest_isWhoItSays(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Tools: files("t.hcl", `
tool "who" {
  input "issuer" {
    type = string
    from = "principal.issuer"
  }
  input "verified" {
    type = bool
    from = "agent.verified"
  }
  run = "return input.issuer + ' ' + input.verified;"
}
policy "inside" {
  deny   = "source.listener != 'internal' || !source.ip.startsWith('10.')"
  reason = "outside"
}
test "inside" {
  tool      = "who"
  principal = { id = "ada", kind = "jwt", issuer = "https://id.example.com" }
  agent     = { agent_id = "a", verified = true }
  source    = { listener = "internal", ip = "10.0.0.7" }
  expect { output = "https://id.example.com true" }
}
test "outside" {
  tool   = "who"
  source = { ip = "192.0.2.1" }
  expect { denied_by = "inside" }
}
`)}})
	results, err := s.RunTests(t.Context(), nil)
	if err != nil || len(results) != 2 {
		t.Fatal(len(results), err)
	}
	for _, r := range results {
		if !r.Passed() {
			t.Errorf("%s: %q", r.Name, r.Failures)
		}
	}
}

// busiestExecutor records the largest number of scripts that run at once. A script waits for another
// one, if it should.
type busiestExecutor struct {
	scripting.Executor
	meet          chan struct{} // nil: do not wait
	running, most atomic.Int64
}

func (x *busiestExecutor) Run(ctx context.Context, c scripting.Call, h scripting.Host) (scripting.Outcome, error) {
	n := x.running.Add(1)
	defer x.running.Add(-1)
	for most := x.most.Load(); n > most && !x.most.CompareAndSwap(most, n); most = x.most.Load() {
	}
	if x.meet != nil {
		select {
		case x.meet <- struct{}{}:
		case <-x.meet:
		case <-ctx.Done():
			return scripting.Outcome{}, ctx.Err()
		}
	}
	return x.Executor.Run(ctx, c, h)
}

// Tests run at once when a server starts, and one after another beside the calls of a serving one.
func TestReload_runsTestsOneByOne(t *testing.T) {
	if runtime.GOMAXPROCS(0) < 2 {
		t.Skip("needs two processors")
	}
	text := func(result int) []byte {
		var b strings.Builder
		fmt.Fprintf(&b, "tool \"one\" {\n  run = \"return %d;\"\n}\n", result)
		for i := range 64 {
			fmt.Fprintf(&b, "test \"t%d\" {\n  tool = \"one\"\n  expect { output = %d }\n}\n", i, result)
		}
		return []byte(b.String())
	}
	x := &busiestExecutor{Executor: scripting.Inline(), meet: make(chan struct{})}
	tools := fstest.MapFS{"a.hcl": {Data: text(1)}}
	s := server(t, engine.Options{Files: engine.Files{Tools: tools, RequireTests: true}, Scripts: engine.Scripts{Executor: x}})
	if most := x.most.Swap(0); most < 2 {
		t.Errorf("%d tests ran at once at the start", most)
	}
	x.meet = nil
	tools["a.hcl"] = &fstest.MapFile{Data: text(2)}
	report, err := s.Reload(t.Context(), engine.Change{All: true})
	if err != nil || len(report.Tests) != 64 {
		t.Fatalf("%d tests, %v", len(report.Tests), err)
	}
	if most := x.most.Load(); most != 1 {
		t.Errorf("%d tests ran at once in a reload", most)
	}
}
