package authn

import (
	"encoding/json"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/identity"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAnonymous(t *testing.T) {
	r := httptest.NewRequest("GET", "/", nil)
	r.Header.Set("Authorization", "Bearer x")
	r.Header.Set("X-Agent-Id", "root")
	got, err := Anonymous()(r)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"id":"anonymous","kind":"anonymous","scopes":[],"groups":[],"claims":{}}`; string(text) != want {
		t.Errorf("principal = %s, want %s", text, want)
	}
}

func TestLocalPrincipal(t *testing.T) {
	rows := []struct {
		uid, name string
		want      identity.Principal
	}{
		{"1000", "ada", identity.Principal{ID: "ada", Claims: map[string]any{"uid": "1000", "name": "ada"}}},
		{"1000", "", identity.Principal{ID: "1000", Claims: map[string]any{"uid": "1000"}}},
		{"", "ada", identity.Principal{ID: "ada", Claims: map[string]any{"name": "ada"}}},
		{"", "", identity.Principal{ID: "local", Claims: map[string]any{}}},
	}
	for _, r := range rows {
		r.want.Kind, r.want.Scopes, r.want.Groups = identity.KindLocal, []string{}, []string{}
		if diff := cmp.Diff(r.want, LocalPrincipal(r.uid, r.name)); diff != "" {
			t.Errorf("uid %q, name %q (-want +got):\n%s", r.uid, r.name, diff)
		}
	}
}

func TestLocalPrincipal_ownClaims(t *testing.T) {
	LocalPrincipal("1000", "ada").Claims["admin"] = true
	if _, shared := LocalPrincipal("1000", "ada").Claims["admin"]; shared {
		t.Error("two principals share their claims")
	}
}
