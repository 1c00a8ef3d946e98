package authn

import (
	"net/http"

	"github.com/mcpd/mcpd/identity"
)

// Authenticator proves who sent a request. An error means that the request
// carries a credential that proves nothing: it is refused, and is never
// treated as anonymous. An Authenticator is safe for concurrent use and does
// not change the request.
type Authenticator func(*http.Request) (identity.Principal, error)

// Anonymous returns the Authenticator of a server without credentials: nothing
// is proved about anyone.
func Anonymous() Authenticator {
	anonymous := identity.Anonymous()
	return func(*http.Request) (identity.Principal, error) { return anonymous, nil }
}

// Local returns the principal of the operating-system user who holds the other
// end of stdio or types the command line. The id is the name, or the uid when
// the name is not known; the claims hold both. Neither given, the id is "local".
func Local(uid, name string) identity.Principal {
	p := identity.Anonymous()
	p.Kind = identity.KindLocal
	p.ID = "local"
	for _, claim := range []struct{ key, value string }{{"uid", uid}, {"name", name}} {
		if claim.value == "" {
			continue
		}
		p.ID = claim.value
		p.Claims[claim.key] = claim.value
	}
	return p
}
