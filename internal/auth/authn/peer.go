package authn

import (
	"context"
	"net"
	"slices"
	"strconv"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/auth/peercred"
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
func withPeerOf(ctx context.Context) context.Context {
	kept := context.Background()
	for _, key := range []any{peerKey{}, chainKey{}} {
		if known := ctx.Value(key); known != nil {
			kept = context.WithValue(kept, key, known)
		}
	}
	return kept
}

// user returns the principal of a peer that one of the methods lets in.
func user(ctx context.Context, methods []PeerOptions) (identity.Principal, bool) {
	if len(methods) == 0 {
		return identity.Principal{}, false
	}
	p, ok := ctx.Value(peerKey{}).(peercred.Cred)
	if !ok || !slices.ContainsFunc(methods, func(o PeerOptions) bool { return slices.Contains(o.UIDs, p.UID) || slices.Contains(o.GIDs, p.GID) }) {
		return identity.Principal{}, false
	}
	who := Local(strconv.FormatUint(uint64(p.UID), 10), "")
	who.Claims["gid"] = strconv.FormatUint(uint64(p.GID), 10)
	who.Claims["pid"] = strconv.FormatInt(int64(p.PID), 10)
	return who, true
}
