package oauth

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestUserTokens_authorization(t *testing.T) {
	c := newCourt(t)
	_, page, _ := c.get("ada")
	if page == nil {
		t.Fatal("nobody was asked")
	}
	query := page.Query()
	if names := slices.Sorted(maps.Keys(query)); strings.Join(names, " ") != "client_id code_challenge code_challenge_method redirect_uri resource response_type scope state" ||
		query.Get("code_challenge_method") != "S256" || query.Get("redirect_uri") != c.users.client.RedirectURL || len(query.Get("state")) != 43 {
		t.Errorf("asked for %v", query)
	}
	if _, again, _ := c.get("ada"); again.String() != page.String() {
		t.Error("a second call sends the user somewhere else")
	}
	if got := c.come(allow(page)); got != "200 "+pageDone {
		t.Error(got)
	}
	for range 2 {
		if token, _, err := c.get("ada"); token != "access-1" || err != nil {
			t.Errorf("got %q and %v", token, err)
		}
	}
	if got := c.come(allow(page)); got != "400 "+pageUnknown {
		t.Errorf("a state is taken twice: %s", got)
	}
	if token, other, _ := c.get("grace"); token != "" || other == nil {
		t.Errorf("another user has %q", token)
	}
	if _, _, err := c.get(""); !errors.Is(err, errUnknownUser) {
		t.Errorf("an unknown user gets %v", err)
	}
}

func TestCallback_otherRequests(t *testing.T) {
	c := newCourt(t)
	_, page, _ := c.get("ada")
	good := c.users.client.RedirectURL + "?" + allow(page).Encode()
	for _, test := range []struct{ method, address, host, want string }{
		{"POST", good, "", "404 "}, {"GET", good, "evil.example:80", "404 "}, {"GET", strings.Replace(good, "/back?", "/back/../x?", 1), "", "404 "},
		{"GET", c.users.client.RedirectURL, "", "400 " + pageUnknown},
		{"GET", c.users.client.RedirectURL + "?code=good&state=" + strings.Repeat("A", 43) + "&redirect_uri=https://evil.example", "", "400 " + pageUnknown},
	} {
		if got := c.browse(test.method, test.address, test.host); got != test.want {
			t.Errorf("%s %s %s: got %s, want %s", test.method, test.address, test.host, got, test.want)
		}
	}
	if got := c.come(allow(page)); got != "200 "+pageDone {
		t.Errorf("the visit is over: %s", got)
	}
}

func TestUserTokens_refused(t *testing.T) {
	for name, test := range map[string]struct {
		query url.Values
		want  string
	}{
		"a refusal":    {url.Values{"error": {"access_denied"}}, "CONSENT: the user denied access"},
		"nothing":      {nil, "CONSENT: the user denied access"},
		"a wrong code": {url.Values{"code": {"stolen"}}, ": the token server answered 400 (invalid_grant)"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCourt(t)
			_, page, _ := c.get("ada")
			waited := make(chan error, 1)
			go func() {
				_, err := c.users.Token(WithCaller(t.Context(), Caller{User: "ada", SameMachine: true, Prompted: true}))
				waited <- err
			}()
			query := url.Values{"state": {page.Query().Get("state")}}
			maps.Copy(query, test.query)
			if got := c.come(query); got != "403 "+pageRefused {
				t.Error(got)
			}
			// A caller that starts waiting after the end is prompted once more.
			if err := <-waited; err == nil || !strings.HasSuffix(err.Error(), test.want) && !strings.Contains(err.Error(), "has not granted access yet") || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the waiting call gets %v", err)
			}
		})
	}
}

func TestUserTokens_renew(t *testing.T) {
	c := newCourt(t)
	_, page, _ := c.get("ada")
	c.come(allow(page))
	want := func(wanted string) {
		t.Helper()
		if token, _, err := c.get("ada"); token != wanted {
			t.Errorf("got %q and %v, want %q", token, err, wanted)
		}
	}
	want("access-1")
	c.pass(59*time.Minute + 30*time.Second)
	want("access-2")
	c.refuse("temporarily_unavailable")
	c.pass(59*time.Minute + 30*time.Second)
	want("access-2") // valid for half a minute more
	c.pass(time.Minute)
	if _, _, err := c.get("ada"); err == nil || !strings.Contains(err.Error(), "temporarily_unavailable") {
		t.Errorf("got %v", err)
	}
	c.refuse("invalid_grant")
	c.pass(maxBackoff)
	if _, again, _ := c.get("ada"); again == nil || c.vault.kept["ada"] != nil {
		t.Error("a revoked refresh token stays stored")
	}
	if got := c.asked[len(c.asked)-1]; got != "refresh_token refresh-2" {
		t.Errorf("asked with %s", got)
	}
}

