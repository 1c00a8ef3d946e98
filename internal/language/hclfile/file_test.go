package hclfile

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/diag"
)

func TestParse_limits(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"size":      {strings.Repeat("#", maxFile+1), "x.hcl: error: the file is larger than 1024 KiB"},
		"HCL":       {strings.Repeat(" ", MaxHCL), "x.hcl: error: the file contains more than 256 KiB of HCL besides its heredocs"},
		"words":     {"locals {}\n\n" + strings.Repeat("a = 1\n", maxDefinition/4), "x.hcl:3:1: error: the definition that starts here contains more than 12000 words"},
		"labels":    {"tool" + strings.Repeat(` "a"`, maxDefinition/3), "x.hcl:1:1: error: the definition that starts here contains more than 12000 words"},
		"long text": {"a = \"" + strings.Repeat("x", maxDefinition*wordBytes), "x.hcl:1:1: error: the definition that starts here contains more than 12000 words"},
		"all words": {strings.Repeat("locals {\n"+strings.Repeat("a=1\n", 2500)+"}\n", 13), "error: the file contains more than 128000 words and operators before this position"},
		"blocks":    {strings.Repeat("a {\n}\n", maxDefinitions+1), "x.hcl:4002:1: error: the file contains more than 2000 definitions"},
		"UTF-8":     {"a = 1\nb = \"é\xff\"\n", "x.hcl:2:7: error: the file is not valid UTF-8; save it as UTF-8"},
		"NUL":       {"a = 1\n\x00", "x.hcl:2:1: error: the file contains a NUL byte"},
		"template":  {"a = \"" + strings.Repeat("${1}", maxPieces+1) + "\"", "x.hcl:1:5: error: the template has more than 500 lines"},
		"operators": {"a = 1" + strings.Repeat("+1", maxOperators+1), "error: the expression has more than 256 operators"},
	} {
		t.Run(name, func(t *testing.T) {
			file, problems := Parse(Source{Path: "x.hcl", Bytes: []byte(c.text)}, ToolsKind)
			if file != nil || len(problems) != 1 || !strings.Contains(problems[0].String(), c.want) {
				t.Errorf("got %v, want %q", problems, c.want)
			}
		})
	}
}

func TestParse_largeRawHeredoc(t *testing.T) {
	body := strings.Repeat("// a comment (((((\n", MaxHCL/10)
	source := "tool \"t\" {\n  run = <<JS\n" + body + "JS\n  title = \"x\"\n}\n"
	defs := decodeTools(t, "x.hcl", source, Scope{})
	if defs.Tools[0].Run.Text.Body() != body || defs.Tools[0].Title != "x" {
		t.Error("the script or the text after it is missing")
	}
}

func TestParse_byteOrderMarkOffset(t *testing.T) {
	_, problems := Parse(Source{Path: "x.hcl", Bytes: []byte(byteOrderMark + "tool {\n  = 1\n}\n")}, ToolsKind)
	if len(problems) != 1 || problems[0].Range.Start.Line != 2 || problems[0].Range.Start.Column != 3 || problems[0].Range.Start.Byte != 12 {
		t.Errorf("%+v", problems)
	}
}

func TestDecode_maxDiagnostics(t *testing.T) {
	file, _ := Parse(Source{Path: "x.hcl", Bytes: []byte(strings.Repeat("nonsense {\n}\n", maxDiagnostics+7))}, ToolsKind)
	_, problems := file.Decode(Scope{})
	if len(problems) != maxDiagnostics+1 || !strings.HasPrefix(problems[maxDiagnostics].Summary, "7 more errors") {
		t.Errorf("%d problems, the last is %v", len(problems), problems[len(problems)-1])
	}
}

// For the race detector.
func TestDecode_concurrent(t *testing.T) {
	file, problems := Parse(Source{Path: "x.hcl", Bytes: []byte("locals {\n  l = [{ a = 1 }]\n}\n" + string(smallTool(1).Bytes) +
		"test \"t\" {\n  tool = \"tool_1\"\n  input = { x = local.l[*].a, y = <<SQL\n${x}\nSQL\n  }\n  expect { text = \"x\" }\n}\n")}, ToolsKind)
	if file == nil {
		t.Fatal(problems)
	}
	locals, problems := JoinLocals([]*File{file}, nil, false)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	results := make([]string, 8)
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() {
			defs, problems := file.Decode(Scope{Locals: locals})
			results[i] = string(defs.Tools[0].Input) + string(defs.Tests[0].Input) + problems.Error()
		})
	}
	wg.Wait()
	for _, got := range results {
		if diff := cmp.Diff(results[0], got); diff != "" || !strings.HasSuffix(got, `{"x":[1],"y":"${x}\n"}`) {
			t.Error(diff, got)
		}
	}
}

