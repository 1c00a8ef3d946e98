package oauth

import (
	"context"
	"crypto/sha256"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"
)

// Users are the tokens that users have let one client have (RFC 6749 section 4.1
// with RFC 7636). A user comes back to this machine, where the client listens
// while one is on the way (RFC 8252 section 7.3). It is safe for concurrent use.
type Users struct {
	// Fixed at creation.
	issuer *Issuer
	client Client
	secret func(ctx context.Context, key string) (string, error)
	vault  Vault
	turn   chan struct{} // holds one token while someone reads or renews a token

	mu     sync.Mutex
	visits map[[sha256.Size]byte]*visit // by the hash of their state
	known  map[string]kept              // what the vault holds, of users who were asked for
	server *http.Server                 // nil while nobody is on the way
	door   net.Listener                 // that of the server
	idle   *time.Timer
	closed bool
}

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
		u = &Users{issuer: i, client: c, secret: secret, vault: vault, turn: make(chan struct{}, 1), visits: map[[sha256.Size]byte]*visit{}, known: map[string]kept{}, closed: i.closed}
		i.users[key] = u
	}
	return u
}

// Sends reports whether a user is on the way to a page, sent there by one of the
// clients.
func (i *Issuer) Sends(user, page string) bool {
	i.mu.Lock()
	users := slices.Collect(maps.Values(i.users))
	i.mu.Unlock()
	return user != "" && slices.ContainsFunc(users, func(u *Users) bool { return u.sends(user, page) })
}

func (u *Users) sends(user, page string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, v := range u.visits {
		if v.user == user && v.url == page {
			return true
		}
	}
	return false
}

// visit returns the visit on which a user is, or sends them on one.
func (u *Users) visit(user string) (*visit, stage, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.issuer.options.Now()
	for state, v := range u.visits {
		switch {
		case !now.Before(v.expires):
			u.end(state, v, errReturn)
		case v.user == user && v.back:
			return v, arrived, nil
		case v.user == user:
			return v, away, nil
		}
	}
	if err := u.listen(); err != nil {
		return nil, sent, err
	}
	v, state := u.newVisit(user)
	u.visits[state] = v
	u.idle.Reset(life)
	return v, sent, nil
}

// end ends a visit; mu is held.
func (u *Users) end(state [sha256.Size]byte, v *visit, err error) {
	delete(u.visits, state)
	v.err = err
	close(v.done)
}

// listen has users come back, unless they can already; mu is held.
func (u *Users) listen() error {
	switch {
	case u.closed:
		return errReturn
	case u.server != nil:
		return nil
	}
	back, err := url.Parse(u.client.RedirectURL)
	if err != nil {
		return errReturn
	}
	listener, err := net.Listen("tcp", back.Host)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: u.back(back), ReadTimeout: patience, WriteTimeout: 2 * patience, IdleTimeout: patience, MaxHeaderBytes: 32 << 10,
		ErrorLog: log.New(io.Discard, "", 0), // what a browser does wrong is nobody's business
	}
	u.server, u.door, u.idle = server, listener, time.AfterFunc(life, u.leave)
	u.issuer.flights.Go(func() { _ = server.Serve(listener) }) // ends when it is closed
	return nil
}

// leave stops listening when nobody is on the way any more.
func (u *Users) leave() {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.issuer.options.Now()
	for state, v := range u.visits {
		if now.Before(v.expires) {
			u.idle.Reset(time.Until(v.expires))
			return
		}
		u.end(state, v, errReturn)
	}
	u.stop()
}

// stop closes the door; mu is held.
func (u *Users) stop() {
	if u.server != nil {
		u.idle.Stop()
		_ = u.door.Close() // at once, also when the server has not begun to listen
		_ = u.server.Close()
		u.server, u.door = nil, nil
	}
}

// close ends all visits.
func (u *Users) close() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.closed = true
	for state, v := range u.visits {
		u.end(state, v, errReturn)
	}
	u.stop()
}

// What a user sees who comes back. Nothing of the request is in it.
const (
	pageDone    = "Done. You can close this window."
	pageRefused = "It was not allowed. You can close this window."
	pageUnknown = "Nobody waits for this any more. Start again where you came from."
)

// back takes users back: one path, one method, one name, and only with a state
// that was given out, once.
func (u *Users) back(to *url.URL) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{
			"Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer",
			"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "X-Content-Type-Options": "nosniff",
		} {
			w.Header().Set(name, value)
		}
		if r.Method != http.MethodGet || r.Host != to.Host || r.URL.Path != to.Path {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		status, page := http.StatusBadRequest, pageUnknown
		ended := make(chan struct{})
		if u.issuer.apart(r.Context(), func(ctx context.Context) { // whether or not the browser waits
			defer close(ended)
			status, page = u.returned(ctx, r.URL.Query())
		}) {
			<-ended
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, page)
	})
}

// returned ends the visit that a query names.
func (u *Users) returned(ctx context.Context, query url.Values) (status int, page string) {
	state := sha256.Sum256([]byte(query.Get("state")))
	u.mu.Lock()
	v := u.visits[state]
	if v == nil || v.back || !u.issuer.options.Now().Before(v.expires) {
		u.mu.Unlock()
		return http.StatusBadRequest, pageUnknown
	}
	v.back = true // whoever comes with the state again is nobody
	u.mu.Unlock()
	err := errRefused
	if code := query.Get("code"); code != "" && query.Get("error") == "" {
		var got token
		if got, err = u.redeem(ctx, code, v.verifier); err == nil {
			err = u.keep(v.user, got, "")
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.visits[state] == v { // and nobody has ended it meanwhile
		u.end(state, v, err)
	}
	if err != nil {
		return http.StatusForbidden, pageRefused
	}
	return http.StatusOK, pageDone
}
