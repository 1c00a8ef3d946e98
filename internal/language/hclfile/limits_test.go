package hclfile

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/process/cputest"
	"github.com/mcpd/mcpd/internal/process/osproc"
)

// chains are locals that each refer to the previous one.
var chains = map[string]struct{ first, next string }{
	"text":        {`"x"`, `"${local.l%[1]d}${local.l%[1]d}"`},
	"wide text":   {`"é"`, `"${local.l%[1]d}${local.l%[1]d}"`},
	"marks":       {`"e\u0301\u0301"`, `"${local.l%[1]d}${local.l%[1]d}"`},
	"lists":       {`["x"]`, `[local.l%[1]d, local.l%[1]d]`},
	"objects":     {`{ a = "x" }`, `{ a = local.l%[1]d, b = local.l%[1]d }`},
	"concat":      {`[1]`, `concat(local.l%[1]d, local.l%[1]d)`},
	"sums":        {`[1]`, `concat(local.l%[1]d, [for x in local.l%[1]d : x + 1])`},
	"made":        {`[1]`, `concat(local.l%[1]d, [for x in local.l%[1]d : { a = x }])`},
	"distinct":    {`[1]`, `concat(local.l%[1]d, [for i, x in local.l%[1]d : i + length(local.l%[1]d)], distinct(local.l%[1]d))`},
	"sort":        {`["x"]`, `concat(local.l%[1]d, [for i, x in sort(local.l%[1]d) : "${x}${i}"])`},
	"merge":       {`{ a = 1 }`, `merge(local.l%[1]d, { for k, v in local.l%[1]d : "${k}x" => v })`},
	"equality":    {`["x"]`, `concat(local.l%[1]d, local.l%[1]d, local.l%[1]d == local.l%[1]d ? [] : [])`},
	"json":        {`"[1]"`, `jsonencode([jsondecode(local.l%[1]d), jsondecode(local.l%[1]d)])`},
	"wide json":   {`"[1]"`, `jsonencode(concat(jsondecode(local.l%[1]d), jsondecode(local.l%[1]d)))`},
	"chunks":      {`["x"]`, `flatten(chunklist(concat(local.l%[1]d, local.l%[1]d), 1))`},
	"characters":  {`"x"`, `"${local.l%[1]d}${local.l%[1]d}${substr(local.l%[1]d, -1, 1)}"`},
	"directives":  {`"x"`, `"%%{for i in [1, 2]}${local.l%[1]d}%%{endfor}"`},
	"split":       {`"x,"`, `join(",", concat(split(",", local.l%[1]d), split(",", local.l%[1]d)))`},
	"values":      {`{ a = "x" }`, `{ for i, v in concat(values(local.l%[1]d), values(local.l%[1]d)) : "k${i}" => v }`},
	"every index": {`[1]`, `concat(local.l%[1]d, [for i, x in local.l%[1]d : local.l%[1]d[i]])`},
}

func chain(first, next string, n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "locals {\n  l0 = %s\n", first)
	for i := range n {
		fmt.Fprintf(&b, "  l%d = "+next+"\n", i+1, i)
	}
	return b.String() + "}\n"
}

// It measures processor time, so the machine must be mostly idle.
func TestParse_processorTime(t *testing.T) {
	if os.Getenv("MCPD_LONG") == "" {
		t.Skip("set MCPD_LONG")
	}
	for name, bomb := range bombs {
		for n := 10; n <= 1_000_000; n *= 10 {
			checkCost(t, fmt.Sprintf("%s × %d", name, n), Source{Path: "x.hcl", Bytes: []byte("locals {\n" + bomb(n) + "\n}\n")})
			broken := Source{Path: "x.hcl", Bytes: []byte(bomb(n) + "\n? \n")}
			checkCostWithin(t, refusal+time.Duration(len(broken.Bytes)>>10)*perKiB, fmt.Sprintf("%s × %d and a mistake", name, n), broken)
		}
	}
	for name, bomb := range jsonBombs {
		for n := 10; n <= 1_000_000; n *= 10 {
			checkCost(t, fmt.Sprintf("JSON %s × %d", name, n), Source{Path: "x.hcl.json", Bytes: []byte(bomb(n))})
		}
	}
	for name, c := range chains {
		for n := 1; n <= 400; n += 1 + n/4 {
			checkCost(t, fmt.Sprintf("chained %s × %d", name, n), Source{Path: "x.hcl", Bytes: []byte(chain(c.first, c.next, n))})
		}
	}
}

