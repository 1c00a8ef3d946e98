package authn

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpd/mcpd/identity"
)

// fakeAuthenticator authenticates every request as who, and records the requests.
type fakeAuthenticator struct {
	who   identity.Principal
	err   error
	asked []*http.Request
}

func (t *fakeAuthenticator) authenticate(r *http.Request) (identity.Principal, error) {
	t.asked = append(t.asked, r)
	return t.who, t.err
}

func newTestAccess(t *testing.T, s *fakeAuthenticator) *Access {
	t.Helper()
	_, _, pass, err := Middleware{Authenticator: s.authenticate}.Authenticate(request("Authorization", "Bearer x", "Accept", "*/*"))
	if err != nil {
		t.Fatal(err)
	}
	return pass
}

func keyHolder() identity.Principal {
	return identity.Principal{ID: "ci", Kind: identity.KindKey, Scopes: []string{"read"}, Claims: map[string]any{"key": "k1"}}
}

func TestAccess_check(t *testing.T) {
	for name, change := range map[string]func(*fakeAuthenticator){
		"revoked":       func(s *fakeAuthenticator) { s.err = errors.New("revoked") },
		"another":       func(s *fakeAuthenticator) { s.who.ID = "cd" },
		"fewer rights":  func(s *fakeAuthenticator) { s.who.Scopes = nil },
		"bound now":     func(s *fakeAuthenticator) { s.who.Agent = "bot" },
		"now anonymous": func(s *fakeAuthenticator) { s.who = identity.Anonymous() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &fakeAuthenticator{who: keyHolder()}
				pass := newTestAccess(t, s)
				time.Sleep(recheckInterval)
				if err := pass.Check(); err != nil {
					t.Fatalf("without a change: %v", err)
				}
				change(s)
				if err := pass.Check(); err != nil || len(s.asked) != 2 {
					t.Errorf("authenticated %d times, want 2: %v", len(s.asked), err)
				}
				time.Sleep(recheckInterval)
				for range 2 {
					if err := pass.Check(); !errors.Is(err, ErrAccessRevoked) {
						t.Errorf("access was not revoked: %v", err)
					}
				}
				if len(s.asked) != 3 {
					t.Errorf("authenticated %d times, want 3", len(s.asked))
				}
			})
		})
	}
}

// TestAccess_keepsCredentialOnly: an Access keeps only the credentials of the
// request, and the request loses them.
func TestAccess_keepsCredentialOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeAuthenticator{who: keyHolder()}
		pass := newTestAccess(t, s)
		time.Sleep(recheckInterval)
		if err := pass.Check(); err != nil {
			t.Fatal(err)
		}
		first, again := s.asked[0], s.asked[1]
		if got := again.Header; len(got) != 1 || got.Get("Authorization") != "Bearer x" {
			t.Errorf("authenticated by %v", got)
		}
		if first.Header.Get("Authorization") != "" {
			t.Error("the request still has the credential")
		}
	})
}

func TestAccess_anonymous(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &fakeAuthenticator{who: identity.Anonymous()}
		pass := newTestAccess(t, s)
		time.Sleep(recheckInterval)
		if err := pass.Check(); err != nil {
			t.Errorf("without a change: %v", err)
		}
		s.err = errNoCredential
		time.Sleep(recheckInterval)
		if err := pass.Check(); !errors.Is(err, ErrAccessRevoked) {
			t.Errorf("access was not revoked when a credential was required: %v", err)
		}
	})
}

func TestAccess_noAuthenticator(t *testing.T) {
	_, _, pass, err := Middleware{}.Authenticate(request())
	if pass != nil || err != nil || pass.Check() != nil {
		t.Errorf("access = %v, %v", pass, err)
	}
}

func TestAccess_panic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		_, _, pass, err := Middleware{Authenticator: func(*http.Request) (identity.Principal, error) {
			if calls++; calls > 1 {
				panic("x")
			}
			return keyHolder(), nil
		}}.Authenticate(request())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(recheckInterval)
		if err := pass.Check(); !errors.Is(err, ErrAccessRevoked) {
			t.Errorf("access was not revoked: %v", err)
		}
	})
}
