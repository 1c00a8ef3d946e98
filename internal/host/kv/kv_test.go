package kv_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/base/state/sqlite"
	"github.com/mcpd/mcpd/internal/host/kv"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lab is a broker with a store and a clock.
type lab struct {
	*kv.Broker
	log bytes.Buffer
	now time.Time
}

func newLab(t testing.TB, o state.Options) *lab {
	t.Helper()
	l := &lab{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	o.Now = func() time.Time { return l.now }
	return l.over(t, state.NewMemory(o))
}

// inFile returns a lab with a file store.
func inFile(t testing.TB) *lab {
	t.Helper()
	store, err := sqlite.Open(filepath.Join(t.TempDir(), "state", "state.db"), state.Options{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return (&lab{}).over(t, store)
}

func (l *lab) over(t testing.TB, store state.Store) *lab {
	t.Cleanup(func() { store.Close() })
	l.Broker = kv.New(func() (state.Store, error) { return store, nil }, slog.New(slog.NewTextHandler(&l.log, nil)))
	return l
}

// notes is the grant of an empty kv block.
var notes = grant.KV{Name: "notes", Scope: grant.ScopeTool, MaxKeys: 1000, MaxValue: 64 << 10, MaxTotal: 10 << 20}

// do returns the answer, or the error code.
func (l *lab) do(t testing.TB, g grant.KV, space, op string, payload any) string {
	t.Helper()
	encoded, err := json.Marshal(payload)
	if err != nil {
		t.Fatal(err)
	}
	return l.raw(t, g, space, op, encoded)
}

func (l *lab) raw(t testing.TB, g grant.KV, space, op string, payload []byte) string {
	t.Helper()
	answer, err := l.Do(t.Context(), g, space, "kv."+op, payload)
	var hostErr *scripting.HostError
	switch {
	case errors.As(err, &hostErr):
		return hostErr.Code
	case err != nil:
		t.Fatalf("%s: %v", op, err)
	}
	return string(answer)
}

// want carries out operations in sequence, in one space.
func (l *lab) want(t *testing.T, g grant.KV, steps ...[3]string) {
	t.Helper()
	for _, step := range steps {
		if got := l.raw(t, g, "s", step[0], []byte(step[1])); got != step[2] {
			t.Errorf("%s %s: %s, want %s", step[0], step[1], got, step[2])
		}
	}
}

func TestPut(t *testing.T) {
	newLab(t, state.Options{}).want(t, notes,
		[3]string{"get", `{"key":"a"}`, `{}`},
		[3]string{"put", `{"key":"a","value":{"b":[1,null]}}`, `{"done":true}`},
		[3]string{"get", `{"key":"a"}`, `{"value":{"b":[1,null]}}`},
		[3]string{"put", `{"key":"a","value":null}`, `{"done":true}`},
		[3]string{"get", `{"key":"a"}`, `{"value":null}`},
		[3]string{"put", `{"key":"a","value":1,"if_absent":true}`, `{"done":false}`},
		[3]string{"get", `{"key":"a"}`, `{"value":null}`},
		[3]string{"put", `{"key":"b","value":1,"if_absent":true}`, `{"done":true}`},
		[3]string{"delete", `{"key":"a"}`, `{"done":true}`},
		[3]string{"delete", `{"key":"a"}`, `{"done":false}`},
		[3]string{"list", `{}`, `{"keys":["b"]}`},
	)
}

func TestCAS(t *testing.T) {
	newLab(t, state.Options{}).want(t, notes,
		[3]string{"cas", `{"key":"a","expected":1,"value":2}`, `{"done":false}`},
		[3]string{"cas", `{"key":"a","expected":null,"value":2}`, `{"done":false}`},
		[3]string{"cas", `{"key":"a","value":null}`, `{"done":true}`},
		[3]string{"cas", `{"key":"a","value":2}`, `{"done":false}`},
		[3]string{"cas", `{"key":"a","expected":null,"value":{"x":1,"y":[2.0]}}`, `{"done":true}`},
		[3]string{"cas", `{"key":"a","expected":{"y":[2],"x":1,"z":0},"value":3}`, `{"done":false}`},
		[3]string{"cas", `{"key":"a","expected":{"y":[2],"x":1},"value":3}`, `{"done":true}`},
		[3]string{"get", `{"key":"a"}`, `{"value":3}`},
	)
}

func TestIncr(t *testing.T) {
	newLab(t, state.Options{}).want(t, notes,
		[3]string{"incr", `{"key":"n"}`, `{"value":1}`},
		[3]string{"incr", `{"key":"n","by":-3}`, `{"value":-2}`},
		[3]string{"incr", `{"key":"n","by":0}`, `{"value":-2}`},
		[3]string{"incr", `{"key":"n","by":9007199254740991}`, `{"value":9007199254740989}`},
		[3]string{"incr", `{"key":"n","by":3}`, scripting.Invalid},
		[3]string{"incr", `{"key":"n","by":9007199254740992}`, scripting.Invalid},
		[3]string{"incr", `{"key":"n","by":0.5}`, scripting.Invalid},
		[3]string{"get", `{"key":"n"}`, `{"value":9007199254740989}`},
		[3]string{"put", `{"key":"f","value":1e3}`, `{"done":true}`},
		[3]string{"incr", `{"key":"f"}`, `{"value":1001}`},
		[3]string{"put", `{"key":"t","value":"1"}`, `{"done":true}`},
		[3]string{"incr", `{"key":"t"}`, scripting.Invalid},
		[3]string{"put", `{"key":"h","value":1.5}`, `{"done":true}`},
		[3]string{"incr", `{"key":"h"}`, scripting.Invalid},
		[3]string{"put", `{"key":"l","value":1e300}`, `{"done":true}`},
		[3]string{"incr", `{"key":"l"}`, scripting.Invalid},
	)
}

func TestList_pages(t *testing.T) {
	l := newLab(t, state.Options{})
	for _, key := range []string{"b", "a/2", "a/1", "a/3", "a"} {
		l.do(t, notes, "s", "put", map[string]any{"key": key, "value": 1})
	}
	l.want(t, notes,
		[3]string{"list", `{"prefix":"a/","limit":2}`, `{"keys":["a/1","a/2"]}`},
		[3]string{"list", `{"prefix":"a/","limit":2,"after":"a/2"}`, `{"keys":["a/3"]}`},
		[3]string{"list", `{"prefix":"c"}`, `{"keys":[]}`},
		[3]string{"list", `{"limit":1001}`, scripting.Invalid},
		[3]string{"list", `{"limit":-1}`, scripting.Invalid},
		[3]string{"list", `{"prefix":"` + strings.Repeat("a", 513) + `"}`, scripting.Invalid},
	)
}

func TestTTL(t *testing.T) {
	l := newLab(t, state.Options{})
	hour := notes
	hour.TTL = time.Hour
	l.want(t, hour,
		[3]string{"put", `{"key":"a","value":1}`, `{"done":true}`},
		[3]string{"put", `{"key":"short","value":1,"ttl_ms":1000}`, `{"done":true}`},
		[3]string{"put", `{"key":"b","value":1,"ttl_ms":3600001}`, scripting.NotGranted},
		[3]string{"put", `{"key":"b","value":1,"ttl_ms":0}`, scripting.Invalid},
		[3]string{"put", `{"key":"b","value":1,"ttl_ms":-1}`, scripting.Invalid},
		[3]string{"incr", `{"key":"n"}`, `{"value":1}`},
	)
	l.now = l.now.Add(time.Second)
	l.want(t, hour, [3]string{"get", `{"key":"short"}`, `{}`})
	l.now = l.now.Add(time.Hour - time.Second - time.Millisecond)
	l.want(t, hour,
		[3]string{"incr", `{"key":"n"}`, `{"value":2}`},
		[3]string{"list", `{}`, `{"keys":["a","n"]}`},
	)
	l.now = l.now.Add(time.Millisecond)
	l.want(t, hour,
		[3]string{"list", `{}`, `{"keys":[]}`},
		[3]string{"cas", `{"key":"a","value":2}`, `{"done":true}`},
		[3]string{"incr", `{"key":"n"}`, `{"value":1}`},
	)
	l.want(t, notes, [3]string{"put", `{"key":"a","value":1,"ttl_ms":31536000001}`, scripting.Invalid})
}

func TestDo_limits(t *testing.T) {
	small := grant.KV{Name: "small", Scope: grant.ScopeTool, MaxKeys: 2, MaxValue: 10, MaxTotal: 20}
	newLab(t, state.Options{}).want(t, small,
		[3]string{"put", `{"key":"a","value":"12345678"}`, `{"done":true}`},
		[3]string{"put", `{"key":"b","value":"123456789"}`, scripting.TooLarge},
		[3]string{"put", `{"key":"b","value":"12345678"}`, scripting.TooLarge},
		[3]string{"put", `{"key":"b","value":"123456"}`, `{"done":true}`},
		[3]string{"incr", `{"key":"c"}`, scripting.TooLarge},
		[3]string{"cas", `{"key":"c","value":1}`, scripting.TooLarge},
		[3]string{"cas", `{"key":"c","expected":5,"value":1}`, `{"done":false}`},
		[3]string{"delete", `{"key":"b"}`, `{"done":true}`},
		[3]string{"incr", `{"key":"c"}`, `{"value":1}`},
		[3]string{"list", `{}`, `{"keys":["a","c"]}`},
	)
}

func TestDo_storeErrors(t *testing.T) {
	l := newLab(t, state.Options{Pairs: state.Limits{Count: 1}})
	l.want(t, notes,
		[3]string{"put", `{"key":"a","value":1}`, `{"done":true}`},
		[3]string{"put", `{"key":"b","value":1}`, scripting.Unavailable},
	)
	broken := kv.New(func() (state.Store, error) { return nil, errors.New("/private/path: no such disk") }, slog.New(slog.NewTextHandler(&l.log, nil)))
	_, err := broken.Do(t.Context(), notes, "s", "kv.get", []byte(`{"key":"a"}`))
	var hostErr *scripting.HostError
	if !errors.As(err, &hostErr) || hostErr.Code != scripting.Unavailable || strings.Contains(hostErr.Message, "private") {
		t.Errorf("error of the script: %v", err)
	}
	for _, want := range []string{"no room for more values", "no such disk"} {
		if !strings.Contains(l.log.String(), want) {
			t.Errorf("the log lacks %q: %s", want, &l.log)
		}
	}
}

func TestIncr_concurrent(t *testing.T) {
	for name, l := range map[string]*lab{"memory": newLab(t, state.Options{}), "file": inFile(t)} {
		const together, times = 8, 20
		var all sync.WaitGroup
		for range together {
			all.Go(func() {
				for range times {
					l.do(t, notes, "s", "incr", map[string]any{"key": "n"})
				}
			})
		}
		all.Wait()
		if got := l.do(t, notes, "s", "get", map[string]any{"key": "n"}); got != fmt.Sprintf(`{"value":%d}`, together*times) {
			t.Errorf("in %s: %s", name, got)
		}
	}
}

func TestDo_malformed(t *testing.T) {
	l := newLab(t, state.Options{})
	for _, payload := range []string{"", "[]", "1", `"text"`, "{", "\xff", `{"key":1}`, `{"key":"a","ttl_ms":"1"}`, "{}", "null", `{"key":"a"}`} {
		if got := l.raw(t, notes, "s", "put", []byte(payload)); got != scripting.Invalid {
			t.Errorf("put %s: %s", payload, got)
		}
	}
	if got := l.raw(t, notes, "s", "drop", []byte(`{"key":"a"}`)); got != scripting.NotGranted {
		t.Errorf("an unknown operation: %s", got)
	}
}

// BenchmarkPut stores values like scripts.
func BenchmarkPut(b *testing.B) {
	for name, l := range map[string]*lab{"memory": newLab(b, state.Options{}), "file": inFile(b)} {
		b.Run(name, func(b *testing.B) {
			payload := []byte(`{"grant":"notes","key":"a","value":{"text":"` + strings.Repeat("x", 200) + `"}}`)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := l.Do(b.Context(), notes, "s", "kv.put", payload); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
