package oauth

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// drop drops the tokens of a user, and checks their number.
func (c *court) drop(user string, want int) {
	c.t.Helper()
	dropped, err := c.users.Drop(func(u string) bool { return u == user })
	if err != nil || len(dropped) != want || want == 1 && dropped[0] != user {
		c.t.Errorf("dropped are %q, %v; want %d of %s", dropped, err, want, user)
	}
}

func TestDrop(t *testing.T) {
	c := newCourt(t)
	c.hold("ada", token{value: "first", life: time.Hour})
	c.hold("bob", token{value: "other", life: time.Hour})
	c.wantAsked("ada", "first", 0)
	c.drop("ada", 1)
	c.drop("ada", 0)
	if token, page, _ := c.get("ada"); token != "" || page == nil {
		t.Errorf("ada's token is %q, page %v", token, page)
	}
	if value, err := c.vault.Get("ada"); value != nil || err != nil {
		t.Errorf("of ada is kept %s, %v", value, err)
	}
	c.wantAsked("bob", "other", 0)
}

// The token stays dropped, whatever the server responds.
func TestDrop_duringRenewal(t *testing.T) {
	for _, code := range []string{"", "server_error", "invalid_grant"} {
		c := newCourt(t)
		c.hold("ada", token{value: "first", life: time.Hour, refresh: "refresh"})
		c.refuse(code)
		c.pass(time.Hour - time.Second) // due for renewal, and still valid
		c.during = func() { c.drop("ada", 1) }
		if token, page, err := c.get("ada"); token != "" || page == nil {
			t.Errorf("%q: ada's token is %q, page %v: %v", code, token, page, err)
		}
		if value, err := c.vault.Get("ada"); value != nil || err != nil {
			t.Errorf("%q: stored token of ada is %s, %v", code, value, err)
		}
		if c.count() != 1 {
			t.Errorf("%q: the server was asked %d times", code, c.count())
		}
	}
}

// The row is removed as by a client of a removed definition.
func TestReplace_rowRemoved(t *testing.T) {
	c := newCourt(t)
	c.hold("ada", token{value: "first", life: time.Hour, refresh: "refresh"})
	if err := c.vault.Put("ada", nil); err != nil {
		t.Fatal(err)
	}
	c.pass(time.Hour)
	if token, page, _ := c.get("ada"); token != "" || page == nil {
		t.Errorf("ada's token is %q, page %v", token, page)
	}
	if value, _ := c.vault.Get("ada"); value != nil {
		t.Errorf("of ada is kept %s", value)
	}
}

// hurried is a vault with a callback during reads.
type hurried struct {
	memoryVault
	during func()
}

func (v *hurried) Get(user string) ([]byte, error) {
	value, err := v.memoryVault.Get(user)
	if during := v.during; during != nil {
		v.during = nil
		during()
	}
	return value, err
}

func TestDrop_duringLoad(t *testing.T) {
	c := newCourt(t)
	v := &hurried{}
	c.users.vault = v
	c.hold("ada", token{value: "first", life: time.Hour})
	c.users.mu.Lock()
	clear(c.users.cache) // as after a restart
	c.users.mu.Unlock()
	v.during = func() {
		_ = v.Put("ada", nil)
		c.drop("ada", 0)
	}
	if token, page, _ := c.get("ada"); token != "" || page == nil {
		t.Errorf("ada's token is %q, page %v", token, page)
	}
}

func TestDrop_duringAuthorization(t *testing.T) {
	h := newHall(t)
	code, _ := h.back(h.page("ada"))
	other, _ := h.back(h.page("bob"))
	_, question, _ := h.token("ada", true)
	h.drop("ada", 0)
	h.users.broker.HandleAnswer("ada", []byte(question), PromptAnswer{Accepted: true, Code: code})
	h.wantKept(0)
	if _, question, _ := h.token("ada", false); !strings.Contains(question, `"mode":"url"`) {
		t.Errorf("ada is asked %q", question)
	}
	h.types("bob", other)
	h.wantToken("bob", "access-2")
}

// The token is about to be stored.
func TestDrop_beforeStore(t *testing.T) {
	c := newCourt(t)
	v, state := c.users.newAuthorization(Caller{User: "ada"})
	c.users.authorizations[state] = v
	c.users.advance(v, stageStoring)
	c.drop("ada", 0)
	if err := c.users.storeFirst(v, token{value: "first", life: time.Hour}); err != errNoCallback {
		t.Errorf("joined: %v", err)
	}
	if value, _ := c.vault.Get("ada"); value != nil {
		t.Errorf("of ada is kept %s", value)
	}
}

