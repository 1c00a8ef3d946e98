package oauth

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpd/mcpd/scripting"
)

// court is an authorization server, the users who come to it, and a client.
type court struct {
	t      *testing.T
	routed bool // users come back to the front
	users  *Users
	vault  memoryVault
	desk   *httptest.Server

	mu     sync.Mutex
	now    time.Time
	asked  []string // the requests for tokens
	told   []string // of whom tokens were joined and lost, and what the vault had then
	untold error    // why nobody can be told of those that are joined
	code   string   // what the desk answers with an error, "" for none
	during func()   // is done before the desk answers, unless it is nil
	number int

	question []byte // what the user was asked last
}

// memoryVault is a vault without a seal.
type memoryVault struct {
	mu   sync.Mutex
	kept map[string][]byte
	full error // why nothing can be kept
}

func (v *memoryVault) Get(user string) ([]byte, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.kept[user], nil
}

func (v *memoryVault) Put(user string, value []byte) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.kept == nil {
		v.kept = map[string][]byte{}
	}
	if v.full != nil && value != nil {
		return v.full
	}
	v.kept[user] = value
	return nil
}

func (v *memoryVault) Replace(user string, value []byte, follows func([]byte) bool) (bool, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.kept[user] == nil || !follows(v.kept[user]) {
		return false, nil
	}
	v.kept[user] = value
	return true, nil
}

func newCourt(t *testing.T) *court {
	t.Helper()
	return (&court{t: t, now: time.Now()}).open()
}

// open opens the desk.
func (c *court) open() *court {
	t := c.t
	t.Helper()
	c.desk = httptest.NewServer(http.HandlerFunc(c.token))
	t.Cleanup(c.desk.Close)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	back := "http://" + free.Addr().String() + "/back"
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	issuer := New(Options{Transport: func(Client) http.RoundTripper { return transport }, Now: c.clock, Joined: c.joined, Lost: c.lost})
	t.Cleanup(issuer.Close)
	client := Client{
		AuthorizeURL: "https://login.example.com/authorize", RedirectURL: back, TokenURL: c.desk.URL, ID: "mcpd", Secret: "client#1",
		Scopes: []string{"read"}, Params: map[string]string{"resource": "crm"},
	}
	secret := func(context.Context, string) (string, error) { return clientSecret, nil }
	if c.routed {
		client.RedirectURL = "https://mcp.example.com/oauth/crm"
	}
	c.users = issuer.Users("k", client, secret, &c.vault)
	if issuer.Users("k", client, secret, &c.vault) != c.users {
		t.Error("after a reload nobody knows who is on the way")
	}
	return c
}

func (c *court) clock() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// joined is told of tokens.
func (c *court) joined(client, user string) error {
	c.tell(client, user, "joined")
	return c.untold
}

func (c *court) lost(client, user string, why Loss) { c.tell(client, user, string(why)) }

func (c *court) tell(client, user, what string) {
	value, _ := c.vault.Get(user)
	c.told = append(c.told, fmt.Sprintf("%s %s %s %t", client, user, what, value != nil))
}

func (c *court) refuse(code string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.code = code
}

