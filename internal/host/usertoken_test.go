package host

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/host/oauth"
	"github.com/mcpd/mcpd/internal/host/secrets"
	"github.com/mcpd/mcpd/scripting"
)

// lodge has brokers, and a store with user tokens.
type lodge struct {
	t       *testing.T
	store   state.Store
	brokers Brokers
	now     time.Time
}

func newLodge(t *testing.T) *lodge {
	l := &lodge{t: t, now: time.Now().Truncate(time.Millisecond)}
	l.store = state.NewMemory(state.Options{Now: func() time.Time { return l.now }})
	l.brokers = NewBrokers(Options{OpenStore: func() (state.Store, error) { return l.store, nil }, LookupEnv: func(string) (string, bool) { return "", false }, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() { _ = l.brokers.Close() })
	return l
}

// keep stores a long-lived token, by secret key and user.
func (l *lodge) keep(key, user string) {
	l.t.Helper()
	end := l.now.AddDate(1, 0, 0).Format(time.RFC3339Nano)
	text := fmt.Sprintf(`{"given":%q,"access":"hunter2","renew":%q,"end":%q}`, l.now.Format(time.RFC3339Nano), end, end)
	if err := newVaultFunc(l.brokers.open, func(string) {})(key).Put(user, []byte(text)); err != nil {
		l.t.Fatal(err)
	}
}

// rows formats tokens as texts.
func rows(tokens []UserToken) (texts []string) {
	for _, t := range tokens {
		texts = append(texts, fmt.Sprint(t.Secret, " ", t.Definition, " ", t.Kind, " ", t.Issuer, " ", t.ID))
	}
	return texts
}

func (l *lodge) wantRows(want ...string) {
	l.t.Helper()
	tokens, err := l.brokers.UserTokens()
	if diff := cmp.Diff(want, rows(tokens)); diff != "" || err != nil {
		l.t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

func TestUserTokens_sorted(t *testing.T) {
	l := newLodge(t)
	l.wantRows()
	given := l.now
	l.keep("crm#1", "key\x00\x00ada")
	l.now = l.now.Add(time.Hour)
	l.keep("mail#2", "jwt\x00https://i\x00ada")
	// Damaged rows are listed, so that they can be dropped.
	row, _ := l.store.Pair(vaultSpace, "crm#1\x00key\x00\x00ada")
	if err := l.store.ChangePair(vaultSpace, "crm#1\x00key\x00\x00bob", vaultLimits, func(state.Pair, time.Time) (state.Pair, error) { return row, nil }); err != nil {
		t.Fatal(err)
	}
	got, err := l.brokers.UserTokens()
	want := []UserToken{
		{Secret: "crm", Definition: "1", Kind: identity.KindKey, ID: "ada", GrantedAt: given, RefreshedAt: given, ExpiresAt: given.Add(vaultTTL)},
		{Secret: "crm", Definition: "1", Kind: identity.KindKey, ID: "bob", RefreshedAt: given, ExpiresAt: given.Add(vaultTTL)},
		{Secret: "mail", Definition: "2", Kind: identity.KindToken, Issuer: "https://i", ID: "ada", GrantedAt: l.now, RefreshedAt: l.now, ExpiresAt: l.now.Add(vaultTTL)},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

func TestUserTokens_pages(t *testing.T) {
	l := newLodge(t)
	for i := range 2*pageSize + 1 {
		key := "crm#1"
		if i == 7 {
			key = "mail#1"
		}
		l.keep(key, fmt.Sprintf("key\x00\x00%04d", i))
	}
	if tokens, err := l.brokers.UserTokens(); len(tokens) != 2*pageSize+1 || err != nil {
		t.Errorf("%d tokens are listed, %v", len(tokens), err)
	}
	if dropped, err := l.brokers.DropUserTokens(TokenFilter{Secret: "crm"}); len(dropped) != 2*pageSize || err != nil {
		t.Errorf("%d tokens are dropped, %v", len(dropped), err)
	}
	l.wantRows("mail 1 key  0007")
}

// Removed definitions are included, and rows of unknown secrets.
func TestDropUserTokens_cache(t *testing.T) {
	l := newLodge(t)
	def := func(id string) secrets.Definition {
		return secrets.Definition{Name: "crm", OAuth: &oauth.Client{AuthorizeURL: "https://l.example.com/a", RedirectURL: "https://m.example.com/oauth/" + id, TokenURL: "https://l.example.com/t", ID: id}}
	}
	old, now := def("old"), def("now")
	_, first := secrets.SplitKey(old.Key())
	_, second := secrets.SplitKey(now.Key())
	const ada, bob = "key\x00\x00ada", "key\x00\x00bob"
	for _, key := range []string{old.Key(), now.Key()} {
		l.keep(key, ada)
		l.keep(key, bob)
	}
	l.keep("gone#1", ada)
	l.brokers.Secrets.Set([]secrets.Definition{old})
	value := func(key, user string) string {
		got, _ := l.brokers.Secrets.Resolve(oauth.WithCaller(t.Context(), oauth.Caller{User: user, DisplayName: user, SupportsForms: true}), key)
		return got
	}
	if value(old.Key(), ada) != "hunter2" {
		t.Fatal("there is no token")
	}
	l.brokers.Secrets.Set([]secrets.Definition{now}) // calls from before still use the other definition
	for _, key := range []string{old.Key(), now.Key()} {
		for _, user := range []string{ada, bob} {
			if value(key, user) != "hunter2" {
				t.Fatalf("no token for %q", user)
			}
		}
	}
	dropped, err := l.brokers.DropUserTokens(TokenFilter{ID: "ada"})
	want := []string{"crm " + first + " key  ada", "crm " + second + " key  ada", "gone 1 key  ada"}
	if first > second {
		want[0], want[1] = want[1], want[0]
	}
	if diff := cmp.Diff(want, rows(dropped)); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	for _, key := range []string{old.Key(), now.Key()} {
		if value(key, ada) != "" || value(key, bob) != "hunter2" {
			t.Errorf("ada has %q and bob %q", value(key, ada), value(key, bob))
		}
	}
	if tokens, _ := l.brokers.UserTokens(); len(tokens) != 2 {
		t.Errorf("left are %v", rows(tokens))
	}
}

// The token is used until then.
func TestDropUserTokens_expiredRow(t *testing.T) {
	l := newLodge(t)
	def := secrets.Definition{Name: "crm", OAuth: &oauth.Client{AuthorizeURL: "https://l.example.com/a", RedirectURL: "https://m.example.com/oauth/x", TokenURL: "https://l.example.com/t"}}
	l.brokers.Secrets.Set([]secrets.Definition{def})
	const ada = "key\x00\x00ada"
	l.keep(def.Key(), ada)
	value := func() string {
		got, _ := l.brokers.Secrets.Resolve(oauth.WithCaller(t.Context(), oauth.Caller{User: ada, DisplayName: "ada", SupportsForms: true}), "crm")
		return got
	}
	if value() != "hunter2" {
		t.Fatal("there is no token")
	}
	l.now = l.now.Add(vaultTTL)
	l.wantRows()
	dropped, err := l.brokers.DropUserTokens(TokenFilter{Secret: "crm"})
	if len(dropped) != 1 || dropped[0].ID != "ada" || err != nil {
		t.Errorf("dropped are %v, %v", rows(dropped), err)
	}
	if got := value(); got != "" {
		t.Errorf("there is %q still", got)
	}
}

func TestUserTokens_storeError(t *testing.T) {
	refused := errors.New("no disk")
	b := NewBrokers(Options{OpenStore: func() (state.Store, error) { return nil, refused }, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() { _ = b.Close() })
	if _, err := b.UserTokens(); !errors.Is(err, refused) {
		t.Errorf("listed: %v", err)
	}
	if _, err := b.DropUserTokens(TokenFilter{Secret: "crm"}); !errors.Is(err, refused) {
		t.Errorf("dropped: %v", err)
	}
}

func TestTokenVault_replaceMissing(t *testing.T) {
	first := func(old []byte) bool { return string(old) == "first" }
	l := newLodge(t)
	v := newVaultFunc(l.brokers.open, func(string) {})("crm#1")
	if there, err := v.Replace("ada", []byte("next"), first); there || err != nil {
		t.Errorf("%v, %v", there, err)
	}
	if value, err := v.Get("ada"); value != nil || err != nil {
		t.Errorf("kept is %q, %v", value, err)
	}
	if err := v.Put("ada", []byte("first")); err != nil {
		t.Fatal(err)
	}
	if there, err := v.Replace("ada", []byte("next"), first); !there || err != nil {
		t.Errorf("%v, %v", there, err)
	}
	if value, err := v.Get("ada"); string(value) != "next" || err != nil {
		t.Errorf("kept is %q, %v", value, err)
	}
	if there, err := v.Replace("ada", []byte("other"), first); there || err != nil {
		t.Errorf("after another: %v, %v", there, err)
	}
	if value, err := v.Get("ada"); string(value) != "next" || err != nil {
		t.Errorf("kept is %q, %v", value, err)
	}
}

// Two brokers share a store, as replicas do: what one changes, the other reads after a message.
func TestReceive_userToken(t *testing.T) {
	store := state.NewMemory(state.Options{})
	var sent []state.Message
	newBrokers := func() Brokers {
		b := NewBrokers(Options{
			OpenStore: func() (state.Store, error) { return store, nil }, LookupEnv: func(string) (string, bool) { return "", false }, Logger: slog.New(slog.DiscardHandler),
			Publish: func(topic state.Topic, names ...string) {
				for _, name := range names {
					sent = append(sent, state.Message{Topic: topic, Name: name})
				}
			},
		})
		t.Cleanup(func() { _ = b.Close() })
		return b
	}
	def := secrets.Definition{Name: "crm", OAuth: &oauth.Client{AuthorizeURL: "https://l.example.com/a", RedirectURL: "https://m.example.com/oauth/x", TokenURL: "https://l.example.com/t", ID: "x"}}
	a, b := newBrokers(), newBrokers()
	b.Secrets.Set([]secrets.Definition{def})
	const ada = "key\x00\x00ada"
	row := def.Key() + "\x00" + ada
	want := func(when, want string) {
		t.Helper()
		if got, _ := b.Secrets.Resolve(oauth.WithCaller(t.Context(), oauth.Caller{User: ada, DisplayName: "ada", SupportsForms: true}), def.Key()); got != want {
			t.Errorf("%s, the token is %q, want %q", when, got, want)
		}
	}
	receive := func(want ...state.Message) {
		t.Helper()
		if diff := cmp.Diff(want, sent); diff != "" {
			t.Errorf("messages (-want +got)\n%s", diff)
		}
		for _, m := range sent {
			b.Receive(m)
		}
		sent = nil
	}
	keep := func(token string) {
		t.Helper()
		end := time.Now().AddDate(1, 0, 0).Format(time.RFC3339Nano)
		if err := newVaultFunc(a.open, func(row string) { a.publish(state.TokenChanged, row) })(def.Key()).Put(ada, fmt.Appendf(nil, `{"access":%q,"renew":%q,"end":%q}`, token, end, end)); err != nil {
			t.Fatal(err)
		}
	}
	want("before any token", "")
	keep("first")
	receive(state.Message{Topic: state.TokenChanged, Name: row})
	want("after a token was stored", "first")
	keep("second")
	b.Receive(state.Message{Topic: state.TokenChanged, Name: "other#1\x00" + ada})
	b.Receive(state.Message{Topic: state.ResourceUpdated, Name: row})
	want("after messages about others", "first")
	b.Receive(state.Message{})
	want("after messages were lost", "second")
	sent = nil
	if dropped, err := a.DropUserTokens(TokenFilter{Secret: "crm"}); len(dropped) != 1 || err != nil {
		t.Fatalf("dropped are %+v, %v", dropped, err)
	}
	want("before the message of the drop", "second")
	receive(state.Message{Topic: state.TokenDropped, Name: `{"secret":"crm"}`})
	want("after the drop", "")
	if dropped, err := a.DropUserTokens(TokenFilter{Secret: "crm"}); len(dropped) != 0 || err != nil {
		t.Errorf("dropped are %+v, %v", dropped, err)
	}
	receive(state.Message{Topic: state.TokenDropped, Name: `{"secret":"crm"}`})
}

// A drop of tokens of one principal, or of one secret, ends no authorization of another at a replica.
func TestReceive_dropOfOthers(t *testing.T) {
	store := state.NewMemory(state.Options{})
	t.Cleanup(func() { _ = store.Close() })
	b := NewBrokers(Options{OpenStore: func() (state.Store, error) { return store, nil }, Logger: slog.New(slog.DiscardHandler)})
	t.Cleanup(func() { _ = b.Close() })
	b.OAuthCallbacks()
	def := secrets.Definition{Name: "crm", OAuth: &oauth.Client{AuthorizeURL: "https://l.example.com/a", RedirectURL: "https://m.example.com/oauth/x", TokenURL: "https://l.example.com/t", ID: "x"}}
	b.Secrets.Set([]secrets.Definition{def})
	prompt := func(user string) string {
		_, err := b.Secrets.Resolve(oauth.WithCaller(t.Context(), oauth.Caller{User: user, DisplayName: user, SupportsForms: true}), def.Key())
		var asked *scripting.HostError
		if !errors.As(err, &asked) || asked.Details == nil {
			t.Fatalf("the consent of %q is not requested: %v", user, err)
		}
		return string(asked.Details)
	}
	const ada, bob = "key\x00\x00ada", "key\x00\x00bob"
	before := map[string]string{ada: prompt(ada), bob: prompt(bob)}
	for _, c := range []struct {
		name string
		ends []string
	}{
		{TokenFilter{Secret: "mail"}.name(), nil},
		{TokenFilter{ID: "eve"}.name(), nil},
		{TokenFilter{ID: "ada"}.name(), []string{ada}},
		{TokenFilter{Secret: "crm", ID: "bob", Kind: identity.KindKey}.name(), []string{bob}},
		{TokenFilter{Secret: "crm"}.name(), []string{ada, bob}},
		{"", []string{ada, bob}},
		{"of another version", []string{ada, bob}},
	} {
		b.Receive(state.Message{Topic: state.TokenDropped, Name: c.name})
		for user, was := range before {
			now := prompt(user)
			if ended := now != was; ended != slices.Contains(c.ends, user) {
				t.Errorf("%q ended the authorization of %q: %t", c.name, user, ended)
			}
			before[user] = now
		}
	}
}
