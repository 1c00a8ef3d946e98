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

// Users are the tokens that users have let one client have (RFC 6749 section 4.1
// with RFC 7636). A user comes back to this machine, where the client listens
// while one is on the way (RFC 8252 section 7.3), or to a page of the front (see
// [Issuer.Returns]). It is safe for concurrent use.
type UserTokens struct {
	// Fixed at creation.
	broker   *Broker
	key      string // that of the client
	client   Client
	secret   func(ctx context.Context, key string) (string, error)
	vault    Vault
	renewing [renewShards]chan struct{} // each holds one token while someone renews a token

	storeMu sync.Mutex // held while the vault and known change together; taken before mu

	mu             sync.Mutex
	authorizations map[[sha256.Size]byte]*authorization // by the hash of their state
	cache          map[string]tokenEntry                // what there is of users who were asked for
	dropCount      uint64                               // how often tokens were dropped
	server         *http.Server                         // nil while nobody is on the way to this machine
	listener       net.Listener                         // that of the server
	cleanup        *time.Timer                          // forgets who does not come back; nil before anybody left
	closed         bool
}

const (
	// maxVisits bounds the users of one client who are on the way.
	maxAuthorizations = 1000
	// maxKnown bounds what is held of a vault, which is forgotten whole then.
	maxCached = 10_000
)

var (
	errRemoteUser = &scripting.HostError{Code: scripting.Consent, Message: "this needs a token of the user, who can give it only on the machine of the server, over stdio; " +
		"for callers over HTTP the operator of the server sets redirect_url = \"https://HOST/oauth/NAME\""}
	errNoFrontend = &scripting.HostError{Code: scripting.Consent, Message: "users come back over HTTP, by which this process is not reached; " +
		"run mcpd serve without --stdio, or set redirect_url = \"http://127.0.0.1:PORT/PATH\""}
	errFormsUnsupported      = &scripting.HostError{Code: scripting.Consent, Message: "this needs a token of the user, and the client of the call cannot ask them for the code that proves whose it is: it lacks the capability elicitation.form"}
	errTooManyAuthorizations = &scripting.HostError{Code: scripting.Consent, Message: "too many users are on the way to the authorization server; call again in ten minutes"}
)

// Users returns the tokens of users of a client: the same for as long as the
// client is. Another one that users came back to by the same way before is
// closed. secret is as for [Issuer.Source].
func (i *Broker) Users(key string, c Client, secret func(ctx context.Context, key string) (string, error), vault Vault) *UserTokens {
	i.mu.Lock()
	defer i.mu.Unlock()
	u := i.users[key]
	if u == nil {
		maps.DeleteFunc(i.users, func(_ string, before *UserTokens) bool {
			same := before.client.RedirectURL == c.RedirectURL
			if same {
				before.close()
			}
			return same
		})
		u = &UserTokens{broker: i, key: key, client: c, secret: secret, vault: vault, authorizations: map[[sha256.Size]byte]*authorization{}, cache: map[string]tokenEntry{}, closed: i.closed}
		for lane := range u.renewing {
			u.renewing[lane] = make(chan struct{}, 1)
		}
		i.users[key] = u
	}
	return u
}

// Retain closes all clients of users but those of the keys: nobody comes back to
// the others any more.
func (i *Broker) KeepOnly(keys []string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	maps.DeleteFunc(i.users, func(key string, u *UserTokens) bool {
		gone := !slices.Contains(keys, key)
		if gone {
			u.close()
		}
		return gone
	})
}

func (i *Broker) clients() []*UserTokens {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Collect(maps.Values(i.users))
}

// visit returns the visit on which a caller is, how far they are, and what is
// closed when they are further; or sends them on one.
func (u *UserTokens) authorization(who Caller) (v *authorization, at stage, further <-chan struct{}, err error) {
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
	if err := u.admit(); err != nil {
		return nil, stageSent, nil, err
	}
	v, state := u.newAuthorization(who)
	u.authorizations[state] = v
	if u.cleanup == nil {
		u.cleanup = time.AfterFunc(authorizationTimeout, u.cleanUp) // forgets those who do not come back
	} else {
		u.cleanup.Reset(authorizationTimeout)
	}
	return v, stageSent, v.progress, nil
}

// admit returns why nobody can be sent to the authorization server; mu is held.
func (u *UserTokens) admit() error {
	switch {
	case u.closed:
		return errNoCallback
	case len(u.authorizations) >= maxAuthorizations:
		return errTooManyAuthorizations
	case !u.client.HasRemoteCallback():
		return u.listen()
	case !u.broker.hasCallbacks.Load():
		return errNoFrontend
	}
	return nil
}

// advance takes a visit further; mu is held.
func (u *UserTokens) advance(v *authorization, to stage) {
	v.stage = to
	close(v.progress)
	v.progress = make(chan struct{})
}

// end ends a visit; mu is held. How one failed is told to those who wait, until
// its user starts over.
func (u *UserTokens) end(v *authorization, err error) {
	v.err, v.token = err, token{}
	if err == nil || errors.Is(err, errNoCallback) {
		delete(u.authorizations, v.state)
	}
	u.advance(v, stageDone)
}

// forgetLate ends the visits whose time is up; mu is held.
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

// leave forgets who has not come back, and stops listening when nobody is on the
// way any more.
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
