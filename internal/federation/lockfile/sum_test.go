package lockfile_test

import (
	"testing"

	"github.com/mcpd/mcpd/internal/federation/lockfile"
)

func TestLocksHaveOneSumAsTheyHaveOneFile(t *testing.T) {
	a, b, other := tool(t, `{"name":"a"}`), tool(t, `{"name":"b"}`), tool(t, `{"name":"a","title":"x"}`)
	none := new(lockfile.Lock)
	locks := []*lockfile.Lock{
		none, none.Pin("github"), none.Pin("git").Pin("hub"), none.Pin("github", a), none.Pin("github", b), none.Pin("github", a, b), none.Pin("github", b).Pin("github", a),
		none.Pin("github", other), none.Pin("gitlab", of(t, "gitlab", `{"name":"a"}`)), none.Pin("github", a).Pin("gitlab", of(t, "gitlab", `{"name":"b"}`)),
		none.Pin("github").Pin("gitlab", of(t, "gitlab", `{"name":"a"}`), of(t, "gitlab", `{"name":"b"}`)),
	}
	for i, l := range locks {
		for j, r := range locks {
			if same := string(l.Encode()) == string(r.Encode()); same != (l.Sum() == r.Sum()) {
				t.Errorf("%d and %d have one file: %t, and one sum: %t", i, j, same, !same)
			}
		}
	}
	read, err := lockfile.Parse(shown(t).Encode())
	if err != nil || read.Sum() != shown(t).Sum() {
		t.Errorf("a lock that was read has another sum, %v", err)
	}
}

// TestASumReadsNoDefinition: builds of catalogs make one of all that is accepted.
func TestASumReadsNoDefinition(t *testing.T) {
	var list []lockfile.Tool
	for _, entry := range entries(2000) {
		list = append(list, tool(t, string(entry)))
	}
	lock := new(lockfile.Lock).Pin("github", list...)
	if n := testing.AllocsPerRun(10, func() { lock.Sum() }); n > 5 {
		t.Errorf("a sum of 2,000 tools allocates %.0f times", n)
	}
}
