package host

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/scripting"
)

func TestTokenVault_encrypted(t *testing.T) {
	store := state.NewMemory(state.Options{})
	at := newVaultFunc(func() (state.Store, error) { return store, nil }, func(string) {})
	crm, other := at("crm#1"), at("other#1")
	if value, err := crm.Get("ada"); value != nil || err != nil {
		t.Fatalf("%q, %v", value, err)
	}
	if err := crm.Put("ada", []byte("access-hunter2")); err != nil {
		t.Fatal(err)
	}
	if value, err := crm.Get("ada"); string(value) != "access-hunter2" || err != nil {
		t.Fatalf("%q, %v", value, err)
	}
	sealed, err := store.Pair(vaultSpace, "crm#1\x00ada")
	if err != nil || len(sealed.Value) == 0 || bytes.Contains(sealed.Value, []byte("hunter2")) {
		t.Errorf("kept is %q, %v", sealed.Value, err)
	}
	// A value moved to another user or secret is invalid.
	for _, name := range []string{"crm#1\x00grace", "other#1\x00ada"} {
		if err := store.ChangePair(vaultSpace, name, vaultLimits, func(state.Pair, time.Time) (state.Pair, error) { return sealed, nil }); err != nil {
			t.Fatal(err)
		}
	}
	if value, err := crm.Get("grace"); value != nil || !errors.Is(err, errDamagedVault) {
		t.Errorf("another user has %q, %v", value, err)
	}
	if value, err := other.Get("ada"); value != nil || !errors.Is(err, errDamagedVault) {
		t.Errorf("another secret has %q, %v", value, err)
	}
	if err := crm.Put("ada", nil); err != nil {
		t.Fatal(err)
	}
	if value, err := crm.Get("ada"); value != nil || err != nil {
		t.Errorf("the removed value is %q, %v", value, err)
	}
}

func TestTokenVault_expiry(t *testing.T) {
	now := time.Now()
	store := state.NewMemory(state.Options{Now: func() time.Time { return now }})
	crm := newVaultFunc(func() (state.Store, error) { return store, nil }, func(string) {})("crm#1")
	put := func(user string) error { return crm.Put(user, []byte("access")) }
	for i := range vaultLimits.Keys - 1 { // one row is the encryption key
		if err := put(fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	now = now.Add(vaultTTL / 2)
	if err := put("7"); err != nil {
		t.Error(err)
	}
	if err := put("ada"); !errors.Is(err, state.ErrRoom) {
		t.Errorf("one more than there is room for: %v", err)
	}
	now = now.Add(vaultTTL / 2)
	if err := put("ada"); err != nil {
		t.Error(err)
	}
	for user, want := range map[string]string{"6": "", "7": "access", "ada": "access"} {
		if value, err := crm.Get(user); string(value) != want || err != nil {
			t.Errorf("of %s there is %q, %v", user, value, err)
		}
	}
}

func TestUserToken_onlyForHTTP(t *testing.T) {
	consent := &scripting.HostError{Code: scripting.Consent, Details: []byte(`{}`)}
	for op, want := range map[string]string{"http.request": scripting.Consent, "exec.run": scripting.Denied, "sql.query": scripting.Denied} {
		var refused *scripting.HostError
		if err := onlyForHTTP(op, fmt.Errorf("secret: %w", consent)); !errors.As(err, &refused) || refused.Code != want {
			t.Errorf("%s: %v, want %s", op, err, want)
		}
	}
	if onlyForHTTP("exec.run", nil) != nil {
		t.Error("an answer is refused")
	}
}

func TestPrincipalKey_unauthenticated(t *testing.T) {
	for _, p := range []identity.Principal{{}, identity.Anonymous(), {ID: "ada", Kind: "oidc", Issuer: "https://i"}, {Kind: identity.KindLocal}} {
		if user := (&RunHost{Caller: identity.Caller{Principal: p}}).userKey(); user != "" {
			t.Errorf("%+v is the user %q", p, user)
		}
	}
	if user := (&RunHost{Caller: identity.Caller{Principal: identity.Principal{ID: "ada", Kind: identity.KindLocal}}}).userKey(); user != "local\x00\x00ada" {
		t.Errorf("the user is %q", user)
	}
	if (&RunHost{}).isConsentRequest("elicitation/create", []byte(`{"mode":"url","url":"https://x"}`)) {
		t.Error("without tokens there is a page")
	}
}
