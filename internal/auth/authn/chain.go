package authn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"
)

// chain is what is known of the client certificate of one connection: whether the
// authorities of now vouch for it. A handshake asks those of its time, and connections
// outlive authorities.
type chain struct {
	files   *tlsFiles
	verdict atomic.Pointer[verdict]
}

// verdict is what one pool of authorities says of a chain, as long as none of those has
// expired by which it says so.
type verdict struct {
	by    *x509.CertPool
	until time.Time
	err   error
}

type chainKey struct{}

// ConnContext is the function [ConnContext] for the connections of a listener, whose
// requests are held to the authorities of client certificates that there are by then.
func (t *TLS) ConnContext(ctx context.Context, c net.Conn) context.Context {
	ctx = ConnContext(ctx, c)
	if t.files.ClientCAFile == "" {
		return ctx
	}
	return context.WithValue(ctx, chainKey{}, &chain{files: t.files})
}

// vouched returns why the client certificate of a request, which was verified when its
// connection was made, is not good any more. It knows that of listeners alone whose
// connections [TLS.ConnContext] has seen.
func vouched(r *http.Request) error {
	c, ok := r.Context().Value(chainKey{}).(*chain)
	if !ok {
		return nil
	}
	pool := c.files.authorities()
	known := c.verdict.Load()
	if known == nil || known.by != pool || known.err == nil && c.files.Now().After(known.until) {
		known = c.verify(r.TLS, pool)
		c.verdict.Store(known)
	}
	return known.err
}

// verify does with a chain what a handshake would do now.
func (c *chain) verify(state *tls.ConnectionState, pool *x509.CertPool) *verdict {
	o := x509.VerifyOptions{Roots: pool, Intermediates: x509.NewCertPool(), CurrentTime: c.files.Now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	for _, between := range state.PeerCertificates[1:] {
		o.Intermediates.AddCert(between)
	}
	chains, err := leafOf(state).Verify(o)
	if err != nil {
		return &verdict{by: pool, err: fmt.Errorf("the client certificate is not good any more: %w", err)}
	}
	until := chains[0][0].NotAfter
	for _, above := range chains[0] { // another one may be good for longer, and is found then
		if above.NotAfter.Before(until) {
			until = above.NotAfter
		}
	}
	return &verdict{by: pool, until: until}
}
