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

// ConnContext is a function for [net/http.Server.ConnContext]: it adds the peer
// credentials of a Unix socket to the contexts of its requests. It ignores
// other connections.
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

// peerContext returns a new context with only the peer information of ctx: the
// peer of a socket and the state of a client certificate.
func peerContext(ctx context.Context) context.Context {
	fresh := context.Background()
	for _, key := range []any{peerKey{}, chainKey{}} {
		if value := ctx.Value(key); value != nil {
			fresh = context.WithValue(fresh, key, value)
		}
	}
	return fresh
}

// peerPrincipal returns the principal of a socket peer that one of the methods
// accepts.
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

// recheckInterval is the maximum age of an access check: access is revoked
// after that time at the latest.
const recheckInterval = 500 * time.Millisecond

// ErrAccessRevoked reports that a client no longer has access. It is sent to
// the client unchanged.
var ErrAccessRevoked = errors.New("the credential of the connection is no longer accepted")

// Access is the access of an authenticated client. While a body arrives or a
// connection is open, a key may be revoked, a token may expire, and methods may
// change. An Access is safe for concurrent use; a nil Access is never revoked.
type Access struct {
	// Fixed at creation.
	middleware Middleware
	// request has only the credentials of the original request; nil if there were
	// none.
	request *http.Request
	// principal is the authenticated client; nil if anonymous.
	principal *identity.Principal

	checkedAt atomic.Int64 // time of the last check, in nanoseconds
	revoked   atomic.Bool
}

// newAccess returns the access of a request that was just accepted.
func newAccess(m Middleware, r *http.Request, p *identity.Principal) *Access {
	access := &Access{middleware: m}
	if p.Kind != identity.KindAnonymous {
		who := *p
		access.principal, access.request = &who, credentialRequest(r)
	}
	access.checkedAt.Store(time.Now().UnixNano())
	return access
}

// credentialRequest returns a request with only the credential and the
// connection of r. It also has the request id, for the log.
func credentialRequest(r *http.Request) *http.Request {
	h := http.Header{}
	for _, name := range append(credentialHeaders[:], httpheader.RequestID) {
		if values := r.Header[name]; values != nil {
			h[name] = values
		}
	}
	stripped := &http.Request{Header: h, TLS: r.TLS, RemoteAddr: r.RemoteAddr}
	return stripped.WithContext(peerContext(r.Context()))
}

// Check returns [ErrAccessRevoked] if the request would now be rejected, or
// have another principal. It authenticates again at most every half second, in
// one of the calling goroutines.
func (a *Access) Check() error {
	if a == nil {
		return nil
	}
	now, last := time.Now().UnixNano(), a.checkedAt.Load()
	if age := now - last; (age >= int64(recheckInterval) || age < 0) && a.checkedAt.CompareAndSwap(last, now) {
		a.recheck()
	}
	if a.revoked.Load() {
		return ErrAccessRevoked
	}
	return nil
}

// recheck authenticates the request again. It logs a revocation once.
func (a *Access) recheck() {
	request := a.request
	if request == nil {
		request = &http.Request{Header: http.Header{}}
	}
	err := a.authenticate(request)
	if !a.revoked.Swap(err != nil) && err != nil {
		a.middleware.log(request, httpheader.RequestIDOf(request.Header), "close connection after access was revoked", slog.String("reason", err.Error()))
	}
}

// authenticate returns an error if the request would now be rejected or have
// another principal. A panic in the calling goroutine becomes an error.
func (a *Access) authenticate(request *http.Request) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("panic: %v", cause)
		}
	}()
	who, err := a.middleware.Authenticator(request)
	if err == nil && !a.isSame(&who) {
		err = errors.New("the principal has changed")
	}
	return err
}

func (a *Access) isSame(now *identity.Principal) bool {
	if a.principal == nil {
		return now.Kind == identity.KindAnonymous
	}
	return reflect.DeepEqual(a.principal, now)
}
