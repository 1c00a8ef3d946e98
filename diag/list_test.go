package diag

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestListsSortByPlaceAndDropRepetitions(t *testing.T) {
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

func TestOnlyErrorsMakeAListAnError(t *testing.T) {
	if (List{{Severity: Warning, Summary: "w"}}).Err() != nil || (List{}).Err() != nil {
		t.Error("a list without errors is no error")
	}
	err := List{{Severity: Warning, Summary: "w", Detail: "do"}, {Summary: "e"}}.Err()
	if err == nil || err.Error() != "warning: w; do\nerror: e" {
		t.Error(err)
	}
}