func TestDecode_stableOrder(t *testing.T) {
	const source = "tool \"t\" {\n  a = 1\n  b = 2\n  c = 3\n  d = 4\n  e {\n  }\n  f {\n  }\n}\nz {\n}\ny = 1\nx = 1\n"
	told := func() string {
		file, problems := Parse(Source{Path: "x.hcl", Bytes: []byte(source)}, ToolsKind)
		_, more := file.Decode(Scope{})
		return append(problems, more...).Error()
	}
	first := told()
	for range 20 {
		if diff := cmp.Diff(first, told()); diff != "" {
			t.Fatal(diff)
		}
	}
}

// The budgets are the cost of the smallest useful file plus a tenth.
func TestDecode_allocations(t *testing.T) {
	src := smallTool(1)
	file, _ := Parse(src, ToolsKind)
	for name, c := range map[string]struct {
		budget float64
		run    func()
	}{
		"parse":  {320, func() { Parse(src, ToolsKind) }},
		"decode": {220, func() { file.Decode(Scope{}) }},
	} {
		if got := testing.AllocsPerRun(100, c.run); got > c.budget {
			t.Errorf("%s: %v allocations, budget %v", name, got, c.budget)
		}
	}
}

func TestParse_byteOrderMarkColumn(t *testing.T) {
	for text, want := range map[string]string{
		byteOrderMark + "tols \"a\" {}": "x.hcl:1:1", byteOrderMark + "\n tols \"a\" {}": "x.hcl:2:2",
		byteOrderMark + "tool \"a\" { rum = 1 }": "x.hcl:1:12",
		"tool \"a\" { rum = 1 }":                 "x.hcl:1:12",
	} {
		file, problems := Parse(Source{Path: "x.hcl", Bytes: []byte(text)}, ToolsKind)
		if file != nil {
			_, problems = file.Decode(Scope{})
		}
		if !slices.ContainsFunc(problems, func(d diag.Diagnostic) bool { return d.Range.String() == want }) {
			t.Errorf("%q: got %v", text, problems)
		}
	}
}

// The limits permit realistic files.
func TestDecode_largeFile(t *testing.T) {
	var b strings.Builder
	body := strings.Repeat("    // what it does, and why it does so\n", 40)
	for i := range 500 {
		fmt.Fprintf(&b, "tool \"tool_%d\" {\n  title       = \"Tool %d\"\n  description = \"Answers what number %d is asked.\"\n  read_only   = true\n", i, i, i)
		for _, name := range []string{"customer", "region"} {
			fmt.Fprintf(&b, "  input %q {\n    type        = string\n    description = \"Which one to look for\"\n  }\n", name)
		}
		fmt.Fprintf(&b, "  run = <<JS\n%s    return input.customer;\n  JS\n}\n\ntest \"tool_%d\" {\n  tool  = \"tool_%d\"\n  input = { customer = \"a\", region = \"b\" }\n  expect { text = \"a\" }\n}\n\n", body, i, i)
	}
	if b.Len() < 900_000 || b.Len() > maxFile {
		t.Fatalf("the file has %d bytes", b.Len())
	}
	if defs := decodeTools(t, "x.hcl", b.String(), Scope{}); len(defs.Tools) != 500 || len(defs.Tests) != 500 {
		t.Errorf("%d tools and %d tests", len(defs.Tools), len(defs.Tests))
	}
}

func TestParseJSON_limits(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"items":       {`{"locals": {"a": [` + strings.Repeat("1, ", maxDefinition) + `1]}}`, "x.hcl.json:1:12: error: the definition that starts here contains more than 12000 values"},
		"templates":   {`{"locals": {"a": [` + strings.Repeat(`"${1}", `, maxDefinition/5) + `1]}}`, "x.hcl.json:1:12: error: the definition that starts here contains more than 12000 values"},
		"definitions": {`{"tool": {"a": [` + strings.Repeat("{}, ", maxDefinitions) + `{}]}}`, "error: the file contains more than 2000 definitions"},
	} {
		t.Run(name, func(t *testing.T) {
			file, problems := Parse(Source{Path: "x.hcl.json", Bytes: []byte(c.text)}, ToolsKind)
			if file != nil || len(problems) != 1 || !strings.Contains(problems[0].String(), c.want) {
				t.Errorf("got %v, want %q", problems, c.want)
			}
		})
	}
}
