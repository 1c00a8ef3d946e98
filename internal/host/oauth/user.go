package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// on is for whom something is done, in a context under the key onKey.
type (
	onKey struct{}
	on    struct {
		user string
		wait bool
	}
)

// For returns a context for what is done for a user: text that no other user has.
// wait says that the user was asked already, so that their return is waited for.
func For(ctx context.Context, user string, wait bool) context.Context {
	return context.WithValue(ctx, onKey{}, on{user, wait})
}

// Token returns a token of the user of the context (see [For]). Without one the
// error is a [scripting.HostError] of the code Consent, of which the details ask
// the user.
func (u *Users) Token(ctx context.Context) (string, error) {
	who, _ := ctx.Value(onKey{}).(on)
	if who.user == "" {
		return "", errNobody
	}
	for again := false; ; again = true {
		token, err := u.held(ctx, who.user)
		if token != "" || err != nil {
			return token, err
		}
		v, now, err := u.visit(who.user)
		switch {
		case err != nil:
			return "", err
		case again || now == sent || now == away && !who.wait:
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
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	k, err := u.recall(user)
	now := u.issuer.options.Now()
	switch {
	case err == nil && k.Access != "" && k.Refresh != "" && !now.Before(k.Renew):
		return u.renewed(ctx, user, k)
	case err == nil && k.Access != "" && k.Refresh == "" && !now.Before(k.End):
		k, err = kept{}, u.forget(user)
	}
	<-u.turn
	return k.Access, err
}

// renewed gets the next token of a user, and ends the turn. That goes on when ctx
// ends: a server that gives a refresh token once has taken the old one back.
func (u *Users) renewed(ctx context.Context, user string, k kept) (string, error) {
	type end struct {
		token string
		err   error
	}
	ended := make(chan end, 1)
	if !u.issuer.apart(ctx, func(ctx context.Context) {
		defer func() { <-u.turn }()
		token, err := u.next(ctx, user, k)
		ended <- end{token, err}
	}) {
		<-u.turn
		return "", context.Canceled
	}
	select {
	case e := <-ended:
		return e.token, e.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// next is what becomes of a token that is to be renewed.
func (u *Users) next(ctx context.Context, user string, k kept) (string, error) {
	got, err := u.renew(ctx, k.Refresh)
	var refused *refusal
	switch {
	case err == nil:
		return got.value, u.keep(user, got, k.Refresh)
	case errors.As(err, &refused) && refused.code == "invalid_grant":
		return "", u.forget(user)
	case u.issuer.options.Now().Before(k.End):
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
	secret, err := u.secretOf(ctx)
	if err != nil {
		return token{}, err
	}
	source := u.client.config(secret).TokenSource(through(ctx, u.issuer.options.Transport(u.client)), &oauth2.Token{RefreshToken: refresh})
	return sound(source.Token())
}

// redeem gets the first token for the code that a user came back with.
func (u *Users) redeem(ctx context.Context, code, verifier string) (token, error) {
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
