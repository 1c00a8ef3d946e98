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
	for i := range history.Revisions + 5 {
		for range 2 { // two replicas
			add(t, s, fmt.Sprint("r", i), map[string][]byte{"mcpd.hcl": nil, "tools.d/a.hcl": fmt.Append(nil, i)})
		}
	}
	entries := list(t, s)
	if len(entries) != history.Revisions || entries[0].Revision != "r14" || entries[9].Revision != "r5" {
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
	if err != nil || len(keys) != history.Revisions {
		t.Errorf("%d stored contents, error %v", len(keys), err)
	}
}

func TestAdd_boundsWhatIsStored(t *testing.T) {
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
	for name, files := range map[string]map[string][]byte{"large": {"tools.d/a.txt": noise(17 << 20)}, "many": many} {
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

func TestRead_damaged(t *testing.T) {
	packed := func(value any) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		_ = json.NewEncoder(w).Encode(value)
		_ = w.Close()
		return b.Bytes()
	}
	hostile := map[string][]byte{"../../etc/passwd": []byte("x")}
	for name, value := range map[string][]byte{
		"no gzip": []byte("x"), "no JSON": packed("x"), "other files": packed(map[string][]byte{"mcpd.hcl": []byte("y")}),
		"path outside": packed(hostile), "bomb": packed(strings.Repeat(" x", 17<<20)),
	} {
		s := store(t)
		add(t, s, "r", map[string][]byte{"mcpd.hcl": []byte("x")})
		e := list(t, s)[0]
		if name == "path outside" {
			e.Digest = history.Digest(hostile)
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
		add(t, s, "r", map[string][]byte{"mcpd.hcl": []byte("x")})
		if entries := list(t, s); len(entries) != 1 {
			t.Errorf("after %.20q: %+v", text, entries)
		}
	}
}
