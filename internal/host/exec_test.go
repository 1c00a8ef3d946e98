package host

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

func git() grant.Exec {
	return grant.Exec{Name: "git", Path: "/usr/bin/git", Argv: []string{"log", "{branch}"}, Params: []grant.Param{{Name: "branch", Pattern: "[^-].*", MaxLength: 20}}}
}

func TestMocks_exec(t *testing.T) {
	mocks := NewMocks([]Mock{
		{Object: "exec.git", Request: "log main", Body: []byte(`{"stdout":"one"}`)},
		{Object: "exec.git", Request: `log "a b"`, Body: []byte(`{"code":3,"stderr":"no"}`)},
		{Object: "exec.git", Request: "log slow", Error: scripting.TimedOut},
		{Object: "exec.git", Request: "log unused", Body: []byte(`{}`)},
	})
	call := &RunHost{Grants: NewGrants(grant.Set{Exec: []grant.Exec{git()}}), Mocks: mocks}
	for payload, want := range map[string]string{
		`{"grant":"git","params":{"branch":"main"}}`:  `{"code":0,"stderr":"","stdout":"one"}`,
		`{"grant":"git","params":{"branch":"a b"}}`:   `{"code":3,"stderr":"no","stdout":""}`,
		`{"grant":"git","params":{"branch":"slow"}}`:  "TIMEOUT: log slow: the mock refuses",
		`{"grant":"git","params":{"branch":"none"}}`:  "UNAVAILABLE: no mock for exec.git log none",
		`{"grant":"git","params":{"branch":"--all"}}`: "NOT_GRANTED: exec.git: branch does not match its pattern",
		`{"grant":"other","params":{}}`:               "NOT_GRANTED: no exec grant has this name",
		`[]`:                                          "INVALID: the operation cannot be read",
	} {
		answer, err := call.Do(t.Context(), 1, "exec.run", []byte(payload))
		got := string(answer)
		var refusal *scripting.HostError
		if errors.As(err, &refusal) {
			got = refusal.Error()
		} else if err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%s: %s, want %s", payload, got, want)
		}
	}
	calls := mocks.Calls()
	slices.Sort(calls)
	if diff := cmp.Diff([]string{`exec.git log "a b"`, "exec.git log main", "exec.git log none", "exec.git log slow"}, calls); diff != "" {
		t.Errorf("calls (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{`mock "exec.git" "log none" { text = "" }`}, mocks.Missing()); diff != "" {
		t.Errorf("missing (-want +got)\n%s", diff)
	}
	if unused := mocks.Unused(); len(unused) != 1 || unused[0].Request != "log unused" {
		t.Errorf("unused: %v", unused)
	}
}

func TestMocks_execWithoutArguments(t *testing.T) {
	mocks := NewMocks([]Mock{{Object: "exec.date", Body: []byte(`{"stdout":"today"}`)}})
	call := &RunHost{Grants: NewGrants(grant.Set{Exec: []grant.Exec{{Name: "date", Path: "/bin/date"}}}), Mocks: mocks}
	answer, err := call.Do(t.Context(), 1, "exec.run", []byte(`{"grant":"date"}`))
	if err != nil || string(answer) != `{"code":0,"stderr":"","stdout":"today"}` {
		t.Errorf("got %s, %v", answer, err)
	}
	if calls := mocks.Calls(); !slices.Equal(calls, []string{"exec.date"}) {
		t.Errorf("calls are %q", calls)
	}
}

func TestCommandLine_unique(t *testing.T) {
	lists := [][]string{
		nil, {""}, {"", ""}, {" "}, {"a", "b"}, {"a b"}, {`"a`, `b"`}, {`"a b"`}, {`a\`, "b"}, {"a\nb"}, {`a\nb`}, {"'a"}, {"é"}, {"e\u0301"}, {"\x00"}, {`\x00`},
	}
	seen := map[string]int{}
	for i, list := range lists {
		line := commandLine(list)
		if other, again := seen[line]; again {
			t.Errorf("%q and %q are both %s", lists[other], list, line)
		}
		seen[line] = i
	}
	if got := commandLine([]string{"log", "--since=2 days", "main"}); got != `log "--since=2 days" main` {
		t.Errorf("got %s", got)
	}
}
