package diag

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// at returns the range of the first occurrence of s in src.
func at(file, src, s string) Range {
	i := strings.Index(src, s)
	return WholeFile(file, src).Range(i, i+len(s))
}

func printed(t *testing.T, p Printer, l ...Diagnostic) string {
	t.Helper()
	var b bytes.Buffer
	if err := p.Print(&b, l); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestPrinter_layout(t *testing.T) {
	const src = "tool \"t\" {\n  desciption = \"x\"\n}\n"
	p := Printer{Sources: map[string][]byte{"a.hcl": []byte(src)}}
	got := printed(t, p,
		Diagnostic{
			Code: "unknown-argument", Summary: "a tool block has no argument \"desciption\"", Detail: "did you mean \"description\"?\nor another one",
			Range: at("a.hcl", src, "desciption"), Notes: []Note{{at("a.hcl", src, "tool"), "the tool is here"}, {Message: "no place"}},
		},
		Diagnostic{Severity: Warning, Summary: "many lines", Range: at("a.hcl", src, "\"x\"\n}")},
		Diagnostic{Summary: "a file that is not at hand", Range: at("b.hcl", src, "tool")},
		Diagnostic{Summary: "a whole file", Range: Range{File: "c.hcl"}},
		Diagnostic{Summary: "no place", Detail: "do something"},
	)
	want := `a.hcl:2:3: error: a tool block has no argument "desciption" [unknown-argument]
  2 |   desciption = "x"
    |   ^^^^^^^^^^
    = did you mean "description"?
      or another one
    = note: a.hcl:1:1: the tool is here
    = note: no place

a.hcl:2:16: warning: many lines
  2 |   desciption = "x"
    |                ^^^

b.hcl:1:1: error: a file that is not at hand

c.hcl: error: a whole file

error: no place
    = do something
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPrinter_wideCharacters(t *testing.T) {
	for name, c := range map[string]struct{ src, mark, want string }{
		"tabs":            {"\ta\t= b\n", "b", "  1 | \ta\t= b\n    | \t \t  ^\n"},
		"wide characters": {"漢字 = é x", "x", "  1 | 漢字 = é x\n    |          ^\n"},
		"a wide mark":     {"a 漢字", "漢字", "  1 | a 漢字\n    |   ^^^^\n"},
		"combining marks": {"e\u0301 x", "x", "  1 | e\u0301 x\n    |   ^\n"},
		"nothing":         {"a b", "", "  1 | a b\n    | ^\n"},
		"a carriage":      {"a b\r\nc", "b", "  1 | a b\n    |   ^\n"},
		"line end":        {"a\nb", "\n", "  1 | a\n    |  ^\n"},
	} {
		t.Run(name, func(t *testing.T) {
			p := Printer{Sources: map[string][]byte{"x": []byte(c.src)}}
			_, got, _ := strings.Cut(printed(t, p, Diagnostic{Summary: "s", Range: at("x", c.src, c.mark)}), "\n")
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPrinter_longLine(t *testing.T) {
	src := strings.Repeat("a", 100_000) + "HERE" + strings.Repeat("b", 100_000)
	got := printed(t, Printer{Sources: map[string][]byte{"x": []byte(src)}}, Diagnostic{Summary: "s", Range: at("x", src, "HERE")})
	want := "x:1:100001: error: s\n  1 | …" + strings.Repeat("a", 80) + "HERE" + strings.Repeat("b", 116) + "…\n    | " + strings.Repeat(" ", 81) + "^^^^\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPrinter_controlCharacters(t *testing.T) {
	const src = "a\x1b[31m\u202e\u2066\u200f\u0085\u2028b"
	d := Diagnostic{Summary: src, Detail: src, Range: at("x\x1b", src, "b"), Notes: []Note{{Message: src}}}
	got := printed(t, Printer{Sources: map[string][]byte{"x\x1b": []byte(src)}}, d)
	if strings.ContainsAny(got, "\x1b\u202e\u2066\u200f\u0085\u2028") || strings.Count(got, "\n") != 5 {
		t.Errorf("%q", got)
	}
}

func TestPrinter_severalLines(t *testing.T) {
	const src = "test \"t\" {}"
	got := printed(t, Printer{Sources: map[string][]byte{"x": []byte(src)}}, Diagnostic{Code: "test-failed", Summary: "the output is\r\n  {\n\x1b[31m  }\nerror: fine", Detail: "a\nb", Range: at("x", src, "test")})
	want := "x:1:1: error: the output is [test-failed]\n      {\n    \ufffd[31m  }\n    error: fine\n  1 | test \"t\" {}\n    | ^^^^\n    = a\n      b\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPrinter_color(t *testing.T) {
	const src = "a b"
	got := printed(t, Printer{Sources: map[string][]byte{"x": []byte(src)}, Color: true}, Diagnostic{Code: "c", Summary: "s", Range: at("x", src, "b")})
	want := "\x1b[1mx:1:3\x1b[0m: \x1b[1;31merror:\x1b[0m \x1b[1ms\x1b[0m [c]\n\x1b[1;34m  1 |\x1b[0m a b\n\x1b[1;34m    |\x1b[0m   \x1b[1;31m^\x1b[0m\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPrinter_rangeOutsideFile(t *testing.T) {
	for _, r := range []Range{
		{File: "x", Start: Pos{1, 1, 99}, End: Pos{1, 1, 100}}, {File: "x", Start: Pos{1, 1, -1}}, {File: "x", Start: Pos{1, 2, 1}, End: Pos{}},
		{File: "x", Start: Pos{9, 9, 3}, End: Pos{9, 9, 99}},
	} {
		if got := printed(t, Printer{Sources: map[string][]byte{"x": []byte("a\nb")}}, Diagnostic{Summary: "s", Range: r}); !strings.Contains(got, "error: s") {
			t.Errorf("%+v: %q", r, got)
		}
	}
}

func TestList_marshalJSON(t *testing.T) {
	const src = "a\nbé c"
	l := List{
		{
			Severity: Warning, Code: "some-code", Summary: "s", Detail: "d", Range: at("x.hcl", src, "c"),
			Notes: []Note{{at("y.hcl", src, "a"), "first"}, {Message: "second"}},
		},
		{Code: "other", Summary: "t", Range: Range{File: "z.hcl"}},
	}
	got, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"severity":"warning","code":"some-code","summary":"s","detail":"d","file":"x.hcl","start":{"line":2,"column":4},"end":{"line":2,"column":5},` +
		`"notes":[{"message":"first","file":"y.hcl","start":{"line":1,"column":1},"end":{"line":1,"column":2}},{"message":"second"}]},` +
		`{"severity":"error","code":"other","summary":"t","detail":"","file":"z.hcl"}]`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	if got, err := json.Marshal(List(nil)); err != nil || string(got) != "[]" {
		t.Errorf("%s %v", got, err)
	}
}

func TestList_sort(t *testing.T) {
	p := func(file string, line, column int) Range {
		return Range{File: file, Start: Pos{Line: line, Column: column}}
	}
	l := List{
		{Summary: "z", Range: p("b", 1, 1)}, {Summary: "b", Range: p("a", 2, 1)}, {Summary: "w", Severity: Warning, Range: p("a", 2, 1)},
		{Summary: "a", Range: p("a", 10, 1)}, {Summary: "b", Range: p("a", 2, 1)}, {Summary: "c", Range: p("a", 2, 9)}, {Summary: "none"},
	}.Sort()
	var got []string
	for _, d := range l {
		got = append(got, d.String())
	}
	want := []string{"error: none", "a:2:1: error: b", "a:2:1: warning: w", "a:2:9: error: c", "a:10:1: error: a", "b:1:1: error: z"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestList_errOnlyWithErrors(t *testing.T) {
	if (List{{Severity: Warning, Summary: "w"}}).Err() != nil || (List{}).Err() != nil {
		t.Error("Err is not nil for a list of warnings")
	}
	err := List{{Severity: Warning, Summary: "w", Detail: "do"}, {Summary: "e"}}.Err()
	if err == nil || err.Error() != "warning: w; do\nerror: e" {
		t.Error(err)
	}
}
