package oauth

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"golang.org/x/oauth2"

	"github.com/mcpd/mcpd/scripting"
)

// Vault stores encrypted tokens of users.
type Vault interface {
	// Get returns the value of a user, or nil.
	Get(user string) ([]byte, error)
	// Put stores the value of a user; nil deletes it.
	Put(user string, value []byte) error
	// Replace atomically replaces the value of a user if follows accepts the old one; nil
	// deletes it. It returns false if there is no such value.
	Replace(user string, value []byte, follows func(old []byte) bool) (bool, error)
}

// storedToken is the value of a user in a vault.
type storedToken struct {
	Given   time.Time `json:"given,omitzero"` // when the user gave consent
	Access  string    `json:"access"`
	Refresh string    `json:"refresh,omitempty"`
	Renew   time.Time `json:"renew"`
	End     time.Time `json:"end"`
	Stored  time.Time `json:"stored,omitzero"` // when a server stored it
}

var (
	errUnknownUser = &scripting.HostError{Code: scripting.Consent, Message: "this needs a user token, and the caller is not authenticated"}
	errNotReturned = &scripting.HostError{Code: scripting.Consent, Message: "the user has not finished the authorization; call again afterwards"}
	errNotAllowed  = errors.New("the user denied access")
	errNoCallback  = errors.New("the authorization cannot be completed")
)

// Caller is the user for whom a token is needed.
type Caller struct {
	// User is unique text for the user, or "" if unknown. DisplayName describes the user on one
	// line.
	User, DisplayName string
	// SameMachine reports whether the user is at this machine.
	SameMachine bool
	// SupportsForms reports whether the client of the call supports forms.
	SupportsForms bool
	// Prompted reports whether the user was already prompted, so that the call waits for their
	// return.
	Prompted bool
}

type callerKey struct{}

// WithCaller returns a context for work on behalf of a caller.
func WithCaller(ctx context.Context, who Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, who)
}

// Token returns a token of the caller in ctx (see [WithCaller]). Without a token the error is a
// [scripting.HostError] with code Consent, whose details are the prompt.
func (u *UserTokens) Token(ctx context.Context) (string, error) {
	who, _ := ctx.Value(callerKey{}).(Caller)
	switch {
	case who.User == "":
		return "", errUnknownUser
	case !u.client.HasRemoteCallback() && !who.SameMachine:
		return "", errRemoteUser
	}
	for {
		token, err := u.userToken(ctx, who.User)
		if token != "" || err != nil {
			return token, err
		}
		if u.client.HasRemoteCallback() && !who.SupportsForms {
			return "", errFormsUnsupported
		}
		v, at, further, err := u.authorization(who)
		switch {
		case errors.Is(err, errAgain) && ctx.Err() == nil:
			continue
		case err != nil:
			return "", err
		case at == stageDone:
			return "", u.authorizationError(v)
		case at == stageSent || at == stageAtProvider && !who.Prompted:
			return "", &scripting.HostError{Code: scripting.Consent, Message: "the user has not granted access yet", Details: v.page}
		case at == stageCodeShown:
			return "", u.codePrompt(v)
		}
		var poll <-chan time.Time
		if v.locator != "" {
			poll = time.After(sharedPoll)
		}
		select {
		case <-further:
		case <-poll:
		case <-ctx.Done():
			return "", errNotReturned
		}
		who.Prompted = true
	}
}

// authorizationError returns the error of a failed authorization for waiting calls.
func (u *UserTokens) authorizationError(v *authorization) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if errors.Is(v.err, errNotAllowed) || errors.Is(v.err, errCode) {
		return &scripting.HostError{Code: scripting.Consent, Message: v.err.Error()}
	}
	return fmt.Errorf("%s: %w", u.client.TokenURL, v.err)
}

