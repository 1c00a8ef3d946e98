package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/federation"
	"github.com/mcpd/mcpd/internal/federation/lockfile"
)

func TestLockAccept_longChangeNeedsForce(t *testing.T) {
	t.Parallel()
	described := func(text string) lockfile.Tool {
		said, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		tool, err := lockfile.ParseTool("up", fmt.Appendf(nil, `{"name":"a","description":%s}`, said))
		if err != nil {
			t.Fatal(err)
		}
		return tool
	}
	drift := func(text string) []federation.Drift {
		return []federation.Drift{{Upstream: "up", Changes: []lockfile.Change{{Kind: lockfile.Changed, Upstream: "up", Name: "a", Old: described("One."), New: described(text)}}}}
	}
	long := drift(strings.Repeat("And more. ", 3000))
	for _, row := range []struct {
		name    string
		a       acceptFlags
		drifts  []federation.Drift
		refusal string
	}{
		{"short", acceptFlags{}, drift("Two."), ""},
		{"long", acceptFlags{}, long, `the change of up "a" is too long to show in full; review it with mcpd lock diff --json, then accept it with --force`},
		{"long, by its hash", acceptFlags{hash: long[0].Changes[0].New.Hash()}, long, `the change of up "a" is too long to show in full; review it with mcpd lock diff --json, then accept it with --force`},
		{"long, by force", acceptFlags{force: true}, long, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			refusal := ""
			if err := row.a.check(row.drifts, []string{"up", "a"}); err != nil {
				refusal = err.Error()
			}
			if refusal != row.refusal {
				t.Errorf("got  %q\nwant %q", refusal, row.refusal)
			}
		})
	}
}
