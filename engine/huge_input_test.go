package engine_test

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/typescript"
	"github.com/mcpd/mcpd/internal/process/cputest"
	"github.com/mcpd/mcpd/internal/process/osproc"
)

// construct is one construct, nested or repeated n times.
type construct struct {
	name  string
	write func(n int) string
}

func repeated(before, unit, after string) func(int) string {
	return func(n int) string { return before + strings.Repeat(unit, n) + after }
}

func nested(open, inner, close string) func(int) string {
	return func(n int) string { return strings.Repeat(open, n) + inner + strings.Repeat(close, n) }
}

var jsSweeps = []construct{
	{"parentheses", nested("(", "1", ")")}, {"brackets", nested("[", "", "]")}, {"braces", nested("{", "", "}")},
	{"objects", nested("{a:", "1", "}")}, {"functions", nested("(function(){", "", "})()")}, {"arrows", repeated("", "x=>", "1")},
	{"not", repeated("", "!", "1")}, {"minus", repeated("", "- ", "1")}, {"plus chain", repeated("1", "+1", "")},
	{"ternaries", repeated("", "1?", "1") /* unclosed */}, {"else chain", repeated("", "1?1:", "1")}, {"templates", nested("`${", "1", "}`")},
	{"members", repeated("input", ".a", "")}, {"calls", repeated("input", "()", "")}, {"commas", repeated("1", ",1", "")},
	{"statements", repeated("", "1;", "")}, {"blocks", repeated("", "if(1){", "")}, {"string", repeated("'", "x", "'")},
	{"comment", repeated("/*", "x", "*/")}, {"regexp", nested("/(", "a", ")/")}, {"await", repeated("", "await ", "1")},
	{"new", repeated("", "new ", "x")}, {"typeof", repeated("", "typeof ", "x")}, {"exponent", repeated("1", "**1", "")}, {"and", repeated("1", "&&1", "")}, {"or", repeated("0", "||0", "")},
	{"assign", repeated("", "a=", "1")}, {"spread", nested("[...", "[]", "]")},
	{"labels", repeated("", "a:", ";")}, {"classes", nested("class A{static x=", "1", "}")}, {"digits", repeated("", "9", "")},
	{"optional", repeated("input", "?.a", "")}, {"yield", repeated("function*g(){", "yield ", "}")}, {"in", repeated("1", " in 1", "")},
	{"escape", repeated("'", `\u0041`, "'")}, {"let", repeated("", "let a;", "")}, {"destructuring", nested("[", "a", "]")},
}

var celSweeps = []construct{
	{"parentheses", nested("(", "true", ")")}, {"not", repeated("", "!", "true")}, {"minus", repeated("", "-", "1 == 1")},
	{"and", repeated("true", " && true", "")}, {"or", repeated("true", " || true", "")}, {"plus", repeated("1", "+1", " == 1")},
	{"ternaries", repeated("", "true?true:", "true")}, {"lists", nested("[", "1", "]")}, {"maps", nested("{1:", "1", "}")},
	{"members", repeated("args", ".a", "")}, {"indexes", repeated("args", "[0]", "")}, {"exists", nested("[1].exists(x,", "true", ")")},
	{"string", repeated("'", "x", "' == 'x'")}, {"list", repeated("1 in [1", ",1", "]")}, {"in", repeated("1", " in [1]", "")},
	{"calls", nested("size(", "'x'", ")")}, {"comparison", repeated("1", "<1", "")}, {"digits", repeated("1", "1", " == 1")},
}

var hclSweeps = []construct{
	{"parentheses", nested("(", "1", ")")}, {"lists", nested("[", "", "]")}, {"objects", nested("{a=", "1", "}")},
	{"not", repeated("", "!", "true")}, {"minus", repeated("", "-", "1")}, {"plus", repeated("1", "+1", "")},
	{"ternaries", repeated("", "true?1:", "1")}, {"templates", nested(`"${`, "1", `}"`)}, {"members", repeated("var", ".a", "")},
	{"indexes", repeated("var", "[0]", "")}, {"splats", repeated("var", "[*]", "")}, {"calls", nested("upper(", `"x"`, ")")},
	{"string", repeated(`"`, "x", `"`)}, {"list", repeated("[1", ",1", "]")}, {"object", repeated("{", "a=1\n", "}")},
	{"for", nested("[for x in ", "[1]", ": x]")}, {"and", repeated("true", "&&true", "")}, {"heredocs", repeated("<<A\n", "x\n", "A\n")},
	{"interpolations", repeated(`"`, "${1}", `"`)}, {"directives", repeated(`"`, "%{ if true }", `"`)}, {"digits", repeated("1", "1", "")},
}

