package oauth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"golang.org/x/oauth2"

	"github.com/mcpd/mcpd/scripting"
)

// A Vault keeps what a user has let a client have, sealed.
type Vault interface {
	// Get returns what is kept of a user, nil for nothing.
	Get(user string) ([]byte, error)
	// Put keeps a value of a user, and nothing when it is nil.
	Put(user string, value []byte) error
}

// visit is one user on the way to the authorization server and back.
type visit struct {
	user, verifier, url, id string
	expires                 time.Time
	// back says that the user is back, and the token on its way; guarded by the
	// mutex of the Users.
	back bool
	done chan struct{}
	err  error // may be read when done is closed
}

// stage is how far a user is on a visit.
type stage int

const (
	sent stage = iota // just now
	away
	arrived
)

// life is how long a user may take to come back.
const life = 10 * time.Minute

// kept is what a vault keeps of a user.
type kept struct {
	Access  string    `json:"access"`
	Refresh string    `json:"refresh,omitempty"`
	Renew   time.Time `json:"renew"`
	End     time.Time `json:"end"`
}

var (
	errNobody  = &scripting.HostError{Code: scripting.Consent, Message: "this needs a token of the user, and the server does not know who the caller is"}
	errAway    = &scripting.HostError{Code: scripting.Consent, Message: "the user has not come back yet; call again when they have"}
	errRefused = errors.New("the user did not allow it")
	errReturn  = errors.New("nobody can come back from the authorization server")
)

// userKey and waitKey mark contexts.
type (
	userKey struct{}
	waitKey struct{}
)

// For returns a context for what is done for a user: text that no other user has.
// wait says that the user was asked already, so that their return is waited for.
func For(ctx context.Context, user string, wait bool) context.Context {
	return context.WithValue(context.WithValue(ctx, userKey{}, user), waitKey{}, wait)
}

// Token returns a token of the user of the context (see [For]). Without one the
// error is a [scripting.HostError] of the code Consent, of which the details ask
// the user.
func (u *Users) Token(ctx context.Context) (string, error) {
	user, _ := ctx.Value(userKey{}).(string)
	if user == "" {
		return "", errNobody
	}
	waits, _ := ctx.Value(waitKey{}).(bool)
	for again := false; ; again = true {
		token, err := u.held(ctx, user)
		if token != "" || err != nil {
			return token, err
		}
		v, now, err := u.visit(user)
		switch {
		case err != nil:
			return "", err
		case again || now == sent || now == away && !waits:
			return "", v.question(u.client)
		}
		select {
		case <-v.done:
			switch {
			case errors.Is(v.err, errRefused):
				return "", &scripting.HostError{Code: scripting.Consent, Message: errRefused.Error()}
			case v.err != nil:
				return "", fmt.Errorf("%s: %w", u.client.TokenURL, v.err)
			}
		case <-ctx.Done():
			return "", errAway
		}
	}
}

// held returns the token that a user has let the client have, renewed when it must
// be; "" when there is none.
func (u *Users) held(ctx context.Context, user string) (string, error) {
	select { // one at a time renews
	case u.turn <- struct{}{}:
		defer func() { <-u.turn }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	k, err := u.recall(user)
	if err != nil || k.Access == "" {
		return "", err
	}
	now := u.issuer.options.Now()
	switch {
	case now.Before(k.Renew):
		return k.Access, nil
	case k.Refresh == "" && now.Before(k.End):
		return k.Access, nil
	case k.Refresh == "":
		return "", u.forget(user)
	}
	got, err := u.renew(ctx, k.Refresh)
	var refused *refusal
	switch {
	case err == nil:
		return got.value, u.keep(user, got, k.Refresh)
	case errors.As(err, &refused) && refused.code == "invalid_grant":
		return "", u.forget(user)
	case now.Before(k.End):
		return k.Access, nil
	}
	return "", fmt.Errorf("%s: %w", u.client.TokenURL, err)
}

// recall returns what is kept of a user, which is read once.
func (u *Users) recall(user string) (k kept, err error) {
	u.mu.Lock()
	k, known := u.known[user]
	u.mu.Unlock()
	if known {
		return k, nil
	}
	value, err := u.vault.Get(user)
	if err != nil {
		return k, err
	}
	if value != nil && json.Unmarshal(value, &k) != nil {
		k = kept{}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.known[user] = k
	return k, nil
}

// forget takes a token away that is of no use any more.
func (u *Users) forget(user string) error {
	u.mu.Lock()
	u.known[user] = kept{}
	u.mu.Unlock()
	return u.vault.Put(user, nil)
}

// renew gets the next token for a refresh token.
func (u *Users) renew(ctx context.Context, refresh string) (token, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	secret, err := u.secretOf(ctx)
	if err != nil {
		return token{}, err
	}
	source := u.client.config(secret).TokenSource(through(ctx, u.issuer.options.Transport(u.client)), &oauth2.Token{RefreshToken: refresh})
	return sound(source.Token())
}

// redeem gets the first token for the code that a user came back with.
func (u *Users) redeem(ctx context.Context, code, verifier string) (token, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	secret, err := u.secretOf(ctx)
	if err != nil {
		return token{}, err
	}
	config := u.client.config(secret)
	return sound(config.Exchange(through(ctx, u.issuer.options.Transport(u.client)), code, oauth2.VerifierOption(verifier)))
}

func (u *Users) secretOf(ctx context.Context) (string, error) {
	if u.client.Secret == "" {
		return "", nil
	}
	return u.secret(ctx, u.client.Secret)
}

// keep puts a token into the vault. A server that gives no other refresh token
// means the old one.
func (u *Users) keep(user string, got token, refresh string) error {
	if got.refresh == "" {
		got.refresh = refresh
	}
	end := u.issuer.options.Now().Add(got.life)
	k := kept{Access: got.value, Refresh: got.refresh, Renew: end.Add(-min(early, got.life/10)), End: end}
	// Plain data always encodes.
	value, _ := json.Marshal(k)
	if err := u.vault.Put(user, value); err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.known[user] = k
	return nil
}

// newVisit returns a visit, and the state by which it is known when the user is back.
func (u *Users) newVisit(user string) (v *visit, state [sha256.Size]byte) {
	random := make([]byte, 32)
	rand.Read(random)
	text := base64.RawURLEncoding.EncodeToString(random)
	v = &visit{
		user: user, verifier: oauth2.GenerateVerifier(), id: rand.Text(),
		expires: u.issuer.options.Now().Add(life), done: make(chan struct{}),
	}
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(v.verifier)}
	for name, value := range u.client.Params {
		options = append(options, oauth2.SetAuthURLParam(name, value))
	}
	v.url = u.client.config("").AuthCodeURL(text, options...)
	return v, sha256.Sum256([]byte(text))
}

// question is what the user of a visit is asked.
func (v *visit) question(c Client) error {
	message := "Allow this server to act for you."
	if at, err := url.Parse(c.AuthorizeURL); err == nil {
		message = fmt.Sprintf("Allow this server, which %s knows as %q, to act for you.", at.Host, c.ID)
	}
	// Plain data always encodes.
	details, _ := json.Marshal(map[string]string{"mode": "url", "url": v.url, "elicitationId": v.id, "message": message})
	return &scripting.HostError{Code: scripting.Consent, Message: "the user has not allowed it yet", Details: details}
}
