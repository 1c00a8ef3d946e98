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
type kept struct {
	Given   time.Time `json:"given,omitzero"` // when the user let the client have it
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

// Caller is for whom a token is needed.
type Caller struct {
	// User is text that no other user has, empty of one who is not known. Shown
	// names them to people, in one line.
	User, Shown string
	// Here says that the user sits at this machine.
	Here bool
	// Form says that the client of the call can ask its user to fill in a form.
	Form bool
	// Asked says that the user was asked already, so that their return is waited for.
	Asked bool
}

type callerKey struct{}

// For returns a context for what is done for a caller.
func For(ctx context.Context, who Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, who)
}

// Token returns a token of the caller of the context (see [For]). Without one the
// error is a [scripting.HostError] of the code Consent, of which the details ask
// the user.
func (u *Users) Token(ctx context.Context) (string, error) {
	who, _ := ctx.Value(callerKey{}).(Caller)
	switch {
	case who.User == "":
		return "", errNobody
	case !u.client.Routed() && !who.Here:
		return "", errFar
	}
	for {
		token, err := u.held(ctx, who.User)
		if token != "" || err != nil {
			return token, err
		}
		if u.client.Routed() && !who.Form {
			return "", errForm
		}
		v, at, further, err := u.visit(who)
		switch {
		case err != nil:
			return "", err
		case at == over:
			return "", u.failure(v)
		case at == sent || at == away && !who.Asked:
			return "", &scripting.HostError{Code: scripting.Consent, Message: "the user has not allowed it yet", Details: v.page}
		case at == shown:
			return "", u.askForCode(v)
		}
		select {
		case <-further:
			who.Asked = true
		case <-ctx.Done():
			return "", errAway
		}
	}
}

// failure is what those are told who wait for a visit that has failed.
func (u *Users) failure(v *visit) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if errors.Is(v.err, errRefused) || errors.Is(v.err, errCode) {
		return &scripting.HostError{Code: scripting.Consent, Message: v.err.Error()}
	}
	return fmt.Errorf("%s: %w", u.client.TokenURL, v.err)
}

// held returns the token that a user has let the client have, renewed when it must
// be; "" when there is none. Only who needs another one waits for those who renew.
func (u *Users) held(ctx context.Context, user string) (string, error) {
	h, err := u.recall(user)
	if err != nil {
		return "", err
	}
	now := u.issuer.options.Now()
	if token, ok, err := h.atHand(now); ok {
		return token, err
	}
	turn := u.turns[laneOf(user)]
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
	h, err = u.recall(user)
	token, ok, failure := h.atHand(u.issuer.options.Now())
	switch {
	case err != nil || ok:
		err = cmp.Or(err, failure)
	case h.Refresh != "":
		return u.renewed(ctx, turn, user, h.kept)
	default:
		token, err = u.forget(user, h.kept, Ended)
	}
	<-turn
	return token, err
}

// renewed gets the next token of a user, and ends the turn. That goes on when ctx
// ends: a server that gives a refresh token once has taken the old one back.
func (u *Users) renewed(ctx context.Context, turn <-chan struct{}, user string, k kept) (string, error) {
	type end struct {
		token string
		err   error
	}
	ended := make(chan end, 1)
	if !u.issuer.apart(ctx, func(ctx context.Context) {
		token, err := u.next(ctx, user, k)
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
func (u *Users) next(ctx context.Context, user string, k kept) (string, error) {
	got, err := u.renew(ctx, k.Refresh)
	var refused *refusal
	switch {
	case err == nil:
		var there bool
		if there, err = u.replace(user, got, k); err == nil && there {
			return got.value, nil
		}
		if err == nil { // it was dropped meanwhile; there may be one of another consent
			now, err := u.recall(user)
			return now.Access, err
		}
	case errors.As(err, &refused) && refused.code == "invalid_grant":
		return u.forget(user, k, Refused)
	default:
		err = fmt.Errorf("%s: %w", u.client.TokenURL, err)
	}
	u.failed(user, err)
	switch now, lost := u.recall(user); {
	case lost == nil && now.Access != k.Access:
		return now.Access, nil // "" of one that was dropped meanwhile
	case lost == nil && u.issuer.options.Now().Before(k.End):
		return k.Access, nil
	}
	return "", err
}

// lanes is how many users can have their tokens renewed at once.
const lanes = 64

// laneOf returns the lane of a user: always the same.
func laneOf(user string) int { return int(sha256.Sum256([]byte(user))[0]) % lanes }

func (u *Users) renew(ctx context.Context, refresh string) (token, error) {
	secret, err := u.secretOf(ctx)
	if err != nil {
		return token{}, err
	}
	source := u.client.config(secret).TokenSource(through(ctx, u.issuer.options.Transport(u.client)), &oauth2.Token{RefreshToken: refresh})
	return sound(source.Token())
}

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

// visit is one user on the way to the authorization server and back.
type visit struct {
	// Fixed at creation. page are the parameters of the question that sends the
	// user away.
	caller   Caller
	verifier string
	page     []byte
	state    [sha256.Size]byte

	// Guarded by the mutex of the Users. expires is when it is forgotten, and further is closed when the stage is
	// another one; err is how the visit failed that is over.
	expires time.Time
	stage   stage
	further chan struct{}
	err     error
	// token, code, left and forms are of the stage shown: what the user would have
	// the client have, what proves that they are the one who was asked, how often it
	// may be typed, and the parameters of the questions for it, by how many tries are
	// left, less one.
	token token
	code  string
	left  int
	forms [tries][]byte
}

// stage is how far a user is on a visit.
type stage int

const (
	sent    stage = iota // just now: what somebody is told who makes a visit
	away                 // at the authorization server
	arrived              // back, and the token is asked for
	shown                // a page shows the code for which the user is asked
	joining              // the token is being kept
	over
)

// life is how long a user may take to come back, and again to type the code.
const life = 10 * time.Minute

// newVisit returns a visit, and the hash of the state by which it is known when
// the user is back.
func (u *Users) newVisit(who Caller) (v *visit, state [sha256.Size]byte) {
	random := make([]byte, 32)
	rand.Read(random)
	text := base64.RawURLEncoding.EncodeToString(random)
	v = &visit{
		caller: who, verifier: oauth2.GenerateVerifier(), state: sha256.Sum256([]byte(text)),
		expires: u.issuer.options.Now().Add(life), stage: away, further: make(chan struct{}),
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
