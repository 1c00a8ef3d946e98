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
type Users struct {
	// Fixed at creation.
	issuer *Issuer
	key    string // that of the client
	client Client
	secret func(ctx context.Context, key string) (string, error)
	vault  Vault
	turns  [lanes]chan struct{} // each holds one token while someone renews a token

	keeping sync.Mutex // held while the vault and known change together; taken before mu

	mu     sync.Mutex
	visits map[[sha256.Size]byte]*visit // by the hash of their state
	known  map[string]holding           // what there is of users who were asked for
	drops  uint64                       // how often tokens were dropped
	server *http.Server                 // nil while nobody is on the way to this machine
	door   net.Listener                 // that of the server
	idle   *time.Timer                  // forgets who does not come back; nil before anybody left
	closed bool
}

const (
	// maxVisits bounds the users of one client who are on the way.
	maxVisits = 1000
	// maxKnown bounds what is held of a vault, which is forgotten whole then.
	maxKnown = 10_000
)

var (
	errFar = &scripting.HostError{Code: scripting.Consent, Message: "this needs a token of the user, who can give it only on the machine of the server, over stdio; " +
		"for callers over HTTP the operator of the server sets redirect_url = \"https://HOST/oauth/NAME\""}
	errFront = &scripting.HostError{Code: scripting.Consent, Message: "users come back over HTTP, by which this process is not reached; " +
		"run mcpd serve without --stdio, or set redirect_url = \"http://127.0.0.1:PORT/PATH\""}
	errForm  = &scripting.HostError{Code: scripting.Consent, Message: "this needs a token of the user, and the client of the call cannot ask them for the code that proves whose it is: it lacks the capability elicitation.form"}
	errCrowd = &scripting.HostError{Code: scripting.Consent, Message: "too many users are on the way to the authorization server; call again in ten minutes"}
)

// Users returns the tokens of users of a client: the same for as long as the
// client is. Another one that users came back to by the same way before is
// closed. secret is as for [Issuer.Source].
func (i *Issuer) Users(key string, c Client, secret func(ctx context.Context, key string) (string, error), vault Vault) *Users {
	i.mu.Lock()
	defer i.mu.Unlock()
	u := i.users[key]
	if u == nil {
		maps.DeleteFunc(i.users, func(_ string, before *Users) bool {
			same := before.client.RedirectURL == c.RedirectURL
			if same {
				before.close()
			}
			return same
		})
		u = &Users{issuer: i, key: key, client: c, secret: secret, vault: vault, visits: map[[sha256.Size]byte]*visit{}, known: map[string]holding{}, closed: i.closed}
		for lane := range u.turns {
			u.turns[lane] = make(chan struct{}, 1)
		}
		i.users[key] = u
	}
	return u
}

// Retain closes all clients of users but those of the keys: nobody comes back to
// the others any more.
func (i *Issuer) Retain(keys []string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	maps.DeleteFunc(i.users, func(key string, u *Users) bool {
		gone := !slices.Contains(keys, key)
		if gone {
			u.close()
		}
		return gone
	})
}

func (i *Issuer) all() []*Users {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Collect(maps.Values(i.users))
}

// visit returns the visit on which a caller is, how far they are, and what is
// closed when they are further; or sends them on one.
func (u *Users) visit(who Caller) (v *visit, at stage, further <-chan struct{}, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.forgetLate()
	for state, v := range u.visits {
		switch {
		case v.caller.User != who.User:
		case v.stage == over && !who.Asked:
			delete(u.visits, state)
		default:
			return v, v.stage, v.further, nil
		}
	}
	if err := u.admit(); err != nil {
		return nil, sent, nil, err
	}
	v, state := u.newVisit(who)
	u.visits[state] = v
	if u.idle == nil {
		u.idle = time.AfterFunc(life, u.leave) // forgets those who do not come back
	} else {
		u.idle.Reset(life)
	}
	return v, sent, v.further, nil
}

// admit returns why nobody can be sent to the authorization server; mu is held.
func (u *Users) admit() error {
	switch {
	case u.closed:
		return errReturn
	case len(u.visits) >= maxVisits:
		return errCrowd
	case !u.client.Routed():
		return u.listen()
	case !u.issuer.fronted.Load():
		return errFront
	}
	return nil
}

// advance takes a visit further; mu is held.
func (u *Users) advance(v *visit, to stage) {
	v.stage = to
	close(v.further)
	v.further = make(chan struct{})
}

// end ends a visit; mu is held. How one failed is told to those who wait, until
// its user starts over.
func (u *Users) end(v *visit, err error) {
	v.err, v.token = err, token{}
	if err == nil || errors.Is(err, errReturn) {
		delete(u.visits, v.state)
	}
	u.advance(v, over)
}

// forgetLate ends the visits whose time is up; mu is held.
func (u *Users) forgetLate() {
	now := u.issuer.options.Now()
	for state, v := range u.visits {
		switch {
		case now.Before(v.expires):
		case v.stage == over:
			delete(u.visits, state)
		default:
			u.end(v, errReturn)
		}
	}
}

// leave forgets who has not come back, and stops listening when nobody is on the
// way any more.
func (u *Users) leave() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.forgetLate()
	if len(u.visits) == 0 {
		u.stop()
		return
	}
	next := life
	for _, v := range u.visits {
		next = min(next, v.expires.Sub(u.issuer.options.Now()))
	}
	u.idle.Reset(next)
}

func (u *Users) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	for _, v := range u.visits {
		if v.stage != over {
			u.end(v, errReturn)
		}
	}
	clear(u.visits)
	if u.idle != nil {
		u.idle.Stop()
	}
	u.stop()
}