// userToken returns the token of a user, renewed if necessary, or "". Only callers that need a
// new token wait for a renewal.
func (u *UserTokens) userToken(ctx context.Context, user string) (string, error) {
	h, err := u.load(user)
	if err != nil {
		return "", err
	}
	now := u.broker.options.Now()
	if token, ok, err := h.current(now); ok {
		return token, err
	}
	turn := u.renewing[shardOf(user)]
	select { // one renewal at a time
	case turn <- struct{}{}:
	default:
		if now.Before(h.End) {
			return h.Access, nil
		}
		select {
		case turn <- struct{}{}:
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
	h, err = u.load(user)
	token, ok, failure := h.current(u.broker.options.Now())
	switch {
	case err != nil || ok:
		err = cmp.Or(err, failure)
	case h.Refresh != "":
		return u.renewDetached(ctx, turn, user, h.storedToken)
	default:
		token, err = u.forget(user, h.storedToken, LossExpired)
	}
	<-turn
	return token, err
}

// renewDetached renews the token of a user, and releases turn. It continues if ctx is
// cancelled: a server that issues a refresh token once has invalidated the old one.
func (u *UserTokens) renewDetached(ctx context.Context, turn <-chan struct{}, user string, k storedToken) (string, error) {
	type end struct {
		token string
		err   error
	}
	ended := make(chan end, 1)
	if !u.broker.runDetached(ctx, func(ctx context.Context) {
		token, err := u.renewAndStore(ctx, user, k)
		<-turn // first, so that a caller with the token finds no renewal in progress
		ended <- end{token, err}
	}) {
		<-turn
		return "", context.Canceled
	}
	select {
	case e := <-ended:
		return e.token, e.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// renewAndStore renews a token and stores it. A failure starts a backoff.
func (u *UserTokens) renewAndStore(ctx context.Context, user string, k storedToken) (string, error) {
	got, err := u.renew(ctx, k.Refresh)
	var refused *serverError
	switch {
	case err == nil:
		var there bool
		if there, err = u.replace(user, got, k); err == nil && there {
			return got.value, nil
		}
		if err == nil { // it was dropped; there may be a token of a new consent
			now, err := u.load(user)
			return now.Access, err
		}
	case errors.As(err, &refused) && refused.code == "invalid_grant":
		return u.forget(user, k, LossRejected)
	default:
		err = fmt.Errorf("%s: %w", u.client.TokenURL, err)
	}
	u.recordFailure(user, err)
	switch now, lost := u.load(user); {
	case lost == nil && now.Access != k.Access:
		return now.Access, nil // "" if it was dropped in the meantime
	case lost == nil && u.broker.options.Now().Before(k.End):
		return k.Access, nil
	}
	return "", err
}

// renewShards is the number of users whose tokens can be renewed concurrently.
const renewShards = 64

// shardOf returns the shard of a user.
func shardOf(user string) int { return int(sha256.Sum256([]byte(user))[0]) % renewShards }

func (u *UserTokens) renew(ctx context.Context, refresh string) (token, error) {
	secret, err := u.secretOf(ctx)
	if err != nil {
		return token{}, err
	}
	source := u.client.config(secret).TokenSource(withTransport(ctx, u.broker.options.Transport(u.client)), &oauth2.Token{RefreshToken: refresh})
	return validToken(source.Token())
}

func (u *UserTokens) redeem(ctx context.Context, code, verifier string) (token, error) {
	secret, err := u.secretOf(ctx)
	if err != nil {
		return token{}, err
	}
	config := u.client.config(secret)
	return validToken(config.Exchange(withTransport(ctx, u.broker.options.Transport(u.client)), code, oauth2.VerifierOption(verifier)))
}

func (u *UserTokens) secretOf(ctx context.Context) (string, error) {
	if u.client.Secret == "" {
		return "", nil
	}
	return u.secret(ctx, u.client.Secret)
}

// authorization is one user's authorization at the authorization server.
type authorization struct {
	// Fixed at creation. page has the parameters of the prompt for the page.
	caller   Caller
	verifier string
	page     []byte
	state    [sha256.Size]byte
	locator  string // of its stored form; "" if it is not shared

	// Guarded by the mutex of the UserTokens. The authorization is removed at expires. progress
	// is closed when the stage changes. err is the error of a failed authorization.
	expires  time.Time
	stage    stage
	progress chan struct{}
	err      error
	// The state of stageCodeShown: the unconfirmed token, the displayed code, the remaining
	// attempts, and the parameters of the code prompts, by remaining attempts minus one.
	token        token
	code         string
	attemptsLeft int
	forms        [maxCodeAttempts][]byte
}

// stage is the progress of an authorization. Its numbers are stored.
type stage int

const (
	stageSent       stage = iota // just created; returned to the creator only
	stageAtProvider              // at the authorization server
	stageReturned                // returned; the token is being fetched
	stageCodeShown               // a page shows the code that the user is asked for
	stageStoring                 // the token is being stored
	stageDone
)

// authorizationTimeout bounds the time to return, and again the time to enter the code.
const authorizationTimeout = 10 * time.Minute

// newAuthorization returns an authorization, and the hash of its state parameter.
func (u *UserTokens) newAuthorization(who Caller) (v *authorization, state [sha256.Size]byte) {
	return u.newSharedAuthorization(who, "")
}

// stateLength is the length of a state parameter without a locator.
const stateLength = 43

// newSharedAuthorization returns an authorization whose state parameter begins with a locator.
func (u *UserTokens) newSharedAuthorization(who Caller, locator string) (v *authorization, state [sha256.Size]byte) {
	random := make([]byte, 32)
	rand.Read(random)
	text := locator + base64.RawURLEncoding.EncodeToString(random)
	v = &authorization{
		caller: who, locator: locator, verifier: oauth2.GenerateVerifier(), state: sha256.Sum256([]byte(text)),
		expires: u.broker.options.Now().Add(authorizationTimeout), stage: stageAtProvider, progress: make(chan struct{}),
	}
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(v.verifier)}
	for name, value := range u.client.Params {
		options = append(options, oauth2.SetAuthURLParam(name, value))
	}
	// Plain data always encodes.
	v.page, _ = json.Marshal(map[string]string{
		"mode": "url", "url": u.client.config("").AuthCodeURL(text, options...), "elicitationId": rand.Text(),
		"message": fmt.Sprintf("Allow this server, which %s knows as %q, to act for you.", hostIn(u.client.AuthorizeURL), u.client.ID),
	})
	return v, v.state
}