func (c *court) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// token answers as a token server: to the code "good" with the verifier of the
// challenge that the test has put into it, and to refresh tokens.
func (c *court) token(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = r.ParseForm()
	c.asked = append(c.asked, r.PostForm.Get("grant_type")+" "+r.PostForm.Get("refresh_token"))
	w.Header().Set("Content-Type", "application/json")
	if c.during != nil {
		c.during()
	}
	verifier := sha256.Sum256([]byte(r.PostForm.Get("code_verifier")))
	proved := "good"+base64.RawURLEncoding.EncodeToString(verifier[:]) == r.PostForm.Get("code")
	if c.code != "" || r.PostForm.Get("grant_type") == "authorization_code" && !proved {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"error":%q,"error_description":"hunter2"}`, cmp.Or(c.code, "invalid_grant"))
		return
	}
	c.number++
	_, _ = fmt.Fprintf(w, `{"access_token":"access-%d","refresh_token":"refresh-%d","token_type":"bearer","expires_in":3600}`, c.number, c.number)
}

// get returns the token of a user, or the page that they are sent to.
func (c *court) get(user string) (token string, page *url.URL, err error) {
	c.t.Helper()
	token, err = c.users.Token(For(c.t.Context(), Caller{User: user, Here: true}))
	var refused *scripting.HostError
	if !errors.As(err, &refused) || refused.Code != scripting.Consent || refused.Details == nil {
		return token, nil, err
	}
	c.question = refused.Details
	var question struct{ Mode, URL, Message, ElicitationID string }
	if err := json.Unmarshal(refused.Details, &question); err != nil || question.Mode != "url" || question.Message == "" || question.ElicitationID == "" {
		c.t.Fatalf("%s, %v", refused.Details, err)
	}
	page, err = url.Parse(question.URL)
	if err != nil {
		c.t.Fatal(err)
	}
	return token, page, refused
}

// come comes back with a query, and returns what the browser shows.
func (c *court) come(query url.Values) string {
	c.t.Helper()
	return c.browse(http.MethodGet, c.users.client.RedirectURL+"?"+query.Encode(), "")
}

func (c *court) browse(method, address, host string) string {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, address, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	r.Host = host
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(r)
	if err != nil {
		return "no answer"
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return fmt.Sprint(resp.StatusCode, " ", string(body))
}

// allow is a user who lets the client have tokens.
func allow(page *url.URL) url.Values {
	return url.Values{"state": {page.Query().Get("state")}, "code": {"good" + page.Query().Get("code_challenge")}}
}

func TestAUserLetsTheClientHaveATokenOnce(t *testing.T) {
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
	if _, _, err := c.get(""); !errors.Is(err, errNobody) {
		t.Errorf("nobody has %v", err)
	}
}

func TestNobodyComesBackByAnotherWay(t *testing.T) {
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

func TestWhoIsAskedMayRefuse(t *testing.T) {
	for name, test := range map[string]struct {
		query url.Values
		want  string
	}{
		"a refusal":    {url.Values{"error": {"access_denied"}}, "CONSENT: the user did not allow it"},
		"nothing":      {nil, "CONSENT: the user did not allow it"},
		"a wrong code": {url.Values{"code": {"stolen"}}, ": the token server answered 400 (invalid_grant)"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCourt(t)
			_, page, _ := c.get("ada")
			waited := make(chan error, 1)
			go func() {
				_, err := c.users.Token(For(t.Context(), Caller{User: "ada", Here: true, Asked: true}))
				waited <- err
			}()
			query := url.Values{"state": {page.Query().Get("state")}}
			maps.Copy(query, test.query)
			if got := c.come(query); got != "403 "+pageRefused {
				t.Error(got)
			}
			// Who came to wait when the visit was over is asked once more.
			if err := <-waited; err == nil || !strings.HasSuffix(err.Error(), test.want) && !strings.Contains(err.Error(), "has not allowed it yet") || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("who waits is told %v", err)
			}
		})
	}
}

func TestATokenOfAUserIsRenewedWhileTheServerLetsIt(t *testing.T) {
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
	want("access-2") // it holds for half a minute more
	c.pass(time.Minute)
	if _, _, err := c.get("ada"); err == nil || !strings.Contains(err.Error(), "temporarily_unavailable") {
		t.Errorf("got %v", err)
	}
	c.refuse("invalid_grant")
	c.pass(longestPause)
	if _, again, _ := c.get("ada"); again == nil || c.vault.kept["ada"] != nil {
		t.Error("a refresh token that was taken back is kept")
	}
	if got := c.asked[len(c.asked)-1]; got != "refresh_token refresh-2" {
		t.Errorf("asked with %s", got)
	}
}

// TestATokenIsRenewedAlsoWhenItsCallEnds ends the call while the server, which takes
// each refresh token once, has the request.
func TestATokenIsRenewedAlsoWhenItsCallEnds(t *testing.T) {
	c := newCourt(t)
	_, page, _ := c.get("ada")
	c.come(allow(page))
	c.pass(time.Hour)
	ctx, cancel := context.WithCancel(For(t.Context(), Caller{User: "ada", Here: true}))
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

func TestWhoDoesNotComeBackIsForgotten(t *testing.T) {
	c := newCourt(t)
	_, page, _ := c.get("ada")
	c.pass(life)
	if got := c.come(allow(page)); got != "400 "+pageUnknown {
		t.Error(got)
	}
	_, other, _ := c.get("ada")
	if other == nil || other.String() == page.String() {
		t.Error("the old page is given again")
	}
	c.pass(life)
	c.users.leave()
	if got := c.come(allow(other)); got != "no answer" {
		t.Errorf("somebody listens: %s", got)
	}
}

func TestAChangedClientTakesOverWhereUsersComeBack(t *testing.T) {
	c := newCourt(t)
	_, before, _ := c.get("ada")
	changed := c.users.client
	changed.Scopes = []string{"read", "write"}
	old := c.users
	c.users = old.issuer.Users("k2", changed, old.secret, &c.vault)
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
	if _, _, _, err := old.visit(Caller{User: "ada", Here: true}); !errors.Is(err, errReturn) {
		t.Errorf("the old client sends users away still: %v", err)
	}
}

func TestOnlyPagesOfTheirOwnNeedNoGrant(t *testing.T) {
	c := newCourt(t)
	_, page, _ := c.get("ada")
	for user, want := range map[string]bool{"ada": true, "grace": false, "": false} {
		if got := c.users.issuer.Poses(user, c.question); got != want {
			t.Errorf("%q is sent there: %v", user, got)
		}
	}
	address, err := json.Marshal(page.String())
	if err != nil {
		t.Fatal(err)
	}
	other := bytes.Replace(c.question, address, []byte(strings.TrimSuffix(string(address), `"`)+`\u0026x=y"`), 1)
	if bytes.Equal(other, c.question) || c.users.issuer.Poses("ada", other) {
		t.Error("another page is one of theirs")
	}
	if c.users.issuer.Poses("ada", bytes.Replace(c.question, []byte("Allow"), []byte("Please"), 1)) {
		t.Error("other words are theirs")
	}
}
