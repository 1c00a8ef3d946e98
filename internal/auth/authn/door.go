package authn

import (
	"cmp"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/httpheader"
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
	// Conflicted is told of requests that are refused for their [Conflict]. Nil is nobody.
	Conflicted func(*http.Request, Conflict)
}

// credentialHeaders are those that carry credentials, in canonical form.
var credentialHeaders = [...]string{"Authorization", "X-Api-Key"}

// Enter returns who sent the request, and takes its credential out. The pass says
// whether that still holds, once time has gone by. An error refuses the request;
// what to answer then, [Door.Refuse] says.
func (d Door) Enter(r *http.Request) (identity.Principal, identity.Source, *Pass, error) {
	if d.Authenticate == nil {
		p, _ := Anonymous()(r)
		forget(r)
		return p, d.source(r), nil, nil
	}
	p, err := d.Authenticate(r)
	if err != nil {
		forget(r)
		return identity.Principal{}, identity.Source{}, nil, err
	}
	pass := newPass(d, r, &p)
	forget(r)
	return p, d.source(r), pass, nil
}

// source says where a request came in.
func (d Door) source(r *http.Request) identity.Source {
	if d.Source == nil {
		return Peer(r)
	}
	return d.Source(r)
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
// caller may know. The answer has the id of the request that the operator is told: its
// own, where it has one. Any error but a [*Refusal] is a 401 without a challenge.
func (d Door) Refuse(h http.Header, r *http.Request, err error) (status int, message string) {
	refusal := &Refusal{Status: http.StatusUnauthorized, reason: err}
	errors.As(err, &refusal)
	refusal.setHeaders(h)
	id := cmp.Or(h.Get(httpheader.RequestID), httpheader.RequestIDOf(r.Header))
	if id == "" {
		id = httpheader.NewRequestID()
	}
	h.Set(httpheader.RequestID, id)
	var conflict *conflictError
	if errors.As(err, &conflict) && d.Conflicted != nil {
		d.Conflicted(r, Conflict{Principal: conflict.principal, Agent: conflict.agent, Source: d.source(r), RequestID: id})
	}
	d.tell(r, id, refusal)
	return refusal.Status, refusal.message()
}

// tell tells the operator of a refusal, unless there were too many of late.
func (d Door) tell(r *http.Request, id string, refusal *Refusal) {
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
	d.log(r, id, "a request was refused at the door", attributes...)
}

// log tells the operator of a request, which has an id unless that is empty.
func (d Door) log(r *http.Request, id, what string, attributes ...slog.Attr) {
	if d.Logger == nil {
		return
	}
	if id != "" {
		attributes = append(attributes, slog.String("request_id", id))
	}
	d.Logger.LogAttrs(r.Context(), slog.LevelWarn, what, append(attributes, slog.String("ip", Peer(r).IP))...)
}

// Peer returns the address of who sent the request; that of nobody who came by a socket.
func Peer(r *http.Request) identity.Source {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = ""
	}
	return identity.Source{IP: host}
}
