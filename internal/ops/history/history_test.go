package history_test

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/ops/history"
)

func store(t *testing.T) state.Store {
	s := state.NewMemory(state.Options{})
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func add(t *testing.T, s state.Store, name string, files map[string][]byte) {
	t.Helper()
	if err := history.Add(s, history.Revision{Name: name, Time: time.Unix(0, 0), Files: files}); err != nil {
		t.Fatal(err)
	}
}

func list(t *testing.T, s state.Store) []history.Entry {
	t.Helper()
	entries, err := history.List(s)
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

func TestAdd_keepsTheLastRevisions(t *testing.T) {
	s := store(t)
	for i := range history.MaxRevisions + 5 {
		for range 2 { // two replicas
			add(t, s, fmt.Sprint("r", i), map[string][]byte{"mcpd.hcl": nil, "tools.d/a.hcl": fmt.Append(nil, i)})
		}
	}
	entries := list(t, s)
	if len(entries) != history.MaxRevisions || entries[0].Revision != "r14" || entries[9].Revision != "r5" {
		t.Fatalf("entries: %+v", entries)
	}
	if e := entries[0]; e.Added != 0 || e.Changed != 1 || e.Removed != 0 || strings.Join(e.Names, " ") != "~tools.d/a.hcl" {
		t.Errorf("changes: %+v", e)
	}
	files, err := history.Read(s, entries[9])
	if err != nil || string(files["tools.d/a.hcl"]) != "5" || len(files) != 2 {
		t.Errorf("files %q, error %v", files, err)
	}
	keys, err := s.PairKeys("history", "files/", "", 100)
	if err != nil || len(keys) != history.MaxRevisions {
		t.Errorf("%d stored contents, error %v", len(keys), err)
	}
}

func TestAdd_boundsWhatIsStored(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: it compresses 60 MiB")
	}
	s := store(t)
	noise := func(n int) []byte {
		content := make([]byte, n)
		_, _ = rand.Read(content)
		return content
	}
	for i := range 4 {
		add(t, s, fmt.Sprint("r", i), map[string][]byte{"tools.d/a.txt": noise(5 << 20)})
	}
	if entries := list(t, s); len(entries) != 3 || entries[0].Revision != "r3" {
		t.Errorf("entries of 5 MiB: %+v", entries)
	}
	many := map[string][]byte{}
	for i := range 10_001 {
		many[fmt.Sprintf("tools.d/%d.txt", i)] = nil
	}
	for name, files := range map[string]map[string][]byte{"large": {"tools.d/a.txt": noise(17 << 20)}, "many": many, "no UTF-8": {"tools.d/\xff.txt": nil}} {
		add(t, s, name, files)
		e := list(t, s)[0]
		if e.Revision != name || e.Stored != 0 {
			t.Errorf("%s: %+v", name, e)
		}
		if _, err := history.Read(s, e); !errors.Is(err, history.ErrNotStored) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestAdd_sharesEqualFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: it compresses 18 MiB")
	}
	s := store(t)
	large := make([]byte, 6<<20)
	_, _ = rand.Read(large)
	for i := range 3 {
		add(t, s, fmt.Sprint("r", i), map[string][]byte{"tools.d/a.txt": large, "tools.d/b.txt": fmt.Append(nil, i%2)})
	}
	if entries := list(t, s); len(entries) != 3 || entries[0].Digest != entries[2].Digest {
		t.Errorf("entries: %+v", entries)
	}
}

// racing is a store that another replica uses before or after a change of the index.
type racing struct {
	state.Pairs
	before, after func()
}

func (r racing) ChangePair(space, key string, room state.Room, change func(state.Pair, time.Time) (state.Pair, error)) error {
	if key == "index" {
		r.before()
		defer r.after()
	}
	return r.Pairs.ChangePair(space, key, room, change)
}

func TestAdd_keepsFilesOfOtherReplica(t *testing.T) {
	for name, early := range map[string]bool{"before the index": true, "after the index": false} {
		s := store(t)
		other := func(now bool) func() {
			return func() {
				if now {
					add(t, s, "theirs", map[string][]byte{"mcpd.hcl": []byte("theirs")})
				}
			}
		}
		ours := history.Revision{Name: "ours", Files: map[string][]byte{"mcpd.hcl": []byte("ours")}}
		if err := history.Add(racing{s, other(early), other(!early)}, ours); err != nil {
			t.Fatal(err)
		}
		entries := list(t, s)
		if len(entries) != 2 {
			t.Errorf("%s: %+v", name, entries)
		}
		for _, e := range entries {
			if files, err := history.Read(s, e); err != nil || string(files["mcpd.hcl"]) != e.Revision {
				t.Errorf("%s: %s has %q, error %v", name, e.Revision, files, err)
			}
		}
	}
}

func TestFind(t *testing.T) {
	entries := []history.Entry{{Digest: "aa11", Revision: "3f2a"}, {Digest: "bb22", Revision: "3f91"}, {Digest: "aa11", Revision: "3f2a"}}
	for prefix, want := range map[string]error{"3f2": nil, "bb": nil, "aa": nil, "3f": history.ErrAmbiguous, "": history.ErrNotFound, "x": history.ErrNotFound} {
		e, err := history.Find(entries, prefix)
		if !errors.Is(err, want) || err == nil && !strings.HasPrefix(e.Revision, prefix) && !strings.HasPrefix(e.Digest, prefix) {
			t.Errorf("%q: %+v, error %v, want %v", prefix, e, err, want)
		}
	}
}

func TestRead_damaged(t *testing.T) {
	compressed := func(text []byte) []byte {
		var b bytes.Buffer
		w, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
		_, _ = w.Write(text)
		_ = w.Close()
		return b.Bytes()
	}
	packed := func(value any) []byte {
		text, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		return compressed(text)
	}
	hostile := map[string][]byte{"../../etc/passwd": []byte("x")}
	for name, value := range map[string][]byte{
		"no gzip": []byte("x"), "no JSON": packed("x"), "other files": packed(map[string][]byte{"mcpd.hcl": []byte("y")}),
		"path outside": packed(hostile), "bomb": compressed(make([]byte, 33<<20)),
	} {
		s := store(t)
		add(t, s, "r", map[string][]byte{"mcpd.hcl": []byte("x")})
		e := list(t, s)[0]
		if name == "path outside" {
			e.Digest = history.SumsOf(hostile).Digest()
		}
		put(t, s, "files/"+e.Digest, value)
		if files, err := history.Read(s, e); !errors.Is(err, history.ErrDamaged) {
			t.Errorf("%s: files %q, error %v", name, files, err)
		}
	}
}

func put(t *testing.T, s state.Store, key string, value []byte) {
	t.Helper()
	err := s.ChangePair("history", key, state.Room{Keys: 100, Bytes: 256 << 20}, func(state.Pair, time.Time) (state.Pair, error) {
		return state.Pair{Value: value}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAdd_replacesDamagedIndex(t *testing.T) {
	for _, text := range []string{"x", `[{"digest":"../x"}]`, "[" + strings.Repeat("{},", 20) + "{}]", strings.Repeat("[", 100_000)} {
		s := store(t)
		put(t, s, "index", []byte(text))
		if _, err := history.List(s); !errors.Is(err, history.ErrDamaged) {
			t.Errorf("list %.20q: %v", text, err)
		}
		err := history.Add(s, history.Revision{Name: "r", Files: map[string][]byte{"mcpd.hcl": []byte("x")}})
		if entries := list(t, s); len(entries) != 1 || !errors.Is(err, history.ErrReplaced) {
			t.Errorf("after %.20q: %+v, error %v", text, entries, err)
		}
	}
}
