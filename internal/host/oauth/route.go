package oauth

import (
	"net/http"
	"net/url"
	"strings"
)

// Route is where the front has pages to which users come back.
const Route = "/oauth/"

// Returns has users come back by a front, which passes on the requests that the
// function knows: it returns who answers one, and nil where nobody does. What it
// knows are the redirect URLs below [Route] of the clients that there are, each by
// its own path and host. A browser comes there from another site, without any
// credential.
func (i *Issuer) Returns() func(*http.Request) http.Handler {
	i.fronted.Store(true)
	return i.landing
}

func (i *Issuer) landing(r *http.Request) http.Handler {
	if !strings.HasPrefix(r.URL.Path, Route) || r.Method != http.MethodGet {
		return nil
	}
	for _, u := range i.all() {
		if u.client.Routed() && u.client.comesBack(r) {
			return http.HandlerFunc(u.welcome)
		}
	}
	return nil
}

// Routed reports whether the users of the client come back to the front, and not
// to a port of this machine.
func (c Client) Routed() bool { return strings.HasPrefix(c.RedirectURL, "https://") }

// comesBack reports whether a request is for the redirect URL. Where that has the
// default port, the one in the request does not count: browsers leave it out, and
// proxies may name that at which they are reached themselves.
func (c Client) comesBack(r *http.Request) bool {
	to, err := url.Parse(c.RedirectURL)
	if err != nil || r.URL.EscapedPath() != to.EscapedPath() {
		return false
	}
	if port := to.Port(); port != "" && port != "443" {
		return strings.EqualFold(r.Host, to.Host)
	}
	return strings.EqualFold((&url.URL{Host: r.Host}).Hostname(), to.Hostname())
}
