package scripting

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/js/esbuild"
	"github.com/mcpd/mcpd/scripting/source"
)

// everything is code that may call tools with names that are not identifiers, and tools with names
// of other languages.
func everything(text string) Source {
	src := Source{Name: "run_code", Kind: Code, Text: diag.WholeFile("code", text), Transpiler: esbuild.New()}
	for _, m := range []Member{
		{Group: "ev", Name: "get-sum", Tool: "ev_get-sum"}, {Group: "ev", Name: "get-annotated-message", Tool: "ev_get-annotated-message"}, {Group: "ev", Name: "echo", Tool: "ev_echo"}, {Group: "ev", Name: "log", Tool: "ev_log"},
		{Group: "two", Name: "get", Tool: "two_get"}, {Group: "two", Name: "get-sum", Tool: "two_get-sum"}, {Group: "two", Name: "a.b", Tool: "two_a.b"}, {Group: "fetch", Name: "fetch", Tool: "fetch_fetch"},
	} {
		src.Members = append(src.Members, m)
		src.Objects = append(src.Objects, Object{Kind: "tools", Name: m.Tool})
	}
	src.Objects = append(src.Objects, Object{Kind: "tools", Name: "my-tool"})
	return src
}

func hinted(t *testing.T, text string) string {
	t.Helper()
	p, list := Compile(everything(text))
	if p == nil {
		return Explain(everything(text).Text, list)
	}
	ran := ranOf(t, p)
	if ran.Calls != nil {
		t.Errorf("%s calls %v", text, ran.Calls)
	}
	return ran.Ended
}

func TestCodeHints_compile(t *testing.T) {
	const brackets = `? a name with characters other than letters, digits and _ needs brackets and quotes`
	for _, c := range []struct{ code, want string }{
		{"await get_sum({})", `get_sum is not defined; did you mean ev["get-sum"] or two["get-sum"]?`},
		{"await get_annotated_message({})", `did you mean ev["get-annotated-message"]?`},
		{"await get_annotated_mesage({})", `did you mean ev["get-annotated-message"]?`},
		{"await tools['get-annotated-message']({})", `tools has no tool "get-annotated-message"` + "\n"},
		{"await tools['get-annotated-message']({})", `did you mean ev["get-annotated-message"]?`},
		{"await ev.get_annotated_message({})", `did you mean ev["get-annotated-message"]?`},
		{"await ev.get-sum({})", `did you mean ev["get-sum"]` + brackets},
		{"await ev.get-annotated-message({})", `did you mean ev["get-annotated-message"]` + brackets},
		{"const n: number = 1\nawait ev.get-sum({})", `did you mean ev["get-sum"]` + brackets},
		{"await two.get-sum({})", `sum is not defined; did you mean two["get-sum"]` + brackets},
		{"await two.a.b({})", `did you mean two["a.b"]` + brackets},
		{"await ev_get-sum({})", `did you mean ev["get-sum"]` + brackets},
		{"await my-tool({})", `did you mean tools["my-tool"]` + brackets},
		{"await tools.my-tool({})", `did you mean tools["my-tool"]` + brackets},
		{"await tools.my_tool({})", `did you mean tools["my-tool"]?`},
		{"await tools['ev_get_sun']({})", `did you mean tools["ev_get-sum"]?`},
		{"await fetch({ url: 'x' })", "fetch is a group of tools, not a tool\n  1 | await fetch({ url: 'x' })\n    |       ^^^^^\n  write await fetch.fetch({ … })"},
		{"await ev({})", "write await ev.NAME({ … })"},
		{"await tools({ name: 'x' })", "write await tools.NAME({ … })"},
		{"const fetch = async () => { throw new Error('mine') }\nawait fetch()", "mine"},
		{"const a = 5, b = 2\nb-c", "c is not defined"},
	} {
		if got := hinted(t, c.code); !strings.Contains(got, c.want) {
			t.Errorf("%s:\n%s\nwant %s", c.code, got, c.want)
		}
	}
}

// Names of other hosts and languages get advice for agent code, unless a tool has the name.
func TestCodeHints_existInCode(t *testing.T) {
	for _, c := range []struct{ code, want string }{
		{"echo({ message: 'x' })", "echo is not defined; did you mean ev.echo?"},
		{"log('x')", "log is not defined; did you mean ev.log?"},
		{"println('x')", "write console.log(…)"},
		{"kv.get('x')", "code can use only its tools"},
		{"json.loads('[]')", "write JSON.parse(text) and JSON.stringify(value)"},
		{"import json\njson.dumps([])", "write JSON.parse(text) and JSON.stringify(value)"},
		{"await asyncio.gather(1)", "write await before a call, and await parallel([…]) for several at once"},
		{"if __name__ == '__main__':\n    main()", "remove the condition"},
		{"if (__name__ == '__main__') { print(1) }", "remove the condition"},
		{"raise ValueError('x')", "write throw new Error(…)"},
		{"throw ValueError('x')", "write new Error(…)"},
		{"const a = []\na.append(1)", "Object has no member 'append'; write push(x)"},
		{"'{}'.format(1)", "Object has no member 'format'; write a template, `text ${x}`"},
		{"({ a: 1 }).items()", "Object has no member 'items'; write Object.entries(x)"},
		{"({ a: 1 }).keys()", "Object has no member 'keys'; of an object write Object.keys(x)"},
		{"from x import (", "nothing can be imported: all tools are available"},
		{strings.Repeat(" ", source.MaxScript+1), "split it into several programs"},
	} {
		got := hinted(t, c.code)
		if p, _ := Compile(everything(c.code)); p != nil {
			if out := runWith(t, call(p, ``), toolHost()); out.Failure != nil {
				got = out.Failure.Explain()
			}
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("%.80s:\n%.800s\nwant %s", c.code, got, c.want)
		}
	}
}

