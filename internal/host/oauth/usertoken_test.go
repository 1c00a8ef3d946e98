package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// count returns the number of token requests.
func (c *court) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.asked)
}

// hold stores a token of a user.
func (c *court) hold(user string, got token) {
	c.t.Helper()
	if err := c.users.storeFirst(&authorization{caller: Caller{User: user}, stage: stageStoring}, got); err != nil {
		c.t.Error(err)
	}
}

// wantAsked checks the token of a user, and the number of token requests.
func (c *court) wantAsked(user, want string, asked int) {
	c.t.Helper()
	token, _, err := c.get(user)
	if got := token + failureIn(err); got != want || c.count() != asked {
		c.t.Errorf("got %q after %d requests, want %q after %d", got, c.count(), want, asked)
	}
}

// failureIn returns the part of an error that describes the token server, without its address.
func failureIn(err error) string {
	if err == nil {
		return ""
	}
	_, failure, _ := strings.Cut(err.Error(), "the token server ")
	return failure
}

func TestUserTokens_backoff(t *testing.T) {
	c := newCourt(t)
	c.hold("ada", token{value: "first", life: time.Hour, refresh: "refresh"})
	c.refuse("server_error")
	c.pass(time.Hour - 2*time.Second)
	c.wantAsked("ada", "first", 1)
	c.wantAsked("ada", "first", 1)
	c.pass(2 * time.Second)
	const failure = "answered 400 (server_error)"
	for i, pause := range []time.Duration{2, 4, 8, 16, 32, 60, 60} {
		c.wantAsked("ada", failure, i+2)
		c.wantAsked("ada", fmt.Sprintf("%s (next attempt in %s)", failure, pause*time.Second), i+2)
		c.pass(pause * time.Second)
	}
	c.refuse("")
	c.wantAsked("ada", "access-1", 9)
	c.wantAsked("ada", "access-1", 9)
}

// lateVault has a callback between a read and its return.
type lateVault struct {
	Vault
	meanwhile func()
}

func (v lateVault) Get(user string) ([]byte, error) {
	value, err := v.Vault.Get(user)
	v.meanwhile()
	return value, err
}

func TestLoad_newerToken(t *testing.T) {
	c := newCourt(t)
	c.users.vault = lateVault{&c.vault, func() { c.hold("ada", token{value: "new", life: time.Hour}) }}
	c.wantAsked("ada", "new", 0)
}

func TestForget_newerToken(t *testing.T) {
	c := newCourt(t)
	c.hold("ada", token{value: "new", life: time.Hour, refresh: "new"})
	if token, err := c.users.forget("ada", storedToken{Access: "old", Refresh: "old"}, LossRejected); token != "new" || err != nil || c.vault.kept["ada"] == nil {
		t.Errorf("there is %q, %v", token, err)
	}
}

func TestUserTokens_unauthorized(t *testing.T) {
	c := newCourt(t)
	c.hold("ada", token{value: "first", life: time.Hour, refresh: "refresh"})
	c.hold("grace", token{value: "hers", life: time.Hour, refresh: "other"})
	refused := func() { c.users.ReportUnauthorized(WithCaller(t.Context(), Caller{User: "ada"})) }
	refused()
	c.wantAsked("ada", "first", 0)
	c.pass(time.Minute)
	refused()
	refused()
	c.wantAsked("ada", "access-1", 1)
	c.pass(59 * time.Second)
	refused()
	c.wantAsked("ada", "access-1", 1)
	c.pass(time.Second)
	refused()
	c.wantAsked("ada", "access-2", 2)
	c.wantAsked("grace", "hers", 2)
}

// Another server with the same vault has obtained the token, and its clock is an hour slow or fast.
func TestUserTokens_clockSkew(t *testing.T) {
	obtained := func(skew time.Duration) *court {
		c := newCourt(t)
		at := c.now.Add(skew)
		value, err := json.Marshal(storedToken{Access: "first", Refresh: "refresh", Given: at, Stored: at, Renew: at.Add(59 * time.Minute), End: at.Add(time.Hour)})
		if err == nil {
			err = c.vault.Put("ada", value)
		}
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	obtained(-time.Hour).wantAsked("ada", "access-1", 1)

	c := obtained(time.Hour)
	refused := func() { c.users.ReportUnauthorized(WithCaller(t.Context(), Caller{User: "ada"})) }
	c.wantAsked("ada", "first", 0)
	c.pass(time.Hour) // the token has expired, and hosts reject it
	refused()
	c.wantAsked("ada", "first", 0)
	c.pass(time.Minute)
	refused()
	c.wantAsked("ada", "access-1", 1)
}

func TestUserTokens_unauthorizedWithoutRefresh(t *testing.T) {
	c := newCourt(t)
	c.hold("ada", token{value: "first", life: time.Hour})
	c.hold("grace", token{value: "hers", life: time.Hour})
	c.pass(time.Minute)
	c.users.ReportUnauthorized(WithCaller(t.Context(), Caller{User: "ada"}))
	c.users.ReportUnauthorized(t.Context())
	if token, page, err := c.get("ada"); page == nil || c.vault.kept["ada"] != nil {
		t.Errorf("ada has %q, %v", token, err)
	}
	c.wantAsked("grace", "hers", 0)
}

// Another caller may use the same principal remotely.
func TestToken_remoteUser(t *testing.T) {
	c := newCourt(t)
	c.hold("ada", token{value: "hers", life: time.Hour})
	if token, err := c.users.Token(WithCaller(t.Context(), Caller{User: "ada", SupportsForms: true})); token != "" || !errors.Is(err, errRemoteUser) {
		t.Errorf("by a socket there is %q, %v", token, err)
	}
	c.wantAsked("ada", "hers", 0)
}

func TestToken_withoutFormsDuringAuthorization(t *testing.T) {
	h := newHall(t)
	page := h.page("ada")
	late, cancel := context.WithTimeout(t.Context(), requestTimeout)
	defer cancel()
	for _, asked := range []bool{false, true} {
		if _, err := h.users.Token(WithCaller(late, Caller{User: "ada", Prompted: asked})); !errors.Is(err, errFormsUnsupported) {
			t.Errorf("asked %v: %v", asked, err)
		}
	}
	code, _ := h.back(page)
	h.types("ada", code)
	if token, err := h.users.Token(WithCaller(t.Context(), Caller{User: "ada"})); token != "access-1" || err != nil {
		t.Errorf("the stored token is %q, %v", token, err)
	}
}
