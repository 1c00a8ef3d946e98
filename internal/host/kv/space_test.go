package kv_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/host/kv"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/scripting"
)

// hostile returns texts that resemble separators.
func hostile() []string {
	texts := []string{
		"a", "A", "aa", "a\x00", "\x00", "\x00a", "a\x00a", "\x00\x00", "/", "a/", "/a", "a/a", "//", "..", "../a", "a/../a", "./a", "a/.", "\\", "..\\a",
		":", "a:a", "::", "|", "a|a", ",", ";", "#", "?", "*", "%", "_", "%00", "%2e%2e%2f", "'", "\"", "';--", "a' OR '1'='1", "' UNION SELECT value FROM pairs --",
		"\n", "a\na", "\r\n", "\t", " ", " a", "a ", "\x01a", "\x02a", "\x04tool", "\x7f", "\u0080", "\u00a0", "é", "e\u0301", "ａ", "а", "K", "\u212a",
		"ſ", "ß", "SS", "İ", "i\u0307", "\u200b", "a\u200b", "\u200da", "\ufeff", "\ufeffa", "\u202e", "\u202ea", "\u2028", "\u2029", "\ufffd", "\ufffe", "\uffff",
		"\U00010000", "\U0010ffff", "\U0001f600", "ﬁ", "fi", "①", "1", "01", "0x1", "1e0", "null", "undefined", "true", "{}", "[]", "__proto__", "constructor", "toString",
		"tool", "principal", "session", "server", "notes", "tool\x00notes", "tool/notes", "\x04tool\x05notes", "\x05notes\x04tool\x01t", "kv.notes", "space", "key",
		"$.a", "${a}", "{{a}}", "a.b", ".a", "a.", "..a", "-", "--", "-a", "~", "^", "&", "&&", "=", "==", "<a>", "(", ")", "@", "user@host", "issuer#id", "a\u00ada",
	}
	for n := range 60 {
		texts = append(texts, strings.Repeat("a", 3+n*8), fmt.Sprintf("a%c", rune(0x300+n)))
	}
	return texts
}

func TestKeys_isolated(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED with -short: one goroutine works here alone")
	}
	for name, l := range map[string]*lab{"memory": newLab(t, state.Options{}), "file": inFile(t)} {
		t.Run(name, func(t *testing.T) { crossNothing(t, l) })
	}
}

// crossNothing stores a distinct value under each hostile key of two spaces, and checks that
// operations on the first space leave the second unchanged.
func crossNothing(t *testing.T, l *lab) {
	keys := hostile()
	if len(keys) < 200 {
		t.Fatalf("only %d keys", len(keys))
	}
	mine, yours := spaceOf(t, notes, kv.Subject{Kind: "tool", Name: "mine"}), spaceOf(t, notes, kv.Subject{Kind: "tool", Name: "yours"})
	for i, key := range keys {
		for space, value := range map[string]string{mine: fmt.Sprintf("mine %d", i), yours: fmt.Sprintf("yours %d", i)} {
			if got := l.do(t, notes, space, "put", map[string]any{"key": key, "value": value, "if_absent": true}); got != `{"done":true}` {
				t.Errorf("key %q is another's: %s", key, got)
			}
		}
	}
	for i, key := range keys {
		value := fmt.Sprintf("mine %d", i)
		for _, step := range []struct {
			op, want string
			payload  map[string]any
		}{
			{"get", fmt.Sprintf(`{"value":%q}`, value), nil},
			{"cas", `{"done":false}`, map[string]any{"expected": fmt.Sprintf("yours %d", i), "value": 1}},
			{"cas", `{"done":true}`, map[string]any{"expected": value, "value": 1}},
			{"incr", `{"value":2}`, nil},
			{"delete", `{"done":true}`, nil},
			{"get", `{}`, nil},
			{"put", `{"done":true}`, map[string]any{"value": value}},
		} {
			payload := map[string]any{"grant": "notes", "key": key}
			for name, member := range step.payload {
				payload[name] = member
			}
			if got := l.do(t, notes, mine, step.op, payload); got != step.want {
				t.Errorf("%s of %q: %s, want %s", step.op, key, got, step.want)
			}
		}
		wantListed(t, l, mine, key)
	}
	for i, key := range keys {
		if got, want := l.do(t, notes, yours, "get", map[string]any{"key": key}), fmt.Sprintf(`{"value":"yours %d"}`, i); got != want {
			t.Errorf("key %q of the other space: %s, want %s", key, got, want)
		}
	}
}

// wantListed checks that a prefix only lists keys that start with it.
func wantListed(t *testing.T, l *lab, space, prefix string) {
	t.Helper()
	var answer struct{ Keys []string }
	if err := json.Unmarshal([]byte(l.do(t, notes, space, "list", map[string]any{"prefix": prefix, "limit": 1000})), &answer); err != nil {
		t.Fatal(err)
	}
	found := false
	for _, key := range answer.Keys {
		found = found || key == prefix
		if !strings.HasPrefix(key, prefix) {
			t.Errorf("the prefix %q lists %q", prefix, key)
		}
	}
	if !found {
		t.Errorf("the prefix %q does not list itself", prefix)
	}
}

