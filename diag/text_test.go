package diag

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestText_positions(t *testing.T) {
	b := TextBuilder{File: "x"}
	b.Add("é", Pos{Line: 2, Column: 5, Byte: 20})
	b.Add("\n", Pos{Line: 2, Column: 6, Byte: 22})
	b.Add("ab\nc", Pos{Line: 2, Column: 8, Byte: 24})
	text := b.Text()
	var got []Pos
	for _, offset := range []int{-1, 0, 2, 3, 4, 5, 6, 7, 99} {
		got = append(got, text.Pos(offset))
	}
	want := []Pos{{2, 5, 20}, {2, 5, 20}, {2, 6, 22}, {2, 8, 24}, {2, 9, 25}, {2, 10, 26}, {3, 1, 27}, {3, 2, 28}, {3, 2, 28}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if (Text{}).Pos(3) != (Pos{}) || !(Text{}).IsZero() || text.IsZero() || text.Body() != "é\nab\nc" {
		t.Error("the zero text is not IsZero, or this one is")
	}
	if r := text.Range(3, 1); r.Start != r.End || r.File != "x" {
		t.Errorf("range with the end before the start: %+v", r)
	}
	if got := text.All(); got.Start.Byte != 20 || got.End.Byte != 28 {
		t.Errorf("%+v", got)
	}
}

func TestText_offset(t *testing.T) {
	text := WholeFile("x", "aé\nb\n")
	for _, c := range []struct{ line, column, want int }{{1, 1, 0}, {1, 3, 3}, {1, 9, 3}, {2, 1, 4}, {2, 2, 5}, {3, 1, 6}, {9, 1, 6}, {0, 0, 0}} {
		if got := text.Offset(c.line, c.column); got != c.want {
			t.Errorf("line %d column %d is at %d, want %d", c.line, c.column, got, c.want)
		}
	}
}

func TestText_excerpt(t *testing.T) {
	text := NewText("a.hcl", "one\n\ttwo \x1b[2J three\nfour", Pos{Line: 9, Column: 5, Byte: 100})
	for _, c := range []struct {
		start, end int
		want       string
	}{
		{0, 3, "9 | one\n  | ^^^"},
		{5, 8, "10 | \ttwo \ufffd[2J three\n   | \t^^^"},
		{5, 30, "10 | \ttwo \ufffd[2J three\n   | \t^^^^^^^^^^^^^^"},
		{20, 20, "11 | four\n   | ^"},
		{99, 100, ""},
	} {
		if got := text.Excerpt(c.start, c.end); got != c.want {
			t.Errorf("from %d to %d: got\n%s\nwant\n%s", c.start, c.end, got, c.want)
		}
	}
	if got := (Text{}).Excerpt(0, 0); got != "" {
		t.Errorf("excerpt of the zero text: %q", got)
	}
}

func TestSuggest_nearest(t *testing.T) {
	names := []string{"description", "timeout", "title", "run", "read_only", "min", "max", "id"}
	for name, want := range map[string]string{
		"desciption": "description", "descripiton": "description", "Description": "description", "DESCRIPTION": "description",
		"tiemout": "timeout", "titel": "title", "rum": "run", "nur": "", "readonly": "read_only", "mix": "max", "mn": "",
		"ud": "", "x": "", "": "", "something_else": "", "idd": "id",
	} {
		if got := Suggest(name, names); got != want {
			t.Errorf("Suggest(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestSuggest_candidateOrder(t *testing.T) {
	if a, b := Suggest("cat", []string{"car", "cap"}), Suggest("cat", []string{"cap", "car"}); a != "cap" || b != "cap" {
		t.Error(a, b)
	}
}

func TestSuggest_longName(t *testing.T) {
	long := strings.Repeat("a", 1_000_000)
	if Suggest(long, []string{long + "b", "a"}) != "" || Suggest("aa", []string{long}) != "" {
		t.Error("a long name got a suggestion")
	}
}

func TestDidYouMean_text(t *testing.T) {
	if got := DidYouMean("stgae", []string{"stage"}); got != `did you mean "stage"?` {
		t.Error(got)
	}
	if got := DidYouMean("x", []string{"stage"}); got != "" {
		t.Error(got)
	}
}

func TestSuggestLonger_suffix(t *testing.T) {
	names := []string{"files_read_file", "ev_get-sum", "two_get-sum", "crm.list", "refile", "a/b"}
	for name, want := range map[string]string{
		"read_file": "files_read_file", "READ-FILE": "files_read_file", "file": "files_read_file", "get_sum": "ev_get-sum", "list": "crm.list", "b": "a/b",
		"ead_file": "", "crm.list": "", "": "", "other": "",
	} {
		if got := SuggestLonger(name, names); got != want {
			t.Errorf("SuggestLonger(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestDiagnostic_suggestion(t *testing.T) {
	for detail, want := range map[string]string{
		DidYouMean("desciption", []string{"description", "title"}): "description",
		`did you mean "a\"b"? see the manual`:                      `a"b`,
		`write it; did you mean "x"?`:                              "x",
		`did you mean "x`:                                          "",
		`did you mean x?`:                                          "",
		"":                                                         "",
	} {
		if got := (Diagnostic{Detail: detail}).Suggestion(); got != want {
			t.Errorf("the suggestion of %q is %q, want %q", detail, got, want)
		}
	}
}