// repetitions returns the numbers of repetitions: all in the long run, else a few. The largest fills the
// size limit.
func repetitions(largest int) []int {
	switch {
	case checksCost():
		return []int{10, 100, 1_000, 10_000, 100_000, 1_000_000}
	case testing.Short():
		return []int{10, 1_000}
	}
	return []int{10, 1_000, largest}
}

// Every construct of every language is loaded, nested or repeated up to a million times. The result
// is a snapshot or diagnostics with positions in the file.
func TestLoad_hugeFiles(t *testing.T) {
	const body, file = 60_000, 250_000 // bytes, about the maximum sizes
	kinds := []struct {
		name    string
		largest int
		sweeps  []construct
		file    func(code string) string
	}{
		{"js", body, jsSweeps, func(code string) string { return "tool \"t\" {\n  run = <<JS\nreturn " + code + "\nJS\n}\n" }},
		{"ts", body, jsSweeps, func(code string) string { return "tool \"t\" {\n  run = <<TS\nreturn " + code + "\nTS\n}\n" }},
		{"cel", body, celSweeps, func(code string) string {
			return "tool \"t\" {\n  run = <<JS\nreturn 1\nJS\n}\npolicy \"p\" {\n  allow = <<CEL\n" + code + "\nCEL\n  reason = \"no\"\n}\n"
		}},
		{"hcl", file, hclSweeps, func(code string) string {
			return "tool \"t\" {\n  title = " + code + "\n  run = <<JS\nreturn 1\nJS\n}\n"
		}},
		{"hcl local", file, hclSweeps, func(code string) string { return "locals {\n  x = " + code + "\n}\n" }},
		{"hcl blocks", file, []construct{
			{"blocks", repeated("", "tool \"t\" {\n", "")}, {"labels", repeated("tool", ` "a"`, " {}")}, {"inputs", func(n int) string {
				return "tool \"t\" {\n" + strings.Repeat("input \"a\" {\ntype = string\n}\n", n) + "}\n"
			}},
			{"fields", nested("input \"a\" {\nfield \"b\" {\n", "", "}\n}\n")}, {"attributes", repeated("", "a = 1\n", "")},
			{"types", func(n int) string {
				return "tool \"t\" {\ninput \"a\" {\ntype = " + strings.Repeat("list(", n) + "string" + strings.Repeat(")", n) + "\n}\n}\n"
			}},
			{"doubling locals", func(n int) string {
				var b strings.Builder
				b.WriteString("locals {\n  l0 = \"xxxxxxxxxx\"\n")
				for i := 1; i <= min(n, 5_000); i++ {
					fmt.Fprintf(&b, "  l%d = \"${local.l%d}${local.l%d}\"\n", i, i-1, i-1)
				}
				return b.String() + "}\n"
			}},
		}, func(code string) string { return code }},
	}
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			if !checksCost() {
				t.Parallel()
			}
			for _, construct := range kind.sweeps {
				for _, n := range repetitions(kind.largest) {
					name, text := fmt.Sprintf("%s × %d", construct.name, n), kind.file(construct.write(n))
					checkCost(t, name, func() (refused bool) { return loadConstruct(t, name, text) })
				}
			}
		})
	}
}

