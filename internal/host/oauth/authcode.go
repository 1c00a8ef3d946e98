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

// A Vault keeps what a user has let a client have, sealed.
type Vault interface {
	// Get returns what is kept of a user, nil for nothing.
	Get(user string) ([]byte, error)
	// Put keeps a value of a user, and nothing when it is nil.
	Put(user string, value []byte) error
	// Replace keeps a value of a user in the place of another that it follows, in one
	// step, and reports false where that is not there any more.
	Replace(user string, value []byte, follows func(old []byte) bool) (bool, error)
}

// kept is what a vault keeps of a user.
type storedToken struct {
	Given   time.Time `json:"given,omitzero"` // when the user let the client have it
	Access  string    `json:"access"`
	Refresh string    `json:"refresh,omitempty"`
	Renew   time.Time `json:"renew"`
	End     time.Time `json:"end"`
}

var (
	errUnknownUser = &scripting.HostError{Code: scripting.Consent, Message: "this needs a token of the user, and the server does not know who the caller is"}
	errNotReturned = &scripting.HostError{Code: scripting.Consent, Message: "the user has not come back yet; call again when they have"}
	errNotAllowed  = errors.New("the user did not allow it")
	errNoCallback  = errors.New("nobody can come back from the authorization server")
)

// Caller is for whom a token is needed.
type Caller struct {
	// User is text that no other user has, empty of one who is not known. Shown
	// names them to people, in one line.
	User, DisplayName string
	// Here says that the user sits at this machine.
	SameMachine bool
	// Form says that the client of the call can ask its user to fill in a form.
	SupportsForms bool
	// Asked says that the user was asked already, so that their return is waited for.
	Prompted bool
}

type callerKey struct{}

// For returns a context for what is done for a caller.
func WithCaller(ctx context.Context, who Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, who)
}

// Token returns a token of the caller of the context (see [For]). Without one the
// error is a [scripting.HostError] of the code Consent, of which the details ask
// the user.
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
		case err != nil:
			return "", err
		case at == stageDone:
			return "", u.authorizationError(v)
		case at == stageSent || at == stageAtProvider && !who.Prompted:
			return "", &scripting.HostError{Code: scripting.Consent, Message: "the user has not allowed it yet", Details: v.page}
		case at == stageCodeShown:
			return "", u.codePrompt(v)
		}
		select {
		case <-further:
			who.Prompted = true
		case <-ctx.Done():
			return "", errNotReturned
		}
	}
}

// failure is what those are told who wait for a visit that has failed.
func (u *UserTokens) authorizationError(v *authorization) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if errors.Is(v.err, errNotAllowed) || errors.Is(v.err, errCode) {
		return &scripting.HostError{Code: scripting.Consent, Message: v.err.Error()}
	}
	return fmt.Errorf("%s: %w", u.client.TokenURL, v.err)
}

// held returns the token that a user has let the client have, renewed when it must
// be; "" when there is none. Only who needs another one waits for those who renew.
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
	select { // one at a time renews
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

// renewed gets the next token of a user, and ends the turn. That goes on when ctx
// ends: a server that gives a refresh token once has taken the old one back.
func (u *UserTokens) renewDetached(ctx context.Context, turn <-chan struct{}, user string, k storedToken) (string, error) {
	type end struct {
		token string
		err   error
	}
	ended := make(chan end, 1)
	if !u.broker.runDetached(ctx, func(ctx context.Context) {
		token, err := u.renewAndStore(ctx, user, k)
		<-turn // first, so that who has the token finds nobody who renews it still
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

// next is what becomes of a token that is to be renewed. After a failure it is not
// tried again for a while.
func (u *UserTokens) renewAndStore(ctx context.Context, user string, k storedToken) (string, error) {
	got, err := u.renew(ctx, k.Refresh)
	var refused *serverError
	switch {
	case err == nil:
		var there bool
		if there, err = u.replace(user, got, k); err == nil && there {
			return got.value, nil
		}
		if err == nil { // it was dropped meanwhile; there may be one of another consent
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
		return now.Access, nil // "" of one that was dropped meanwhile
	case lost == nil && u.broker.options.Now().Before(k.End):
		return k.Access, nil
	}
	return "", err
}

// lanes is how many users can have their tokens renewed at once.
const renewShards = 64

// laneOf returns the lane of a user: always the same.
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

// visit is one user on the way to the authorization server and back.
type authorization struct {
	// Fixed at creation. page are the parameters of the question that sends the
	// user away.
	caller   Caller
	verifier string
	page     []byte
	state    [sha256.Size]byte

	// Guarded by the mutex of the Users. expires is when it is forgotten, and further is closed when the stage is
	// another one; err is how the visit failed that is over.
	expires  time.Time
	stage    stage
	progress chan struct{}
	err      error
	// token, code, left and forms are of the stage shown: what the user would have
	// the client have, what proves that they are the one who was asked, how often it
	// may be typed, and the parameters of the questions for it, by how many tries are
	// left, less one.
	token        token
	code         string
	attemptsLeft int
	forms        [maxCodeAttempts][]byte
}

// stage is how far a user is on a visit.
type stage int

const (
	stageSent       stage = iota // just now: what somebody is told who makes a visit
	stageAtProvider              // at the authorization server
	stageReturned                // back, and the token is asked for
	stageCodeShown               // a page shows the code for which the user is asked
	stageStoring                 // the token is being kept
	stageDone
)

// life is how long a user may take to come back, and again to type the code.
const authorizationTimeout = 10 * time.Minute

// newVisit returns a visit, and the hash of the state by which it is known when
// the user is back.
func (u *UserTokens) newAuthorization(who Caller) (v *authorization, state [sha256.Size]byte) {
	random := make([]byte, 32)
	rand.Read(random)
	text := base64.RawURLEncoding.EncodeToString(random)
	v = &authorization{
		caller: who, verifier: oauth2.GenerateVerifier(), state: sha256.Sum256([]byte(text)),
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
