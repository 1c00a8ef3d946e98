package oauth

import (
	"context"
	"crypto/sha256"
	"errors"
	"maps"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/mcpd/mcpd/scripting"
)

// UserTokens are the tokens of the users of one client (RFC 6749 section 4.1 with RFC 7636). A
// user returns to this machine, where the client listens during an authorization (RFC 8252
// section 7.3), or to a page of the front (see [Broker.CallbackHandler]). It is safe for
// concurrent use.
type UserTokens struct {
	// Fixed at creation.
	broker   *Broker
	key      string // of the client
	client   Client
	secret   func(ctx context.Context, key string) (string, error)
	vault    Vault
	renewing [renewShards]chan struct{} // each holds a token during a renewal

	looking chan struct{}           // holds a token for each state that is looked up
	sharing [renewShards]sync.Mutex // see mutexOf; locked before mu
	storeMu sync.Mutex              // held while the vault and the cache change together; locked before sharing and mu

	mu             sync.Mutex
	authorizations map[[sha256.Size]byte]*authorization // by hash of the state parameter
	cache          map[string]tokenEntry                // by user
	dropCount      uint64                               // number of drops so far
	server         *http.Server                         // nil unless a local callback is expected
	listener       net.Listener                         // of the server
	cleanup        *time.Timer                          // calls cleanUp; nil before the first authorization
	closed         bool
}

const (
	// maxAuthorizations bounds the authorizations of one client in progress.
	maxAuthorizations = 1000
	// maxLooking bounds the states that are looked up at the same time.
	maxLooking = 2
	// maxCached bounds the cache, which is cleared when it is full.
	maxCached = 10_000
)

var (
	errRemoteUser = &scripting.HostError{Code: scripting.Consent, Message: "this needs a user token, which users can grant only on the machine of the server, over stdio; " +
		"for callers over HTTP, the operator sets redirect_url = \"https://HOST/oauth/NAME\""}
	errNoFront = &scripting.HostError{Code: scripting.Consent, Message: "the browser returns over HTTP, and this process does not serve HTTP; " +
		"run mcpd serve without --stdio, or set redirect_url = \"http://127.0.0.1:PORT/PATH\""}
	errFormsUnsupported      = &scripting.HostError{Code: scripting.Consent, Message: "this needs a user token, and the client cannot ask the user for the confirmation code: it lacks the capability elicitation.form"}
	errTooManyAuthorizations = &scripting.HostError{Code: scripting.Consent, Message: "too many authorizations are in progress; call again in ten minutes"}
)

// Users returns the user tokens of a client. It returns the same object for the same key, and
// closes an earlier client with the same redirect URL. secret is as for
// [Broker.ClientCredentials].
func (b *Broker) Users(key string, c Client, secret func(ctx context.Context, key string) (string, error), vault Vault) *UserTokens {
	b.mu.Lock()
	defer b.mu.Unlock()
	u := b.users[key]
	if u == nil {
		maps.DeleteFunc(b.users, func(_ string, before *UserTokens) bool {
			same := before.client.RedirectURL == c.RedirectURL
			if same {
				before.close()
			}
			return same
		})
		u = &UserTokens{broker: b, key: key, client: c, secret: secret, vault: vault, authorizations: map[[sha256.Size]byte]*authorization{}, cache: map[string]tokenEntry{}, looking: make(chan struct{}, maxLooking), closed: b.closed}
		for shard := range u.renewing {
			u.renewing[shard] = make(chan struct{}, 1)
		}
		b.users[key] = u
	}
	return u
}

// KeepOnly closes all user clients except those with the given keys.
func (b *Broker) KeepOnly(keys []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	maps.DeleteFunc(b.users, func(key string, u *UserTokens) bool {
		gone := !slices.Contains(keys, key)
		if gone {
			u.close()
		}
		return gone
	})
}

func (b *Broker) clients() []*UserTokens {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Values(b.users))
}

// authorization returns the authorization of a caller, its stage, and a channel that is closed
// on progress. It starts one if there is none.
func (u *UserTokens) authorization(who Caller) (v *authorization, at stage, further <-chan struct{}, err error) {
	if all, err := u.shared(); err != nil || all != nil {
		if err != nil {
			return nil, stageSent, nil, err
		}
		return u.joinAuthorization(all, who)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.expire()
	for state, v := range u.authorizations {
		switch {
		case v.caller.User != who.User:
		case v.stage == stageDone && !who.Prompted:
			delete(u.authorizations, state)
		default:
			return v, v.stage, v.progress, nil
		}
	}
	if err := u.admit(false); err != nil {
		return nil, stageSent, nil, err
	}
	v, state := u.newAuthorization(who)
	u.authorizations[state] = v
	u.scheduleCleanUp()
	return v, stageSent, v.progress, nil
}

// scheduleCleanUp schedules the removal of expired authorizations. The caller holds mu.
func (u *UserTokens) scheduleCleanUp() {
	if u.cleanup == nil {
		u.cleanup = time.AfterFunc(authorizationTimeout, u.cleanUp)
	} else {
		u.cleanup.Reset(authorizationTimeout)
	}
}

// admit returns why no authorization can start. The store bounds shared ones. The caller holds
// mu.
func (u *UserTokens) admit(shared bool) error {
	switch {
	case u.closed:
		return errNoCallback
	case !shared && len(u.authorizations) >= maxAuthorizations:
		return errTooManyAuthorizations
	case !u.client.HasRemoteCallback():
		return u.listen()
	case !u.broker.hasCallbacks.Load():
		return errNoFront
	}
	return nil
}

// advance sets the stage of an authorization. The caller holds mu.
func (u *UserTokens) advance(v *authorization, to stage) {
	v.stage = to
	close(v.progress)
	v.progress = make(chan struct{})
}

// end ends an authorization. Waiting calls get its error until the user starts over. The caller
// holds mu.
func (u *UserTokens) end(v *authorization, err error) {
	v.err, v.token = err, token{}
	if err == nil || errors.Is(err, errNoCallback) {
		delete(u.authorizations, v.state)
	}
	u.advance(v, stageDone)
}

// expire ends expired authorizations. The caller holds mu.
func (u *UserTokens) expire() {
	now := u.broker.options.Now()
	for state, v := range u.authorizations {
		switch {
		case now.Before(v.expires):
		case v.stage == stageDone:
			delete(u.authorizations, state)
		default:
			u.end(v, errNoCallback)
		}
	}
}

// cleanUp ends expired authorizations, and stops listening if none is left.
func (u *UserTokens) cleanUp() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.expire()
	if len(u.authorizations) == 0 {
		u.stopListening()
		return
	}
	next := authorizationTimeout
	for _, v := range u.authorizations {
		next = min(next, v.expires.Sub(u.broker.options.Now()))
	}
	u.cleanup.Reset(next)
}

func (u *UserTokens) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	for _, v := range u.authorizations {
		if v.stage != stageDone {
			u.end(v, errNoCallback)
		}
	}
	clear(u.authorizations)
	if u.cleanup != nil {
		u.cleanup.Stop()
	}
	u.stopListening()
}
