package diag

import (
	"strings"
	"testing"
)

func TestSuggestFindsTheNearestName(t *testing.T) {
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

func TestSuggestDoesNotDependOnTheOrderOfCandidates(t *testing.T) {
	if a, b := Suggest("cat", []string{"car", "cap"}), Suggest("cat", []string{"cap", "car"}); a != "cap" || b != "cap" {
		t.Error(a, b)
	}
}

func TestSuggestIgnoresHostileNames(t *testing.T) {
	long := strings.Repeat("a", 1_000_000)
	if Suggest(long, []string{long + "b", "a"}) != "" || Suggest("aa", []string{long}) != "" {
		t.Error("a long name was compared")
	}
}

func TestDidYouMeanIsAQuestionOrNothing(t *testing.T) {
	if got := DidYouMean("stgae", []string{"stage"}); got != `did you mean "stage"?` {
		t.Error(got)
	}
	if got := DidYouMean("x", []string{"stage"}); got != "" {
		t.Error(got)
	}
}

func TestSuggestLongerFindsTheNameThatWasShortened(t *testing.T) {
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