// The call ends while the server, which accepts each refresh token once, handles the request.
func TestUserTokens_renewAfterCancel(t *testing.T) {
	c := newCourt(t)
	_, page, _ := c.get("ada")
	c.come(allow(page))
	c.pass(time.Hour)
	ctx, cancel := context.WithCancel(WithCaller(t.Context(), Caller{User: "ada", SameMachine: true}))
	c.mu.Lock()
	c.during = cancel
	c.mu.Unlock()
	if token, err := c.users.Token(ctx); token != "" && token != "access-2" || token == "" && !errors.Is(err, context.Canceled) {
		t.Errorf("the call that has ended got %q and %v", token, err)
	}
	if token, _, err := c.get("ada"); token != "access-2" || err != nil {
		t.Errorf("got %q and %v", token, err)
	}
	if n := len(c.asked); n != 2 {
		t.Errorf("the server was asked %d times: %q", n, c.asked)
	}
}

func TestAuthorization_timeout(t *testing.T) {
	c := newCourt(t)
	_, page, _ := c.get("ada")
	c.pass(authorizationTimeout)
	if got := c.come(allow(page)); got != "400 "+pageUnknown {
		t.Error(got)
	}
	_, other, _ := c.get("ada")
	if other == nil || other.String() == page.String() {
		t.Error("the old page is returned again")
	}
	c.pass(authorizationTimeout)
	c.users.cleanUp()
	if got := c.come(allow(other)); got != "no answer" {
		t.Errorf("a listener is still open: %s", got)
	}
}

func TestUsers_sameRedirectURL(t *testing.T) {
	c := newCourt(t)
	_, before, _ := c.get("ada")
	changed := c.users.client
	changed.Scopes = []string{"read", "write"}
	old := c.users
	c.users = old.broker.Users("k2", changed, old.secret, &c.vault)
	_, page, err := c.get("ada")
	if page == nil || page.Query().Get("scope") != "read write" {
		t.Fatalf("sent to %v, %v", page, err)
	}
	if got := c.come(allow(before)); got != "400 "+pageUnknown {
		t.Error(got)
	}
	if got := c.come(allow(page)); got != "200 "+pageDone {
		t.Error(got)
	}
	if _, _, _, err := old.authorization(Caller{User: "ada", SameMachine: true}); !errors.Is(err, errNoCallback) {
		t.Errorf("the old client still starts authorizations: %v", err)
	}
}

func TestIsPrompt(t *testing.T) {
	c := newCourt(t)
	_, page, _ := c.get("ada")
	for user, want := range map[string]bool{"ada": true, "grace": false, "": false} {
		if got := c.users.broker.IsPrompt(user, c.question); got != want {
			t.Errorf("%q is sent there: %v", user, got)
		}
	}
	address, err := json.Marshal(page.String())
	if err != nil {
		t.Fatal(err)
	}
	other := bytes.Replace(c.question, address, []byte(strings.TrimSuffix(string(address), `"`)+`\u0026x=y"`), 1)
	if bytes.Equal(other, c.question) || c.users.broker.IsPrompt("ada", other) {
		t.Error("another page is reported as own")
	}
	if c.users.broker.IsPrompt("ada", bytes.Replace(c.question, []byte("Allow"), []byte("Please"), 1)) {
		t.Error("other words are theirs")
	}
}

// The spelling of the address does not matter.
func TestIsOwnURL(t *testing.T) {
	h := newHall(t)
	issuer := h.users.broker
	for address, want := range map[string]bool{
		h.page("ada").String(): true, "https://login.example.com/authorize": true, "https://mcp.example.com/oauth/crm?state=x&code=y": true,
		"HTTPS://LOGIN.example.com.:443/./x/..//Authorize/?a#b": true, "https://ada@login.example.com/%61uthorize": true,
		`https:\\login.example.com\authorize`: true, "https:login.example.com/authorize": true, "https:///login.example.com/authorize": true,
		" https://login.example.com/authorize": true, "https://login.example.com/authorize ": true, `https://login.example.com/x\..\authorize`: true, "https://login%2eexample.com/authorize": true, "https://login。example.com/authorize": true,
		"https://login.example.com/help": false, "https://login.example.com/help/authorize": false, "https://login.example.com:8443/authorize": false, "https://pay.example.com/authorize": false,
		"https://mcp.example.com/oauth/mail": false, "mailto:ada@login.example.com": false, "https://pay.example.com/ü?to=https://x/": false,
	} {
		if got := issuer.IsOwnURL(address); got != want {
			t.Errorf("%s leads there: %v", address, got)
		}
	}
	issuer.KeepOnly(nil)
	for _, address := range []string{"https://login.example.com/authorize", "no address"} {
		if issuer.IsOwnURL(address) {
			t.Errorf("without a client %s leads there", address)
		}
	}
}