const (
	// refusal is the maximum time to reject a file.
	refusal = 20 * time.Millisecond
	// perKiB is the additional time to parse many definitions, because all their errors are
	// reported.
	perKiB = 500 * time.Microsecond
)

// checkCost fails if rejecting a file takes more than 20 ms, or accepting one more than 250 ms:
// the best of four runs, adjusted to the machine by [cputest].
func checkCost(t *testing.T, name string, src Source) {
	t.Helper()
	checkCostWithin(t, refusal, name, src)
}

// problemTime returns the processor time to find the diagnostics of a file.
func problemTime(src Source) time.Duration {
	runtime.GC()
	before := osproc.CPUTime()
	toolProblems(src)
	return osproc.CPUTime() - before
}

func checkCostWithin(t *testing.T, refusal time.Duration, name string, src Source) {
	t.Helper()
	best, refused := time.Hour, toolProblems(src).HasErrors()
	for range 4 {
		best = min(best, problemTime(src))
	}
	budget := 250 * time.Millisecond
	if refused {
		budget = refusal
	}
	if best > budget && !cputest.Within(budget, func() time.Duration { return problemTime(src) }) {
		t.Errorf("%s took %v, rejected: %t", name, best, refused)
	}
}

// bombs are texts with one construct repeated or nested n times.
var bombs = map[string]func(n int) string{
	"parentheses":      func(n int) string { return "a = " + strings.Repeat("(", n) + "1" + strings.Repeat(")", n) },
	"open parentheses": func(n int) string { return "a = " + strings.Repeat("(", n) },
	"brackets":         func(n int) string { return "a = " + strings.Repeat("[", n) + strings.Repeat("]", n) },
	"braces":           func(n int) string { return "a = " + strings.Repeat("{a=", n) + "1" + strings.Repeat("}", n) },
	"blocks":           func(n int) string { return strings.Repeat("a {\n", n) + strings.Repeat("}\n", n) },
	"tools":            func(n int) string { return strings.Repeat("tool \"a\" {\n}\n", n) },
	"fields": func(n int) string {
		return "tool \"t\" {\ninput \"a\" {\n" + strings.Repeat("field \"b\" {\n", n) + strings.Repeat("}\n", n+2)
	},
	"minus signs":         func(n int) string { return "a = " + strings.Repeat("-", n) + "1" },
	"negations":           func(n int) string { return "a = " + strings.Repeat("! ", n) + "true" },
	"signs on lines":      func(n int) string { return "a = (" + strings.Repeat("-\n", n) + "1)" },
	"conditionals":        func(n int) string { return "a = " + strings.Repeat("true ? 1 : ", n) + "2" },
	"nested conditionals": func(n int) string { return "a = " + strings.Repeat("true ? ", n) + "1" + strings.Repeat(" : 2", n) },
	"sums":                func(n int) string { return "a = 1" + strings.Repeat(" + 1", n) },
	"sums on lines":       func(n int) string { return "a = (1" + strings.Repeat("\n+ 1", n) + ")" },
	"attributes":          func(n int) string { return "a = var.x" + strings.Repeat(".a", n) },
	"indexes":             func(n int) string { return "a = var.x" + strings.Repeat("[0]", n) },
	"computed indexes":    func(n int) string { return "a = var.x" + strings.Repeat("[1+1]", n) },
	"nested indexes":      func(n int) string { return "a = " + strings.Repeat("var.x[", n) + "0" + strings.Repeat("]", n) },
	"splats":              func(n int) string { return "a = var.x" + strings.Repeat("[*]", n) },
	"star attributes":     func(n int) string { return "a = var.x" + strings.Repeat(".*", n) },
	"calls":               func(n int) string { return "a = " + strings.Repeat("upper(", n) + `"x"` + strings.Repeat(")", n) },
	"namespaces":          func(n int) string { return "a = " + strings.Repeat("x::", n) + "f()" },
	"templates":           func(n int) string { return "a = " + strings.Repeat(`"${`, n) + "1" + strings.Repeat(`}"`, n) },
	"interpolations":      func(n int) string { return `a = "` + strings.Repeat("${1}", n) + `"` },
	"dollars":             func(n int) string { return `a = "` + strings.Repeat("$", n) + `"` },
	"percents":            func(n int) string { return `a = "` + strings.Repeat("% ", n) + `"` },
	"directives": func(n int) string {
		return `a = "` + strings.Repeat("%{if true}", n) + strings.Repeat("%{endif}", n) + `"`
	},
	"heredoc lines":        func(n int) string { return "a = <<EOT\n" + strings.Repeat("x\n", n) + "EOT\n" },
	"template lines":       func(n int) string { return "a = <<EOT\n${1}" + strings.Repeat("\n", n) + "EOT\n" },
	"heredocs":             func(n int) string { return "a = [" + strings.Repeat("<<A\nA\n,", n) + "]\n" },
	"nested heredocs":      func(n int) string { return "a = " + strings.Repeat("<<A\n${", n) + "1" + strings.Repeat("}\nA\n", n) },
	"open heredocs":        func(n int) string { return strings.Repeat("a = <<A\n", n) },
	"raw lines":            func(n int) string { return "a = <<JS\n" + strings.Repeat("(\n", n) + "JS\n" },
	"digits":               func(n int) string { return "a = " + strings.Repeat("9", n) },
	"exponents":            func(n int) string { return fmt.Sprintf("a = \"${1e%d}\"", n) },
	"labels":               func(n int) string { return "tool" + strings.Repeat(` "a"`, n) + " {\n}\n" },
	"items":                func(n int) string { return "a = [" + strings.Repeat("1,", n) + "]" },
	"members":              func(n int) string { return "a = {" + strings.Repeat("a = 1\n", n) + "}" },
	"parenthesised keys":   func(n int) string { return "a = {\n" + strings.Repeat("(\"a\") = 1\n", n) + "}" },
	"same arguments":       func(n int) string { return strings.Repeat("a = 1\n", n) },
	"comments":             func(n int) string { return strings.Repeat("# a\n", n) + "a = (" + strings.Repeat("# b\n", n) + "1)" },
	"open comments":        func(n int) string { return strings.Repeat("/* ", n) },
	"quotes":               func(n int) string { return strings.Repeat(`"`, n) },
	"newlines in a string": func(n int) string { return `a = "` + strings.Repeat("\n", n) + `"` },
	"backslashes":          func(n int) string { return `a = "` + strings.Repeat(`\`, n) + `"` },
	"closers":              func(n int) string { return strings.Repeat("}", n) + strings.Repeat("]", n) },
	"for expressions": func(n int) string {
		return "a = " + strings.Repeat("[for x in [1] : ", n) + "1" + strings.Repeat("]", n)
	},
	"object for":     func(n int) string { return "a = {for x in [1] : x => 1" + strings.Repeat("\n+ 1", n) + "}" },
	"bad characters": func(n int) string { return strings.Repeat("`", n) + strings.Repeat("'", n) },
	"long name":      func(n int) string { return strings.Repeat("a", n) + " = 1" },
	"one long line":  func(n int) string { return "/* " + strings.Repeat("é", n) + " */ x \"" + strings.Repeat("y", n) },
	"types": func(n int) string {
		return "tool \"t\" {\ninput \"a\" {\ntype = " + strings.Repeat("list(", n) + "string" + strings.Repeat(")", n) + "\n}\n}"
	},
	"slots": func(n int) string {
		return "prompt \"p\" {\nmessage \"user\" { text = \"" + strings.Repeat("{{a", n) + "}}\" }\n}"
	},
	"escaped slots": func(n int) string {
		return "prompt \"p\" {\nmessage \"user\" {\ntext = <<EOT\n" + strings.Repeat("{{{{", n) + "\nEOT\n}\n}"
	},
	"unknown slots": func(n int) string {
		text := ""
		for i := range min(n, 7000) {
			text += fmt.Sprintf("{{a%d}}", i)
		}
		return "prompt \"p\" {\nargument \"b\" {\n}\nmessage \"user\" {\ntext = <<EOT\n" + text + "\nEOT\n}\n}"
	},
	"messages": func(n int) string {
		return "prompt \"p\" {\n" + strings.Repeat("message \"user\" {\nimage {\n}\n}\n", n) + "}"
	},
	"variables": func(n int) string {
		return "resource_template \"t\" {\nuri_template = \"x:" + strings.Repeat("{a}/", n) + "\"\ntext = \"\"\n}"
	},
	"globs": func(n int) string {
		return "resource_folder \"f\" {\nroot = \"f\"\nglob = [\"" + strings.Repeat("**/", n) + "\"]\n}"
	},
	"expected messages": func(n int) string {
		return "test \"t\" {\nprompt = \"p\"\nexpect { messages = [" + strings.Repeat("{role = \"x\"},", n) + "] }\n}"
	},
	"broken arguments":   func(n int) string { return strings.Repeat("a = ?\n", n) },
	"broken headings":    func(n int) string { return strings.Repeat("a ? {\n", n) },
	"braces below":       func(n int) string { return strings.Repeat("tool \"a\"\n{\n}\n", n) },
	"open quotes":        func(n int) string { return strings.Repeat("a = \"x\n", n) },
	"blank lines":        func(n int) string { return "a = [\n" + strings.Repeat("\n", n) + "b = ?" },
	"blank lines inside": func(n int) string { return "a {\n" + strings.Repeat("\n", n) + "b = ?\n" },
	"heredocs without end": func(n int) string {
		return strings.Repeat("tool \"a\" {\n  run = <<A\n}\n", n)
	},
	"heredocs with a bad tag": func(n int) string { return strings.Repeat("a = << A\nA\n", n) },
	"tools that are broken": func(n int) string {
		return strings.Repeat("tool \"a\" {\n  title = .5\n  run = \"return 1\"\n}\n", n)
	},
	"tools that stay open": func(n int) string { return strings.Repeat("tool \"a\" {\n  title = 5\n\n", n) },
	"unknown blocks":       func(n int) string { return strings.Repeat("nonsense \"a\" {\n}\n", n) },
}

// jsonBombs are the same for HCL's JSON syntax.
var jsonBombs = map[string]func(n int) string{
	"arrays": func(n int) string {
		return `{"locals": {"a": ` + strings.Repeat("[", n) + strings.Repeat("]", n) + "}}"
	},
	"objects": func(n int) string {
		return `{"locals": {"a": ` + strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) + "}}"
	},
	"blocks":    func(n int) string { return `{"tool": ` + strings.Repeat("[", n) + strings.Repeat("]", n) + "}" },
	"labels":    func(n int) string { return strings.Repeat(`{"tool":`, n) + "1" + strings.Repeat("}", n) },
	"templates": func(n int) string { return `{"locals": {"a": "` + strings.Repeat("${(", n) + `"}}` },
	"interpolations": func(n int) string {
		return `{"locals": {"a": "` + strings.Repeat("${1}", n) + `"}}`
	},
	"many templates":   func(n int) string { return `{"locals": {"a": [` + strings.Repeat(`"${1}",`, n) + `1]}}` },
	"lines":            func(n int) string { return `{"locals": {"a": "${1}` + strings.Repeat(`\n`, n) + `"}}` },
	"heredocs":         func(n int) string { return `{"locals": {"a": "${<<A\n` + strings.Repeat(`x\n`, n) + `A\n}"}}` },
	"types":            func(n int) string { return `{"variable": {"a": {"type": "` + strings.Repeat("list(", n) + `"}}}` },
	"digits":           func(n int) string { return `{"locals": {"a": 0.` + strings.Repeat("1", n) + `}}` },
	"commas too many":  func(n int) string { return `{"locals": {"a": [` + strings.Repeat("1,,", n) + `1]}}` },
	"commas too few":   func(n int) string { return `{"locals": {"a": [` + strings.Repeat("1 ", n) + `1]}}` },
	"words":            func(n int) string { return `{"locals": {"a": [` + strings.Repeat("nul, ", n) + `1]}}` },
	"comments":         func(n int) string { return strings.Repeat("// a\n", n) + `{}` },
	"names twice":      func(n int) string { return `{` + strings.Repeat(`"a": [],`, n) + `"b": 1}` },
	"strings unclosed": func(n int) string { return `{"locals": {"a": [` + strings.Repeat("\"x,\n", n) + `1]}}` },
	"escapes":          func(n int) string { return `{"locals": {"a": "` + strings.Repeat(`\u00e9`, n) + `${"}}` },
}

// Each repeated or nested construct results in definitions or diagnostics.
func TestParse_constructSizes(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: one goroutine works here alone")
	}
	largest := 1_000_000
	if testing.Short() {
		largest = 10_000
	}
	run := func(path string, bombs map[string]func(int) string) {
		for name, bomb := range bombs {
			t.Run(path+"/"+name, func(t *testing.T) {
				for n := 10; n <= largest; n *= 10 {
					text := bomb(n)
					src := Source{Path: path, Bytes: []byte(text)}
					problems := toolProblems(src)
					if path == "x.hcl" {
						problems = append(problems, toolProblems(Source{Path: path, Bytes: []byte("locals {\n" + text + "\n}\n")})...)
						_, _ = Format(src)
					}
					if len(problems) > 2*maxCollected {
						t.Fatalf("%d diagnostics", len(problems))
					}
					if len(text) > maxFile {
						break
					}
				}
			})
		}
	}
	run("x.hcl", bombs)
	run("x.hcl.json", jsonBombs)
}
