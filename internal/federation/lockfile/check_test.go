package lockfile_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/federation/lockfile"
)

// The tools of the tests of Check: a as it was accepted, and as it is otherwise.
const (
	accepted  = `{"name":"a","description":"Reads."}`
	otherwise = `{"name":"a","description":"Writes."}`
	third     = `{"name":"a","description":"Zips."}`
	another   = `{"name":"b"}`
)

func TestVerdicts(t *testing.T) {
	a, x, y, b := tool(t, accepted), tool(t, otherwise), tool(t, third), tool(t, another)
	none := new(lockfile.Lock)
	changed := func(kind lockfile.Kind, old, new lockfile.Tool) lockfile.Change {
		name := old.Name() + new.Name()
		return lockfile.Change{Kind: kind, Upstream: "github", Name: name[:1], Old: old, New: new}
	}
	type tools = []lockfile.Tool
	type changes = []lockfile.Change
	nothing := lockfile.Tool{}
	for _, row := range []struct {
		name   string
		lock   *lockfile.Lock
		listed tools
		mode   lockfile.Mode
		want   lockfile.Verdict
	}{
		{"what an upstream lists first is taken in", none, tools{b, a}, lockfile.FirstUse, lockfile.Verdict{Served: tools{a, b}, First: true}},
		{"but not where everything is asked for", none, tools{a}, lockfile.Strict, lockfile.Verdict{Changes: changes{changed(lockfile.Added, nothing, a)}}},
		{"an upstream that lists nothing is known from then on", none, nil, lockfile.FirstUse, lockfile.Verdict{First: true}},
		{"and what it lists then is not taken in", none.Pin("github"), tools{a}, lockfile.FirstUse, lockfile.Verdict{Changes: changes{changed(lockfile.Added, nothing, a)}}},
		{"nor when it has lost its last tool", none.Pin("github", a).Accept(changed(lockfile.Removed, a, nothing)), tools{a}, lockfile.FirstUse, lockfile.Verdict{Changes: changes{changed(lockfile.Added, nothing, a)}}},
		{"the pins of one upstream say nothing of another", none.Pin("gitlab"), tools{a}, lockfile.FirstUse, lockfile.Verdict{Served: tools{a}, First: true}},
		{"what was accepted is served", none.Pin("github", a, b), tools{b, a}, lockfile.Strict, lockfile.Verdict{Served: tools{a, b}}},
		{"what has changed is not", none.Pin("github", a, b), tools{x, b}, lockfile.FirstUse, lockfile.Verdict{Served: tools{b}, Changes: changes{changed(lockfile.Changed, a, x)}}},
		{"until it is accepted", none.Pin("github", a, b).Accept(changed(lockfile.Changed, a, x)), tools{x, b}, lockfile.Strict, lockfile.Verdict{Served: tools{x, b}}},
		{"what is gone is told of", none.Pin("github", a, b), tools{a}, lockfile.FirstUse, lockfile.Verdict{Served: tools{a}, Changes: changes{changed(lockfile.Removed, b, nothing)}}},
		{"the first one, too", none.Pin("github", a, b), tools{b}, lockfile.FirstUse, lockfile.Verdict{Served: tools{b}, Changes: changes{changed(lockfile.Removed, a, nothing)}}},
		{"all", none.Pin("github", a, b), nil, lockfile.FirstUse, lockfile.Verdict{Changes: changes{changed(lockfile.Removed, a, nothing), changed(lockfile.Removed, b, nothing)}}},
		{"what is listed twice is served once", none.Pin("github", a), tools{a, a}, lockfile.FirstUse, lockfile.Verdict{Served: tools{a}}},
		{"one name of two definitions is not served", none.Pin("github", a), tools{x, a}, lockfile.FirstUse, lockfile.Verdict{Changes: changes{changed(lockfile.Changed, a, x)}}},
		{"nor when none of them is known", none.Pin("github", a), tools{y, x}, lockfile.FirstUse, lockfile.Verdict{Changes: changes{changed(lockfile.Changed, a, x)}}},
		{"nor at first", none, tools{x, a, b}, lockfile.FirstUse, lockfile.Verdict{Served: tools{b}, Changes: changes{changed(lockfile.Added, nothing, a)}, First: true}},
		{"tools of others are none", none.Pin("github", a), tools{of(t, "gitlab", accepted), a}, lockfile.FirstUse, lockfile.Verdict{Served: tools{a}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := row.lock.Check("github", row.listed, row.mode)
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestAcceptingAllChangesLeavesNone, and has everything served, whatever was pinned and is
// listed, in any order.
func TestAcceptingAllChangesLeavesNone(t *testing.T) {
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 4))
		some := func() (list []lockfile.Tool) {
			for _, name := range random.Perm(8)[:random.IntN(8)] {
				list = append(list, tool(t, mustJSON(t, map[string]any{"name": string(rune('a' + name)), "title": string(rune('0' + random.IntN(3)))})))
			}
			return list
		}
		mode := lockfile.Mode(random.IntN(2))
		lock, listed := new(lockfile.Lock).Pin("github", some()...), some()
		before := lock.Check("github", listed, mode)
		after := lock.Accept(before.Changes...).Check("github", listed, mode)
		if len(after.Changes) > 0 || len(after.Served) != len(listed) {
			t.Fatalf("seed %d: %+v", seed, after)
		}
		random.Shuffle(len(listed), func(i, j int) { listed[i], listed[j] = listed[j], listed[i] })
		if diff := cmp.Diff(before, lock.Check("github", listed, mode)); diff != "" {
			t.Fatalf("seed %d: in another order (-want +got)\n%s", seed, diff)
		}
	}
}
