package authn

import (
	"net"
	"net/http"

	"github.com/mcpd/mcpd/identity"
)

// Door tells an HTTP transport who sends a request, and where it came in. The
// zero Door lets everyone in as anonymous.
type Door struct {
	// Authenticate proves who sends a request. Nil stands for [Anonymous].
	Authenticate Authenticator
	// Source says where a request came in; nil tells the address of the peer.
	Source func(*http.Request) identity.Source
}

// Enter returns who sent the request. An error refuses the request; it is the
// transport's to say so, with 401.
func (d Door) Enter(r *http.Request) (identity.Principal, identity.Source, error) {
	authenticate, source := d.Authenticate, d.Source
	if authenticate == nil {
		authenticate = Anonymous()
	}
	if source == nil {
		source = peerAddress
	}
	p, err := authenticate(r)
	if err != nil {
		return identity.Principal{}, identity.Source{}, err
	}
	return p, source(r), nil
}

func peerAddress(r *http.Request) identity.Source {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = ""
	}
	return identity.Source{IP: host}
}
