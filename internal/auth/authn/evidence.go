package authn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/netip"

	"github.com/mcpd/mcpd/internal/auth/peercred"
)

// Evidence is what the connection of a request says about its client. A server that forwards a request
// adds it, because another server cannot see that connection.
type Evidence struct {
	// Remote is the address of the client; "" on a socket.
	Remote string `json:"remote,omitempty"`
	// Chain is the verified client certificate in DER, with its issuers.
	Chain [][]byte `json:"chain,omitempty"`
	// Peer is the process at the other end of a socket.
	Peer *peercred.Cred `json:"peer,omitempty"`
}

// maxChain bounds the certificates of a client.
const maxChain = 10

// EvidenceOf returns what the connection of a request says. The error is not nil if the client sent too
// many certificates.
func EvidenceOf(r *http.Request) (e Evidence, err error) {
	if remote, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		e.Remote = remote.String()
	}
	if peer, ok := r.Context().Value(peerKey{}).(peercred.Cred); ok {
		e.Peer = &peer
	}
	if leafOf(r.TLS) == nil {
		return e, nil
	}
	if len(r.TLS.PeerCertificates) > maxChain {
		return e, errors.New("the client certificate has too many issuers")
	}
	for _, c := range r.TLS.PeerCertificates {
		e.Chain = append(e.Chain, c.Raw)
	}
	return e, nil
}

// Request returns a request with the evidence in place of its own connection. verifier is the TLS of
// the listener for clients, or nil: a certificate counts only if it requests client certificates, and its
// authorities verify the certificate again.
func (e Evidence) Request(r *http.Request, verifier *TLS) (*http.Request, error) {
	ctx := r.Context()
	var state *tls.ConnectionState
	if verifier != nil && verifier.files.ClientCAFile != "" && len(e.Chain) > 0 {
		if len(e.Chain) > maxChain {
			return nil, errors.New("read forwarded certificate: there are too many issuers")
		}
		state = &tls.ConnectionState{}
		for _, der := range e.Chain {
			c, err := x509.ParseCertificate(der)
			if err != nil {
				return nil, fmt.Errorf("read forwarded certificate: %w", err)
			}
			state.PeerCertificates = append(state.PeerCertificates, c)
		}
		state.VerifiedChains = [][]*x509.Certificate{state.PeerCertificates} // certChain verifies it
		ctx = context.WithValue(ctx, chainKey{}, &certChain{files: verifier.files})
	}
	if e.Peer != nil {
		ctx = context.WithValue(ctx, peerKey{}, *e.Peer)
	}
	r = r.WithContext(ctx)
	r.TLS, r.RemoteAddr = state, ""
	if remote, err := netip.ParseAddrPort(e.Remote); err == nil {
		r.RemoteAddr = remote.String()
	}
	return r, nil
}
