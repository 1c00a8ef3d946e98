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

// CallbackPath is the path prefix of redirect URLs on the front.
const CallbackPath = "/oauth/"

// CallbackHandler enables redirects to the front. It returns a function that returns the
// handler of a request, or nil. It handles the redirect URLs below [CallbackPath] of the
// current clients, by path and host. A browser arrives there from another site, without
// credentials.
func (b *Broker) CallbackHandler() func(*http.Request) http.Handler {
	b.hasCallbacks.Store(true)
	return b.callback
}

func (b *Broker) callback(r *http.Request) http.Handler {
	if !strings.HasPrefix(r.URL.Path, CallbackPath) || r.Method != http.MethodGet {
		return nil
	}
	for _, u := range b.clients() {
		if u.client.HasRemoteCallback() && u.client.matchesRedirect(r) {
			return http.HandlerFunc(u.handleCallback)
		}
	}
	return nil
}

// HasRemoteCallback reports whether users return to the front and not to a port of this
// machine.
func (c Client) HasRemoteCallback() bool { return strings.HasPrefix(c.RedirectURL, "https://") }

// matchesRedirect reports whether a request is for the redirect URL. If that has the default
// port, the port of the request is ignored: browsers omit it, and proxies may set their own.
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

// listen starts the local callback server unless it runs. The caller holds mu.
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
		ErrorLog: log.New(io.Discard, "", 0), // errors of browsers are not logged
	}
	u.server, u.listener = server, listener
	u.broker.background.Go(func() { _ = server.Serve(listener) }) // ends when it is closed
	return nil
}

// stopListening stops the callback server. The caller holds mu.
func (u *UserTokens) stopListening() {
	if u.server != nil {
		_ = u.listener.Close() // at once, even if the server has not started to listen
		_ = u.server.Close()
		u.server, u.listener = nil, nil
	}
}

// callbackMux serves the local callback: one path, one method, one host name.
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

// The texts for a returning user. They contain nothing of the request.
const (
	pageDone    = "Done. You can close this window."
	pageRefused = "Access was not granted. You can close this window."
	pageUnknown = "This link is not valid any more. Start again in your client."
	pageAway    = "The server cannot reach its database. Load this page again in a minute, or start again in your client."
	pageLost    = "The server lost its database, and access was not granted. Start again in your client in a minute."
)

// setPageHeaders sets headers that forbid links, scripts and caching.
func setPageHeaders(h http.Header) {
	for name, value := range map[string]string{
		"Content-Type": "text/plain; charset=utf-8", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer",
		"Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'", "X-Content-Type-Options": "nosniff",
	} {
		h.Set(name, value)
	}
}

// handleCallback handles the return of a user with an issued state, once.
func (u *UserTokens) handleCallback(w http.ResponseWriter, r *http.Request) {
	setPageHeaders(w.Header())
	status, page := http.StatusBadRequest, pageUnknown
	query := r.URL.Query()
	v, err := u.takeState(r.Context(), query.Get("state"))
	if err != nil {
		status, page = http.StatusServiceUnavailable, pageAway
	}
	if v != nil {
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

// takeState returns the authorization of a state, or nil. A state can be used once, at one
// replica.
func (u *UserTokens) takeState(ctx context.Context, state string) (*authorization, error) {
	if len(state) != stateLength && len(state) != LocatorLength+stateLength {
		return nil, nil
	}
	select { // everyone can send states, and each may cost two queries of the database
	case u.looking <- struct{}{}:
		defer func() { <-u.looking }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if all, err := u.shared(); err != nil || all != nil {
		if err != nil {
			return nil, err
		}
		return u.takeShared(all, state)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.expire()
	v := u.authorizations[sha256.Sum256([]byte(state))]
	if v == nil || v.stage != stageAtProvider {
		return nil, nil
	}
	u.advance(v, stageReturned)
	return v, nil
}

// completeCallback fetches the token for a returned user. On this machine it is stored for the
// user. On a page of the front it waits for the code, because it is unknown who opened the
// page.
func (u *UserTokens) completeCallback(ctx context.Context, v *authorization, query url.Values) (status int, page string) {
	var got token
	err := errNotAllowed
	if code := query.Get("code"); code != "" && query.Get("error") == "" {
		got, err = u.redeem(ctx, code, v.verifier)
	}
	if v.locator != "" {
		return u.showSharedCode(v, got, err)
	}
	if err == nil && !u.client.HasRemoteCallback() {
		err = u.storeFirst(v, got)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	switch {
	case v.stage != stageReturned: // ended in the meantime
		return http.StatusBadRequest, pageUnknown
	case err != nil:
		u.end(v, err)
		return http.StatusForbidden, pageRefused
	case u.client.HasRemoteCallback():
		mark := rand.Text()[:4] // shared by the page and the forms for its code
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

// codePage returns the page with the code. It says which caller gets the access.
func (u *UserTokens) codePage(v *authorization, mark string) string {
	return fmt.Sprintf(`%s lets the server %s, which it knows as %+q, act for you. No caller has this access yet.

The server would give it to this caller:

    %s

If this is you, enter this code in your own client, in the form with the mark %s, within ten minutes:

    %s

If another person sent you the link to this page, close this window and do not share the code. Then no caller gets the access.
`, hostIn(u.client.AuthorizeURL), hostIn(u.client.RedirectURL), u.client.ID, v.caller.DisplayName, mark, v.code)
}

func hostIn(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}
