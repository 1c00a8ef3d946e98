package authn

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/mcpd/mcpd/identity"
)

// Door tells an HTTP transport who sends a request, and where it came in. The
// zero Door lets everyone in as anonymous.
type Door struct {
	// Authenticate proves who sends a request. Nil stands for [Anonymous].
	Authenticate Authenticator
	// Source says where a request came in; nil tells the address of the peer.
	Source func(*http.Request) identity.Source
	// Logger is told why requests are refused. Nil is nobody.
	Logger *slog.Logger
	// Refusals bounds how often the logger is told of those. Nil stands for no bound.
	Refusals *Sparing
	// Contradicted is told who claims to be another agent than its credential is bound
	// to. Nil is nobody.
	Contradicted func(identity.Principal, identity.Source)
}

// credentialHeaders are those that carry credentials, in canonical form.
var credentialHeaders = [...]string{"Authorization", "X-Api-Key"}

// Enter returns who sent the request, and takes its credential out. The pass says
// whether that still holds, once time has gone by. An error refuses the request;
// what to answer then, [Door.Refuse] says.
func (d Door) Enter(r *http.Request) (identity.Principal, identity.Source, *Pass, error) {
	source := d.Source
	if source == nil {
		source = Peer
	}
	if d.Authenticate == nil {
		p, _ := Anonymous()(r)
		forget(r)
		return p, source(r), nil, nil
	}
	p, err := d.Authenticate(r)
	if err != nil {
		forget(r)
		return identity.Principal{}, identity.Source{}, nil, err
	}
	pass := newPass(d, r, &p)
	forget(r)
	return p, source(r), pass, nil
}

// forget takes the credential out of a request: nobody behind the door has a use
// for it.
func forget(r *http.Request) {
	for _, name := range credentialHeaders {
		delete(r.Header, name)
	}
}

// Refuse prepares the answer to a request that [Door.Enter] refused with err: it
// sets the headers, tells the operator why, and returns the status and what the
// caller may know. Any error but a [*Refusal] is a 401 without a challenge.
func (d Door) Refuse(h http.Header, r *http.Request, err error) (status int, message string) {
	refusal := &Refusal{Status: http.StatusUnauthorized, reason: err}
	errors.As(err, &refusal)
	refusal.setHeaders(h)
	d.tell(r, refusal)
	return refusal.Status, refusal.message()
}

// tell tells the operator of a refusal, unless there were too many of late.
func (d Door) tell(r *http.Request, refusal *Refusal) {
	attributes := []slog.Attr{slog.Int("status", refusal.Status), slog.String("reason", refusal.Error())}
	if d.Refusals != nil {
		withheld, tell := d.Refusals.Tell(time.Now())
		if !tell {
			return
		}
		if withheld > 0 {
			attributes = append(attributes, slog.Int("not_logged_before", withheld))
		}
	}
	d.log(r, "a request was refused at the door", attributes...)
}

// log tells the operator of a request.
func (d Door) log(r *http.Request, what string, attributes ...slog.Attr) {
	if d.Logger != nil {
		d.Logger.LogAttrs(r.Context(), slog.LevelWarn, what, append(attributes, slog.String("ip", Peer(r).IP))...)
	}
}

// Peer returns the address of who sent the request; that of nobody who came by a socket.
func Peer(r *http.Request) identity.Source {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = ""
	}
	return identity.Source{IP: host}
}
