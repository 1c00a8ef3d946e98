package scripting

import (
	"strings"
	"testing"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/js/esbuild"
)

// everything is code that may call the tools of a server whose names are no identifiers, and
// of one that has names which other languages have.
func everything(text string) Source {
	src := Source{Name: "run_code", Kind: Code, Text: diag.WholeFile("code", text), Transpiler: esbuild.New()}
	for _, m := range []Member{
		{"ev", "get-sum", "ev_get-sum"}, {"ev", "get-annotated-message", "ev_get-annotated-message"}, {"ev", "echo", "ev_echo"}, {"ev", "log", "ev_log"},
		{"two", "get", "two_get"}, {"two", "get-sum", "two_get-sum"}, {"two", "a.b", "two_a.b"}, {"fetch", "fetch", "fetch_fetch"},
	} {
		src.Members = append(src.Members, m)
		src.Objects = append(src.Objects, Object{"tools", m.Tool})
	}
	src.Objects = append(src.Objects, Object{"tools", "my-tool"})
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

func TestHintsAreWhatCanBeWritten(t *testing.T) {
	const brackets = `? a name with other signs than letters, digits and _ stands in brackets and quotes`
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
		{"await fetch({ url: 'x' })", "fetch is a group of tools, and none of them\n  1 | await fetch({ url: 'x' })\n    |       ^^^^^\n  write await fetch.fetch({ … })"},
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

// What code of other hosts and languages has is told as what code has here, unless a tool is
// called so.
func TestHintsOfOtherNamesFitCode(t *testing.T) {
	for _, c := range []struct{ code, want string }{
		{"echo({ message: 'x' })", "echo is not defined; did you mean ev.echo?"},
		{"log('x')", "log is not defined; did you mean ev.log?"},
		{"println('x')", "write console.log(…)"},
		{"kv.get('x')", "code reaches nothing but its tools"},
		{"json.loads('[]')", "write JSON.parse(text) and JSON.stringify(value)"},
		{"import json\njson.dumps([])", "write JSON.parse(text) and JSON.stringify(value)"},
		{"await asyncio.gather(1)", "write await in front of a call, and await parallel([…]) for several at once"},
		{"if __name__ == '__main__':\n    main()", "leave the condition out"},
		{"if (__name__ == '__main__') { print(1) }", "leave the condition out"},
		{"raise ValueError('x')", "write throw new Error(…)"},
		{"throw ValueError('x')", "write new Error(…)"},
		{"const a = []\na.append(1)", "Object has no member 'append'; write push(x)"},
		{"'{}'.format(1)", "Object has no member 'format'; write a template, `text ${x}`"},
		{"({ a: 1 }).items()", "Object has no member 'items'; write Object.entries(x)"},
		{"({ a: 1 }).keys()", "Object has no member 'keys'; of an object write Object.keys(x)"},
		{"from x import (", "nothing can be imported: the tools are there already"},
		{strings.Repeat(" ", MaxBody+1), "do it in several programs"},
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

func TestTheToolsBesideRunCodeAreNoneOfCode(t *testing.T) {
	for _, name := range []string{"run_code", "search_tools", "describe_tool", "call_tool"} {
		for _, code := range []string{"await " + name + "({ name: 'x' })", "await tools." + name + "({})", `await tools["` + name + `"]({})`, "await ev." + name + "({})"} {
			if got := hinted(t, code); !strings.Contains(got, ofKin(name)) {
				t.Errorf("%s: %s", code, got)
			}
		}
	}
	src := everything("await search_tools({})")
	src.Objects = append(src.Objects, Object{"tools", "search_tools"})
	if p, list := Compile(src); p == nil {
		t.Errorf("a tool of that name: %v", list)
	}
}
