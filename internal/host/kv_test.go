package host_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/host"
	"github.com/mcpd/mcpd/internal/host/kv"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

// keeping grants a lab values of all scopes, in a store.
func (l *lab) keeping(t *testing.T, store state.Store) {
	t.Helper()
	l.Values = kv.New(func() (state.Store, error) { return store, nil }, slog.New(slog.DiscardHandler))
	l.KV = map[string]grant.KV{}
	for _, scope := range grant.Scopes() {
		l.KV[scope] = grant.KV{Name: scope, Scope: scope, MaxKeys: 10, MaxValue: 100, MaxTotal: 1000}
	}
}

func TestKV_grant(t *testing.T) {
	l := newLab(t)
	store := state.NewMemory(state.Options{})
	t.Cleanup(func() { store.Close() })
	l.keeping(t, store)
	for _, test := range []struct{ op, payload, want string }{
		{"kv.put", `{"grant":"tool","key":"a","value":1}`, `{"done":true}`},
		{"kv.get", `{"grant":"tool","key":"a"}`, `{"value":1}`},
		{"kv.get", `{"grant":"server","key":"a"}`, `{}`},
		{"kv.get", `{"grant":"other","key":"a"}`, scripting.NotGranted},
		{"kv.get", `{"key":"a"}`, scripting.NotGranted},
		{"kv.get", `no JSON`, scripting.Invalid},
		{"kv.drop", `{"grant":"tool","key":"a"}`, scripting.NotGranted},
		{"kv.get", `{"grant":"principal","key":"a"}`, scripting.Invalid},
		{"kv.get", `{"grant":"session","key":"a"}`, scripting.Invalid},
	} {
		if got := l.do(t, test.op, test.payload); got != test.want {
			t.Errorf("%s %s: got %s, want %s", test.op, test.payload, got, test.want)
		}
	}
	l.Caller = identity.Caller{Principal: identity.Anonymous(), Source: identity.Source{Session: "1"}}
	for _, scope := range grant.Scopes() {
		l.do(t, "kv.put", `{"grant":"`+scope+`","key":"mine","value":1}`)
	}
	l.Caller, l.Name = identity.Caller{Principal: identity.Principal{ID: "ada"}, Source: identity.Source{Session: "2"}}, "another"
	for scope, want := range map[string]string{"tool": `{}`, "principal": `{}`, "session": `{}`, "server": `{"value":1}`} {
		if got := l.do(t, "kv.get", `{"grant":"`+scope+`","key":"mine"}`); got != want {
			t.Errorf("another tool for another caller finds %s in the scope %s, want %s", got, scope, want)
		}
	}
}

func TestKV_afterEnd(t *testing.T) {
	l := newLab(t)
	store := state.NewMemory(state.Options{})
	t.Cleanup(func() { store.Close() })
	l.keeping(t, store)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Do(ended, 1, "kv.put", []byte(`{"grant":"tool","key":"a","value":1}`)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if got := l.do(t, "kv.get", `{"grant":"tool","key":"a"}`); got != `{}` {
		t.Errorf("it has kept %s", got)
	}
}

func TestMocks_kv(t *testing.T) {
	l := newLab(t)
	l.keeping(t, nil) // no test may reach the values of the server
	l.Mocks = host.NewMocks([]host.Mock{
		{Object: "kv.tool", Request: "a", Body: []byte(`{"b":1}`)},
		{Object: "kv.tool", Request: "list/1", Body: []byte(`1`)},
		{Object: "kv.tool", Request: "unused", Body: []byte(`1`)},
		{Object: "kv.other", Request: "a", Body: []byte(`2`)},
	})
	for _, test := range []struct{ op, payload, want string }{
		{"kv.get", `{"grant":"tool","key":"a"}`, `{"value":{"b":1}}`},
		{"kv.put", `{"grant":"tool","key":"a","value":2}`, `{"done":true}`},
		{"kv.get", `{"grant":"tool","key":"a"}`, `{"value":2}`},
		{"kv.list", `{"grant":"tool","prefix":"list/"}`, `{"keys":["list/1"]}`},
		{"kv.get", `{"grant":"server","key":"a"}`, `{}`},
	} {
		if got := l.do(t, test.op, test.payload); got != test.want {
			t.Errorf("%s %s: got %s, want %s", test.op, test.payload, got, test.want)
		}
	}
	var unused []string
	for _, mock := range l.Mocks.Unused() {
		unused = append(unused, mock.Object+" "+mock.Request)
	}
	if diff := cmp.Diff([]string{"kv.tool unused", "kv.other a"}, unused); diff != "" {
		t.Errorf("unused (-want +got)\n%s", diff)
	}
	if calls := l.Mocks.Calls(); calls != nil {
		t.Errorf("kv operations of a test count as calls: %q", calls)
	}
	l.Mocks = host.NewMocks(nil)
	if got := l.do(t, "kv.get", `{"grant":"tool","key":"a"}`); got != `{}` {
		t.Errorf("another test finds %s", got)
	}
}