func TestDo_invalidKey(t *testing.T) {
	l := newLab(t, state.Options{})
	for _, key := range []string{"", strings.Repeat("a", 513), strings.Repeat("a", 1<<20), strings.Repeat("é", 257)} {
		for _, op := range []string{"get", "put", "delete", "cas", "incr"} {
			if got := l.do(t, notes, "s", op, map[string]any{"key": key, "value": 1}); got != scripting.Invalid {
				t.Errorf("%s of a key of %d bytes: %s", op, len(key), got)
			}
		}
	}
	if got := l.do(t, notes, "s", "put", map[string]any{"key": strings.Repeat("é", 256), "value": 1}); got != `{"done":true}` {
		t.Errorf("the longest key: %s", got)
	}
}

// Each subject has its own space, whatever the names.
func TestSpaceName_unique(t *testing.T) {
	texts := hostile()
	taken := map[string]string{}
	claim := func(who, space string) {
		if other, again := taken[space]; again {
			t.Errorf("%s has the space of %s", who, other)
		}
		taken[space] = who
	}
	for _, name := range []string{"a", "b", "aa"} {
		for i, text := range texts {
			g := grant.KV{Name: name}
			next := texts[(i+1)%len(texts)]
			for _, r := range []kv.Subject{{Kind: "tool", Name: text}, {Kind: "hook", Name: text}, {Kind: "x" + text, Name: next}} {
				g.Scope = grant.ScopeTool
				claim(fmt.Sprintf("%s: %s %q", name, r.Kind, r.Name), spaceOf(t, g, r))
			}
			for _, p := range []identity.Principal{{ID: text}, {Kind: identity.Kind(text)}, {ID: text, Issuer: next}, {ID: text + next}, {ID: text, Kind: identity.Kind(next)}, {ID: next, Kind: identity.Kind(text), Issuer: text}} {
				g.Scope = grant.ScopePrincipal
				who := fmt.Sprintf("%s: principal %q %q %q", name, p.ID, p.Kind, p.Issuer)
				space := spaceOf(t, g, kv.Subject{Caller: identity.Caller{Principal: p}})
				if taken[space] != who {
					claim(who, space)
				}
			}
			g.Scope = grant.ScopeSession
			claim(name+": session "+text, spaceOf(t, g, kv.Subject{Caller: identity.Caller{Source: identity.Source{Session: text}}}))
		}
		claim(name+": server", spaceOf(t, grant.KV{Name: name, Scope: grant.ScopeServer}, kv.Subject{}))
	}
}

func spaceOf(t *testing.T, g grant.KV, r kv.Subject) string {
	t.Helper()
	space, err := kv.SpaceName(g, r)
	if err != nil {
		t.Fatal(err)
	}
	return space
}

func TestSpaceName_scopes(t *testing.T) {
	ada := identity.Caller{Principal: identity.Principal{ID: "ada", Kind: identity.KindLocal}, Source: identity.Source{Session: "1"}}
	claimed := ada
	claimed.Agent = identity.Agent{AgentID: "bob"}
	bob := identity.Caller{Principal: identity.Principal{ID: "bob", Kind: identity.KindLocal}, Source: identity.Source{Session: "2"}}
	runners := []kv.Subject{{Kind: "tool", Name: "a", Caller: ada}, {Kind: "tool", Name: "b", Caller: claimed}, {Kind: "prompt", Name: "a", Caller: bob}}
	for scope, shared := range map[string][3]bool{
		grant.ScopeTool: {}, grant.ScopePrincipal: {0: true}, grant.ScopeSession: {0: true}, grant.ScopeServer: {true, true, true},
	} {
		g := grant.KV{Name: "notes", Scope: scope}
		for i, pair := range [][2]int{{0, 1}, {0, 2}, {1, 2}} {
			if same := spaceOf(t, g, runners[pair[0]]) == spaceOf(t, g, runners[pair[1]]); same != shared[i] {
				t.Errorf("in the scope %s, %+v and %+v share values: %v", scope, runners[pair[0]], runners[pair[1]], same)
			}
		}
	}
}

func TestSpaceName_missing(t *testing.T) {
	for _, scope := range []string{grant.ScopePrincipal, grant.ScopeSession, ""} {
		_, err := kv.SpaceName(grant.KV{Name: "notes", Scope: scope}, kv.Subject{Kind: "tool", Name: "a"})
		var hostErr *scripting.HostError
		if !errors.As(err, &hostErr) {
			t.Errorf("in the scope %q: %v", scope, err)
		}
	}
}
