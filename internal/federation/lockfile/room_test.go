package lockfile_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/federation/lockfile"
)

// made are the tools of long so far, by their upstreams: each takes its time.
var made = struct {
	sync.Mutex
	of map[string][]lockfile.Tool
}{of: map[string][]lockfile.Tool{}}

// long returns n tools that each take most of what one may.
func long(t testing.TB, upstream string, n int) []lockfile.Tool {
	t.Helper()
	made.Lock()
	defer made.Unlock()
	for i := len(made.of[upstream]); i < n; i++ {
		made.of[upstream] = append(made.of[upstream], of(t, upstream, fmt.Sprintf(`{"name":"t%d","inputSchema":{"minimum":0.%s}}`, i, strings.Repeat("1", 250<<10))))
	}
	return slices.Clone(made.of[upstream][:n])
}

// huge returns a lock that is longer than a file may be.
func huge(t testing.TB) *lockfile.Lock {
	return new(lockfile.Lock).Pin("known", long(t, "known", 263)...)
}

func TestTheLengthOfAFileIsKnownWithoutMakingIt(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: one goroutine works here alone")
	}
	for name, lock := range map[string]*lockfile.Lock{"empty": new(lockfile.Lock), "shown": shown(t), "long": new(lockfile.Lock).Pin("lab", long(t, "lab", 2)...)} {
		file := lock.Encode()
		read, err := lockfile.Parse(file)
		if err != nil {
			t.Fatal(err)
		}
		if lock.Len() != len(file) || read.Len() != len(file) {
			t.Errorf("%s: the file has %d bytes, said are %d, and %d of what is read", name, len(file), lock.Len(), read.Len())
		}
	}
	lock := huge(t)
	if n := testing.AllocsPerRun(1, func() { lock.Len() }); n > 10 {
		t.Errorf("the length of 263 tools allocates %.0f times", n)
	}
}

func TestWhatIsTooLongTakesTheRoomOfNoOther(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: one goroutine works here alone")
	}
	before := new(lockfile.Lock).Pin("known", long(t, "known", 200)...)
	kept := new(lockfile.Lock).
		Pin("a-long", long(t, "a-long", 63)...).
		Pin("known", of(t, "known", `{"name":"other"}`)).
		Pin("little", of(t, "little", `{"name":"a"}`)).
		Pin("longer", long(t, "longer", 64)...).
		Pin("z", of(t, "z", `{"name":"a"}`))
	got := before.Fill(kept)
	if diff := cmp.Diff([]string{"known", "little", "z"}, got.Upstreams()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(contents(before)["known"], got.Tools("known")); diff != "" {
		t.Error("what was known is another")
	}
	if again := got.Fill(kept); again != got {
		t.Errorf("a lock without room becomes one of %v", again.Upstreams())
	}
	if got := new(lockfile.Lock).Pin("known", long(t, "known", 100)...).Fill(kept).Upstreams(); !cmp.Equal(got, []string{"a-long", "known", "little", "longer", "z"}) {
		t.Errorf("with room for all, there are %v", got)
	}
}
