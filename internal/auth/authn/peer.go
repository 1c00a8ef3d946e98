package authn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/auth/peercred"
	"github.com/mcpd/mcpd/internal/base/httpheader"
)

type peerKey struct{}

// ConnContext is for [net/http.Server.ConnContext]: it has requests that come in
// on a Unix socket carry who sent them. Those of other connections carry nothing.
func ConnContext(ctx context.Context, c net.Conn) context.Context {
	for {
		switch inner := c.(type) {
		case *net.UnixConn:
			if p, ok := peercred.Of(inner); ok {
				return context.WithValue(ctx, peerKey{}, p)
			}
			return ctx
		case interface{ NetConn() net.Conn }:
			c = inner.NetConn()
		default:
			return ctx
		}
	}
}

// withPeerOf returns a context that carries nothing but who sent what the other belongs
// to: what is known of the socket and of the client certificate.
func peerContext(ctx context.Context) context.Context {
	kept := context.Background()
	for _, key := range []any{peerKey{}, chainKey{}} {
		if known := ctx.Value(key); known != nil {
			kept = context.WithValue(kept, key, known)
		}
	}
	return kept
}

// user returns the principal of a peer that one of the methods lets in.
func peerPrincipal(ctx context.Context, methods []PeerOptions) (identity.Principal, bool) {
	if len(methods) == 0 {
		return identity.Principal{}, false
	}
	p, ok := ctx.Value(peerKey{}).(peercred.Cred)
	if !ok || !slices.ContainsFunc(methods, func(o PeerOptions) bool { return slices.Contains(o.UIDs, p.UID) || slices.Contains(o.GIDs, p.GID) }) {
		return identity.Principal{}, false
	}
	who := LocalPrincipal(strconv.FormatUint(uint64(p.UID), 10), "")
	who.Claims["gid"] = strconv.FormatUint(uint64(p.GID), 10)
	who.Claims["pid"] = strconv.FormatInt(int64(p.PID), 10)
	return who, true
}

// passAge is how old what is known of a pass may be: whoever may not enter any more
// is known so much later at most.
const recheckInterval = 500 * time.Millisecond

// ErrLapsed says that who has once entered may not do so any more. It is to be told
// to the client as it is.
var ErrAccessRevoked = errors.New("the credential that the connection was opened with is not accepted any more")

// Pass is what whoever has entered goes by. While a body is on its way or a
// connection is open, a key may be revoked, a token expire, and a method be taken
// away or demanded. It is safe for concurrent use; the nil Pass always holds.
type Access struct {
	// Fixed at creation.
	middleware Middleware
	// asked is what the request was judged by, and nothing else of it; nil where that
	// was nothing.
	request *http.Request
	// who has entered; nil for who nothing was proved about.
	principal *identity.Principal

	checkedAt atomic.Int64 // when the request was judged last, in nanoseconds
	revoked   atomic.Bool
}

// newPass returns the pass of a request that has just been let in.
func newAccess(d Middleware, r *http.Request, p *identity.Principal) *Access {
	pass := &Access{middleware: d}
	if p.Kind != identity.KindAnonymous {
		who := *p
		pass.principal, pass.request = &who, credentialRequest(r)
	}
	pass.checkedAt.Store(time.Now().UnixNano())
	return pass
}

// proofOf returns what proves who sent a request: its credential and its connection. The
// id of the request is for the log.
func credentialRequest(r *http.Request) *http.Request {
	h := http.Header{}
	for _, name := range append(credentialHeaders[:], httpheader.RequestID) {
		if values := r.Header[name]; values != nil {
			h[name] = values
		}
	}
	asked := &http.Request{Header: h, TLS: r.TLS, RemoteAddr: r.RemoteAddr}
	return asked.WithContext(peerContext(r.Context()))
}

// Holds returns [ErrLapsed] when the request would not be let in any more, or as
// somebody else. That is looked at again at most every half a second, by one of those
// who ask.
func (p *Access) Check() error {
	if p == nil {
		return nil
	}
	now, last := time.Now().UnixNano(), p.checkedAt.Load()
	if age := now - last; (age >= int64(recheckInterval) || age < 0) && p.checkedAt.CompareAndSwap(last, now) {
		p.recheck()
	}
	if p.revoked.Load() {
		return ErrAccessRevoked
	}
	return nil
}

// look judges the request again. The log is told once.
func (p *Access) recheck() {
	asked := p.request
	if asked == nil {
		asked = &http.Request{Header: http.Header{}}
	}
	err := p.authenticate(asked)
	if !p.revoked.Swap(err != nil) && err != nil {
		p.middleware.log(asked, httpheader.RequestIDOf(asked.Header), "a connection ends, as it would not be let in any more", slog.String("reason", err.Error()))
	}
}

// judge returns why the request would not be let in as before. What panics below it, in
// whatever goroutine has asked, lets nobody in.
func (p *Access) authenticate(asked *http.Request) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v", cause)
		}
	}()
	who, err := p.middleware.Authenticator(asked)
	if err == nil && !p.isSame(&who) {
		err = errors.New("it proves somebody else now")
	}
	return err
}

func (p *Access) isSame(now *identity.Principal) bool {
	if p.principal == nil {
		return now.Kind == identity.KindAnonymous
	}
	return reflect.DeepEqual(p.principal, now)
}
