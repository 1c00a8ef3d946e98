package oauth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// Route is where the front has pages to which users come back.
const CallbackPath = "/oauth/"

// Returns has users come back by a front, which passes on the requests that the
// function knows: it returns who answers one, and nil where nobody does. What it
// knows are the redirect URLs below [Route] of the clients that there are, each by
// its own path and host. A browser comes there from another site, without any
// credential.
func (i *Broker) CallbackHandler() func(*http.Request) http.Handler {
	i.hasCallbacks.Store(true)
	return i.callback
}

func (i *Broker) callback(r *http.Request) http.Handler {
	if !strings.HasPrefix(r.URL.Path, CallbackPath) || r.Method != http.MethodGet {
		return nil
	}
	for _, u := range i.clients() {
		if u.client.HasRemoteCallback() && u.client.matchesRedirect(r) {
			return http.HandlerFunc(u.handleCallback)
		}
	}
	return nil
}

// Routed reports whether the users of the client come back to the front, and not
// to a port of this machine.
func (c Client) HasRemoteCallback() bool { return strings.HasPrefix(c.RedirectURL, "https://") }

// comesBack reports whether a request is for the redirect URL. Where that has the
// default port, the one in the request does not count: browsers leave it out, and
// proxies may name that at which they are reached themselves.
func (c Client) matchesRedirect(r *http.Request) bool {
	to, err := url.Parse(c.RedirectURL)
	if err != nil || r.URL.EscapedPath() != to.EscapedPath() {
		return false
	}
	if port := to.Port(); port != "" && port != "443" {
		return strings.EqualFold(r.Host, to.Host)
	}
	return strings.EqualFold((&url.URL{Host: r.Host}).Hostname(), to.Hostname())
}

// listen has users come back to this machine, unless they can already; mu is held.
func (u *UserTokens) listen() error {
	if u.server != nil {
		return nil
	}
	back, err := url.Parse(u.client.RedirectURL)
	if err != nil {
		return errNoCallback
	}
	listener, err := net.Listen("tcp", back.Host)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: u.callbackMux(back), ReadTimeout: requestTimeout, WriteTimeout: 2 * requestTimeout, IdleTimeout: requestTimeout, MaxHeaderBytes: 32 << 10,
		ErrorLog: log.New(io.Discard, "", 0), // what a browser does wrong is nobody's business
	}
	u.server, u.listener = server, listener
	u.broker.background.Go(func() { _ = server.Serve(listener) }) // ends when it is closed
	return nil
}

// stop closes the door; mu is held.
func (u *UserTokens) stopListening() {
	if u.server != nil {
		_ = u.listener.Close() // at once, also when the server has not begun to listen
		_ = u.server.Close()
		u.server, u.listener = nil, nil
	}
}

// back takes users back to this machine: one path, one method, one name.
func (u *UserTokens) callbackMux(to *url.URL) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.Host != to.Host || r.URL.Path != to.Path {
			setPageHeaders(w.Header())
			w.WriteHeader(http.StatusNotFound)
			return
		}
		u.handleCallback(w, r)
	})
}

// What a user sees who comes back. Nothing of the request is in it.
const (
	pageDone    = "Done. You can close this window."
	pageRefused = "It was not allowed. You can close this window."
	pageUnknown = "Nobody waits for this any more. Start again where you came from."
)

// dress has a page lead nowhere, run nothing and be kept by nobody.
func setPageHeaders(h http.Header) {
	for name, value := range map[string]string{
		"Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer",
		"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "X-Content-Type-Options": "nosniff",
	} {
		h.Set(name, value)
	}
}

// welcome takes a user back who comes with a state that was given out, once.
func (u *UserTokens) handleCallback(w http.ResponseWriter, r *http.Request) {
	setPageHeaders(w.Header())
	status, page := http.StatusBadRequest, pageUnknown
	query := r.URL.Query()
	if v := u.takeState(query.Get("state")); v != nil {
		ended := make(chan struct{})
		if u.broker.runDetached(r.Context(), func(ctx context.Context) { // whether or not the browser waits
			defer close(ended)
			status, page = u.completeCallback(ctx, v, query)
		}) {
			<-ended
		}
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, page)
}

// arrive returns the visit of a state, and nil when nobody is on it: whoever comes
// with the state again is nobody.
func (u *UserTokens) takeState(state string) *authorization {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.expire()
	v := u.authorizations[sha256.Sum256([]byte(state))]
	if v == nil || v.stage != stageAtProvider {
		return nil
	}
	u.advance(v, stageReturned)
	return v
}

// returned gets the token for which a user came back. On this machine it is theirs;
// on a page of the front it waits for the code, as nobody knows who opened that.
func (u *UserTokens) completeCallback(ctx context.Context, v *authorization, query url.Values) (status int, page string) {
	var got token
	err := errNotAllowed
	if code := query.Get("code"); code != "" && query.Get("error") == "" {
		got, err = u.redeem(ctx, code, v.verifier)
	}
	if err == nil && !u.client.HasRemoteCallback() {
		err = u.storeFirst(v, got)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case v.stage != stageReturned: // somebody has ended it meanwhile
		return http.StatusBadRequest, pageUnknown
	case err != nil:
		u.end(v, err)
		return http.StatusForbidden, pageRefused
	case u.client.HasRemoteCallback():
		mark := rand.Text()[:4] // the page and the forms for its code have it in common
		v.token, v.code, v.attemptsLeft, v.expires = got, newCode(), maxCodeAttempts, u.broker.options.Now().Add(authorizationTimeout)
		for i := range v.forms {
			v.forms[i] = u.client.form(mark, i+1)
		}
		u.advance(v, stageCodeShown)
		return http.StatusOK, u.codePage(v, mark)
	}
	u.end(v, nil)
	return http.StatusOK, pageDone
}

// pageCode says what is about to be joined to whom, and shows the code that joins it.
func (u *UserTokens) codePage(v *authorization, mark string) string {
	return fmt.Sprintf(`%s lets the server %s, which it knows as %+q, act for you. This is not joined to anybody yet.

It would be joined to the caller of that server who is known as

    %s

If that is you, type this code where your own client asks for the one beside the mark %s, within ten minutes:

    %s

If somebody sent you the link that brought you here, close this window, and tell nobody the code: nothing has been joined.
`, hostIn(u.client.AuthorizeURL), hostIn(u.client.RedirectURL), u.client.ID, v.caller.DisplayName, mark, v.code)
}

func hostIn(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}
