package oauth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/scripting"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// court is an authorization server, its users, and a client.
type court struct {
	t      *testing.T
	routed bool // users return to the front
	users  *UserTokens
	vault  memoryVault
	desk   *httptest.Server

	mu     sync.Mutex
	now    time.Time
	asked  []string // the token requests
	code   string   // the error code of the server, "" for none
	during func()   // called before the server answers, if set
	number int

	question []byte // the last prompt of the user

	// Used alternately by the test and by what it waits for.
	told   []string // users of added and lost tokens, and the vault at that time
	untold error    // the error of OnTokenAdded
}

// memoryVault is a vault without encryption.
type memoryVault struct {
	mu   sync.Mutex
	kept map[string][]byte
	full error // the error of the vault
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
	if v.kept[user] = value; value == nil {
		delete(v.kept, user)
	}
	return true, nil
}

func newCourt(t *testing.T) *court {
	t.Helper()
	return (&court{t: t, now: time.Now()}).open()
}

// open starts the token server.
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
	issuer := New(Options{Transport: func(Client) http.RoundTripper { return transport }, Now: c.clock, OnTokenAdded: c.joined, OnTokenLost: c.lost})
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
		t.Error("a reload loses running authorizations")
	}
	return c
}

func (c *court) clock() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// joined is the OnTokenAdded callback.
func (c *court) joined(client, user string) error {
	c.tell(client, user, "joined")
	return c.untold
}

func (c *court) lost(client, user string, why LossReason) { c.tell(client, user, string(why)) }

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

// token answers as a token server: the code "good" with the verifier of the challenge set by
// the test, and refresh tokens.
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

// get returns the token of a user, or the page in the prompt.
func (c *court) get(user string) (token string, page *url.URL, err error) {
	c.t.Helper()
	token, err = c.users.Token(WithCaller(c.t.Context(), Caller{User: user, SameMachine: true}))
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

// come returns with a query, and returns the text in the browser.
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

// allow is a user who gives consent.
func allow(page *url.URL) url.Values {
	return url.Values{"state": {page.Query().Get("state")}, "code": {"good" + page.Query().Get("code_challenge")}}
}