// loadConstruct loads a file and reports whether it was rejected.
func loadConstruct(t *testing.T, name, text string) (refused bool) {
	t.Helper()
	s, err := engine.New(engine.Options{Name: "sweep", Extensions: []engine.Extension{typescript.New()}, Files: engine.Files{Tools: files("t.hcl", text)}})
	if err != nil {
		t.Fatal(err)
	}
	stuck := time.AfterFunc(20*time.Second, func() { panic("stuck at " + name) })
	report, err := s.Load(t.Context())
	stuck.Stop()
	var problems diag.List
	if err != nil && !errors.As(err, &problems) {
		t.Errorf("%s: %v", name, err)
	}
	for _, p := range report.Problems {
		if p.Range.End.Byte > len(text) || p.Range.Start.Byte > p.Range.End.Byte {
			t.Errorf("%s: the range %v is outside of the file", name, p.Range)
		}
		if len(p.Summary) > 2_000 {
			t.Errorf("%s: a summary has %d bytes", name, len(p.Summary))
		}
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	return err != nil
}

// checksCost reports whether costs are checked, as in the long run only, one at a time.
func checksCost() bool { return os.Getenv("MCPD_LONG") != "" }

// checkCost runs a function. In the long run it fails if that takes more CPU time than a rejection (20
// ms) or an acceptance (250 ms) may take, on a machine calibrated by [cputest].
func checkCost(t *testing.T, name string, do func() (refused bool)) {
	t.Helper()
	limit := 250 * time.Millisecond
	turn := func() time.Duration {
		if checksCost() {
			runtime.GC()
		}
		before := osproc.CPUTime()
		if do() {
			limit = 20 * time.Millisecond
		}
		return osproc.CPUTime() - before
	}
	if took := turn(); checksCost() && took > limit && !cputest.Within(limit, turn) {
		t.Errorf("%s took %v of processor time", name, took)
	}
}

func TestExecute_hugeRequests(t *testing.T) {
	s := server(t, engine.Options{Files: engine.Files{Tools: files("t.hcl", `
tool "echo" {
  input "value" {
    type     = any
    required = false
  }
  run = <<JS
    return input;
  JS
}
policy "looks" {
  deny   = "has(args.value) && args.value == 'no'"
  reason = "no"
}
`)}})
	for _, construct := range []construct{
		{"arrays", nested("[", "", "]")}, {"objects", nested(`{"a":`, "1", "}")}, {"open arrays", repeated("", "[", "")},
		{"items", repeated("[1", ",1", "]")}, {"string", repeated(`"`, "x", `"`)}, {"escapes", repeated(`"`, `\u0041`, `"`)},
		{"digits", repeated("1", "1", "")}, {"exponent", repeated("1e", "1", "")}, {"minus", repeated("", "-", "1")},
		{"spaces", repeated("", " ", "1")}, {"mixed", nested(`[{"a":`, "1", "}]")},
		{"members", func(n int) string {
			var b strings.Builder
			b.WriteString(`{"a":1`)
			for i := range n {
				fmt.Fprintf(&b, `,"k%d":1`, i)
			}
			return b.String() + "}"
		}},
		{"equal members", repeated(`{"a":1`, `,"a":1`, "}")}, {"invalid UTF-8", repeated(`"`, "\xff", `"`)}, {"trailing", repeated("1", " 1", "")},
	} {
		for _, n := range repetitions(1_000_000) {
			name := fmt.Sprintf("%s × %d", construct.name, n)
			raw := []byte(`{"value":` + construct.write(n) + `}`)
			checkCost(t, name, func() (refused bool) { return sendConstruct(t, s, name, raw) })
		}
	}
}

// sendConstruct calls echo and reports whether the call was rejected.
func sendConstruct(t *testing.T, s *engine.Server, name string, raw []byte) (refused bool) {
	t.Helper()
	if err := engine.CheckArguments(raw); err != nil {
		if len(err.Error()) > 500 {
			t.Errorf("%s: the error has %d bytes", name, len(err.Error()))
		}
		return true
	}
	result := s.Execute(t.Context(), call.Request{Name: "echo", Arguments: raw})
	tooPrecise := result.Err != nil && result.Err.Code == call.InvalidInput && strings.HasPrefix(name, "digits")
	if result.Err != nil && result.Err.Code != call.ExecutionError && result.Err.Code != call.Timeout && !tooPrecise {
		t.Errorf("%s: %v", name, result.Err)
	}
	return result.Err != nil
}
