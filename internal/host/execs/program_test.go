package execs

import (
	"testing"

	"github.com/mcpd/mcpd/internal/language/grant"
)

func TestParse_allocations(t *testing.T) {
	p := Compile(grant.Exec{Name: "git", Argv: []string{"log", "{branch}"}, Params: []grant.Param{{Name: "branch", Pattern: "[a-z]+(/[a-z0-9]{1,8}){0,3}", MaxLength: 80}}})
	payload := []byte(`{"params":{"branch":"main/a1"}}`)
	allocs := testing.AllocsPerRun(100, func() {
		if _, err := p.Parse(payload); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 25 {
		t.Errorf("%v allocations, more than to read one text takes", allocs)
	}
}

func TestCompile_invalidPattern(t *testing.T) {
	p := Compile(grant.Exec{Name: "git", Argv: []string{"{branch}"}, Params: []grant.Param{{Name: "branch", Pattern: ".*)(", MaxLength: 8}}})
	_, err := p.Parse([]byte(`{"params":{"branch":"x"}}`))
	if got := errorText(err); got != "NOT_GRANTED: exec.git: branch does not match its pattern" {
		t.Errorf("got %q", got)
	}
}