func TestCodeHints_metaTools(t *testing.T) {
	for _, name := range []string{"run_code", "search_tools", "describe_tool", "call_tool"} {
		for _, code := range []string{"await " + name + "({ name: 'x' })", "await tools." + name + "({})", `await tools["` + name + `"]({})`, "await ev." + name + "({})"} {
			if got := hinted(t, code); !strings.Contains(got, "code cannot call it: clients call it directly") {
				t.Errorf("%s: %s", code, got)
			}
		}
	}
	src := everything("await search_tools({})")
	src.Objects = append(src.Objects, Object{Kind: "tools", Name: "search_tools"})
	if p, list := Compile(src); p == nil {
		t.Errorf("a tool of that name: %v", list)
	}
}

// goldens compares the results for the files of an archive with the text after === in each, or
// updates it.
func goldens(t *testing.T, path string, made func(text string) string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	archive := txtar.Parse(data)
	for i := range archive.Files {
		f := &archive.Files[i]
		text, want, _ := strings.Cut(string(f.Data), "\n===\n")
		text = strings.TrimSuffix(text, "\n")
		got := made(text)
		if *update {
			f.Data = []byte(text + "\n===\n" + got + "\n")
		} else if diff := cmp.Diff(strings.TrimSuffix(want, "\n"), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", f.Name, diff)
		}
	}
	if *update {
		if err := os.WriteFile(path, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestExplain_agentErrors(t *testing.T) {
	goldens(t, "testdata/explained.txtar", func(code string) string {
		p, list := Compile(codeOf(code))
		if p == nil {
			return Explain(codeOf(code).Text, list)
		}
		out := runWith(t, call(p, ``), toolHost())
		if out.Failure == nil {
			return shown(out)
		}
		return out.Failure.Explain()
	})
}

func TestExplain_limits(t *testing.T) {
	code := strings.Repeat("True\n", 30)
	_, list := Compile(codeOf(code))
	text := Explain(codeOf(code).Text, list)
	if n := strings.Count(text, "undefined-name at"); n > maxExplained {
		t.Errorf("%d are shown", n)
	}
	var many []string
	for i := range 30 {
		many = append(many, "tools.a"+strings.Repeat("b", i)+"()")
	}
	code = strings.Join(many, "\n")
	_, list = Compile(codeOf(code))
	text = Explain(codeOf(code).Text, list)
	if diff := cmp.Diff([]int{10, 1}, []int{strings.Count(text, "unknown-tool at"), strings.Count(text, "and 20 more")}); diff != "" {
		t.Errorf("(-want +got):\n%s\n%s", diff, text)
	}
}

// canary is code that shows changes by an earlier call.
const canary = "const a = await crm.list({ a: 1 });\n" +
	"[typeof search_web, a, ({}).polluted, Object.keys(tools).length, `${[1, 2].map((x) => x)}`, JSON.stringify({ a: 1 }), new Error('x').name, await parallel([1, () => 2])]"

// Each file of testdata/escapes has code that tries to escape its limits, or to break the readers
// of its output. The text after => is the end of the call, its output and its tool calls. The host
// gets only calls and lines, and the next call is not affected.
func TestCode_escapes(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: one goroutine works here alone")
	}
	t.Parallel()
	files, err := filepath.Glob("testdata/escapes/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	next := compiled(t, codeOf(canary))
	want := ranOf(t, next)
	count := 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		archive := txtar.Parse(data)
		count += len(archive.Files)
		for i := range archive.Files {
			f := &archive.Files[i]
			code, golden, _ := strings.Cut(string(f.Data), "\n=> ")
			code = strings.TrimSuffix(code, "\n")
			got := escapes(t, code)
			if diff := cmp.Diff(want, ranOf(t, next)); diff != "" {
				t.Errorf("%s: the next call (-want +got):\n%s", f.Name, diff)
			}
			if *update {
				f.Data = []byte(code + "\n=> " + got + "\n")
			} else if diff := cmp.Diff(strings.TrimSuffix(golden, "\n"), got); diff != "" {
				t.Errorf("%s: %s\n%s\n(-want +got):\n%s", filepath.Base(file), f.Name, code, diff)
			}
		}
		if *update {
			if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if count < 200 {
		t.Errorf("only %d escapes", count)
	}
}

// escapes returns the effects of code, which must be the same each time.
func escapes(t *testing.T, code string) string {
	t.Helper()
	p, _ := Compile(codeOf(code))
	ran := runCode(t, code)
	if p != nil {
		if diff := cmp.Diff(ran, ranOf(t, p)); diff != "" {
			t.Errorf("%s: once more (-first +second):\n%s", code, diff)
		}
	}
	text := fmt.Sprintf("%.300q", ran.Ended)
	if ran.Stdout != "" {
		text += fmt.Sprintf(", prints %.100q", ran.Stdout)
		if len(ran.Stdout) > 100 {
			text += fmt.Sprintf(" … in all %d bytes", len(ran.Stdout))
		}
	}
	if len(ran.Calls) > 0 {
		text += fmt.Sprintf(", calls %.300q", ran.Calls)
	}
	return text
}