func TestTokenCreatedAt_renewal(t *testing.T) {
	c := newCourt(t)
	c.hold("ada", token{value: "first", life: time.Hour, refresh: "refresh"})
	given := c.clock()
	c.pass(time.Hour)
	c.wantAsked("ada", "access-1", 1)
	value, _ := c.vault.Get("ada")
	if got := TokenCreatedAt(value); !got.Equal(given) {
		t.Errorf("given at %s, want %s", got, given)
	}
	old, _ := json.Marshal(map[string]string{"access": "a"})
	if got := []time.Time{TokenCreatedAt(old), TokenCreatedAt(nil), TokenCreatedAt([]byte("{"))}; slices.ContainsFunc(got, func(t time.Time) bool { return !t.IsZero() }) {
		t.Errorf("a value without a time returns %v", got)
	}
}

// A new consent arrived after the drop, while the token server was slow.
func TestReplace_newConsent(t *testing.T) {
	c := newCourt(t)
	c.hold("ada", token{value: "first", life: time.Hour, refresh: "refresh"})
	c.refuse("")
	c.pass(time.Hour - time.Second)
	c.during = func() {
		c.mu.Unlock()
		defer c.mu.Lock()
		c.during = nil
		c.drop("ada", 1)
		v, state := c.users.newAuthorization(Caller{User: "ada"})
		c.users.mu.Lock()
		c.users.authorizations[state] = v
		c.users.advance(v, stageStoring)
		c.users.mu.Unlock()
		if err := c.users.storeFirst(v, token{value: "anew", life: time.Hour, refresh: "another"}); err != nil {
			t.Error(err)
		}
		c.users.mu.Lock()
		c.users.end(v, nil)
		c.users.mu.Unlock()
	}
	if got, _, err := c.get("ada"); got != "anew" || err != nil {
		t.Errorf("the token is %q, %v", got, err)
	}
	if kept, err := c.vault.Get("ada"); !strings.Contains(string(kept), `"anew"`) || err != nil {
		t.Errorf("the vault has %s, %v", kept, err)
	}
}

// Another server with the same vault has renewed the token, and the provider has rejected the old one.
func TestRenew_byOtherServer(t *testing.T) {
	c := newCourt(t)
	c.hold("ada", token{value: "first", life: time.Hour, refresh: "refresh"})
	c.refuse("invalid_grant")
	c.pass(time.Hour)
	c.during = func() {
		end := c.now.Add(time.Hour)
		value, err := json.Marshal(storedToken{Access: "second", Refresh: "next", Renew: end, End: end})
		if err != nil {
			t.Error(err)
		}
		if err := c.vault.Put("ada", value); err != nil {
			t.Error(err)
		}
	}
	if token, _, err := c.get("ada"); token != "second" || err != nil {
		t.Errorf("ada's token is %q, %v", token, err)
	}
	if value, _ := c.vault.Get("ada"); !strings.Contains(string(value), `"second"`) {
		t.Errorf("of ada is kept %s", value)
	}
}

// A message of another server arrives while a token is stored.
func TestReload_whileStored(t *testing.T) {
	for _, user := range []string{"ada", ""} {
		c := newCourt(t)
		c.hold("ada", token{value: "first", life: time.Hour})
		before := c.users.drops()
		c.users.Reload(func(of string) bool { return user == "" || of == user }, true)
		c.users.cacheNew("ada", storedToken{Access: "stored before", End: c.now.Add(time.Hour)}, before)
		if token, _, err := c.get("ada"); token != "first" || err != nil {
			t.Errorf("ada's token is %q, %v", token, err)
		}
	}
}

// Callers wait for the renewal of another one, and use its outcome.
func TestUserTokens_renewOnce(t *testing.T) {
	for name, refused := range map[string]string{"renewed": "", "failed": "temporarily_unavailable"} {
		t.Run(name, func(t *testing.T) {
			c := newCourt(t)
			c.hold("ada", token{value: "first", life: time.Hour, refresh: "refresh"})
			if refused != "" {
				c.refuse(refused)
			}
			c.pass(time.Hour)
			ctx := WithCaller(t.Context(), Caller{User: "ada", SameMachine: true})
			var calls sync.WaitGroup
			tokens, errs := make([]string, 8), make([]error, 8)
			for i := range tokens {
				calls.Go(func() { tokens[i], errs[i] = c.users.Token(ctx) })
			}
			calls.Wait()
			for i := range tokens {
				if tokens[i] != tokens[0] || (tokens[i] == "") != (refused != "") || (errs[i] == nil) != (refused == "") {
					t.Errorf("a call got %q and %v", tokens[i], errs[i])
				}
			}
			if len(c.asked) != 1 {
				t.Errorf("the server was asked %d times", len(c.asked))
			}
		})
	}
}
