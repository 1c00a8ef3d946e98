package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/postgrestest"
	"github.com/mcpd/mcpd/internal/ops/control"
)

const limitedConfig = `limit "callers" {
  key   = "principal.id"
  rate  = "10/h"
  burst = 10
}
limit "arguments" {
  tools = ["add"]
  key   = "principal.id + string(args.a)"
  rate  = "4/h"
  burst = 4
}
limit "all" {
  tools       = ["ask"]
  concurrency = 2
}
`

func TestLimits_keysInUse(t *testing.T) {
	t.Parallel()
	a := startControlled(t, limitedConfig)
	for i := range 9 {
		call := toolCall("add", fmt.Sprintf(`{"a":%d,"b":2}`, -9876543210+i%3))
		call.Principal = &identity.Principal{ID: "ada", Kind: identity.KindToken, Issuer: "https://idp.example.com"}
		if i > 5 {
			call.Principal.ID = "bob"
		}
		if result, _ := a.result(t, call); result.Code != "" {
			t.Fatalf("call %d: %+v", i, result)
		}
	}
	var got []control.LimitUse
	a.must(t, control.Limits, nil, &got)
	var lines []string
	got = slices.DeleteFunc(got, func(u control.LimitUse) bool { return u.Limit == "rate" }) // recovers at once
	for _, u := range got {
		lines = append(lines, fmt.Sprintf("%s %s: %s, %d keys, %t", u.Limit, u.Kind, u.Bound, u.Keys, u.Shared))
		if u.Place == nil || u.Place.Line == 0 {
			t.Errorf("%s has no place", u.Limit)
		}
		for _, k := range u.Most {
			if k.Share <= 0 || k.Share > 1 || (k.Key == "") != (k.Hash != "") {
				t.Errorf("%s: %+v", u.Limit, k)
			}
		}
	}
	want := []string{
		"callers rate: 10 calls an hour, 10 at once after a pause, 2 keys, false",
		"arguments rate: 4 calls an hour, 4 at once after a pause, 6 keys, false",
		"all concurrency: 2 running, 0 keys, false",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Fatalf("(-want +got)\n%s", diff)
	}
	ada := got[0].Most[0]
	if ada.Key != "ada" || ada.AuthKind != "jwt" || ada.Issuer != "https://idp.example.com" || ada.Share > 0.6 || ada.Share <= got[0].Most[1].Share || got[0].Most[1].Key != "bob" {
		t.Errorf("got %+v", got[0].Most)
	}
	// A key with arguments is a hash, and so are its parts.
	text, _ := json.Marshal(got[1])
	if strings.Contains(string(text), "9876543") || got[1].Most[0].AuthKind != "jwt" || got[1].Most[0].Hash == got[1].Most[1].Hash {
		t.Errorf("got %s", text)
	}
}

// A response has the limits that are nearest to their bound, and the keys with the largest share.
func TestLimits_bounds(t *testing.T) {
	t.Parallel()
	var config strings.Builder
	for i := range maxLimitUses {
		fmt.Fprintf(&config, "limit \"unused%d\" {\n  tools       = [\"ask\"]\n  concurrency = 2\n}\n", i)
	}
	config.WriteString("limit \"busy\" {\n  tools = [\"add\"]\n  key   = \"principal.id\"\n  rate  = \"10/h\"\n  burst = 10\n}\n")
	a := startControlled(t, config.String())
	for i := range maxKeyUses + 2 {
		for range 1 + i/(maxKeyUses+1) { // the last one calls twice
			call := toolCall("add", `{"a":1,"b":2}`)
			call.Principal = &identity.Principal{ID: fmt.Sprintf("p%d", i), Kind: identity.KindToken, Issuer: "https://idp.example.com"}
			if result, _ := a.result(t, call); result.Code != "" {
				t.Fatalf("call of %s: %+v", call.Principal.ID, result)
			}
		}
	}
	var got []control.LimitUse
	a.must(t, control.Limits, nil, &got)
	busy := slices.IndexFunc(got, func(u control.LimitUse) bool { return u.Limit == "busy" })
	if len(got) != maxLimitUses || busy < 0 || busy > 1 { // another limit is in use, too
		t.Fatalf("%d limits, busy at %d", len(got), busy)
	}
	if most := got[busy].Most; got[busy].Keys != maxKeyUses+2 || len(most) != maxKeyUses || most[0].Key != fmt.Sprintf("p%d", maxKeyUses+1) {
		t.Errorf("%d keys, most %+v", got[busy].Keys, most)
	}
}

// A database counts for all replicas. The keys of known principals have texts, others are hashes.
func TestLimits_keysInDatabase(t *testing.T) {
	t.Parallel()
	database := postgrestest.Start(t, os.Getenv("MCPD_NEED_POSTGRES"))
	const state = `
server { name = "shop" }
state {
  url = secret.database
  key = secret.key
}
secret "database" { file = "database.txt" }
secret "key" { file = "key.txt" }
`
	secrets := func(dir string) {
		for name, text := range map[string]string{"database.txt": database.URL("postgres", ""), "key.txt": "a key of many random characters"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	servers := []*controlledServer{startControlled(t, limitedConfig+state, secrets), startControlled(t, limitedConfig+state, secrets)}
	a := servers[0]
	a.must(t, control.Matrix, control.MatrixQuery{}, &control.MatrixResult{}) // records calls
	for i, id := range []string{"ada", "ada", "bob"} {
		call := toolCall("add", `{"a":-9876543210,"b":2}`)
		call.Principal = &identity.Principal{ID: id, Kind: identity.KindToken, Issuer: "https://idp.example.com"}
		if result, _ := servers[i%2].result(t, call); result.Code != "" {
			t.Fatalf("call %d: %+v", i, result)
		}
	}
	for _, s := range servers {
		var got []control.LimitUse
		s.must(t, control.Limits, nil, &got)
		text, _ := json.Marshal(got)
		if strings.Contains(string(text), "9876543") {
			t.Errorf("got %s", text)
		}
		for _, limit := range []string{"callers", "arguments"} {
			i := slices.IndexFunc(got, func(u control.LimitUse) bool { return u.Limit == limit })
			if u := got[i]; !u.Shared || u.Problem != "" || u.Keys != 2 || len(u.Most) != 2 || u.Most[0].Share <= u.Most[1].Share {
				t.Fatalf("got %+v", u)
			}
			for _, k := range got[i].Most {
				// The other server records no calls.
				if known := s == a && limit == "callers"; known == (k.Hash != "") || known != (k.Issuer == "https://idp.example.com") {
					t.Errorf("%s: got %+v", limit, k)
				}
			}
		}
		if i := slices.IndexFunc(got, func(u control.LimitUse) bool { return u.Limit == "callers" }); s == a && (got[i].Most[0].Key != "ada" || got[i].Most[1].Key != "bob") {
			t.Errorf("got %+v", got[i].Most)
		}
	}
}
