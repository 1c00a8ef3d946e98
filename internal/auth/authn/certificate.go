package authn

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/wildcard"
)

var (
	errCertificateName = errors.New("no name of the client certificate is allowed")
	errCertificateTime = errors.New("the client certificate has expired since the connection was made")
)

// leafOf returns the verified client certificate of a connection; nil for none.
func leafOf(c *tls.ConnectionState) *x509.Certificate {
	if c == nil || len(c.VerifiedChains) == 0 || len(c.VerifiedChains[0]) == 0 {
		return nil
	}
	return c.VerifiedChains[0][0]
}

// principalOf returns the holder of a verified certificate, from the first
// method that allows one of its names.
func principalOf(leaf *x509.Certificate, methods []certificateMethod, now time.Time) (identity.Principal, error) {
	if now.After(leaf.NotAfter) {
		return identity.Principal{}, errCertificateTime
	}
	names := namesOf(leaf)
	for _, m := range methods {
		at := slices.IndexFunc(names, m.allows)
		if at < 0 {
			continue
		}
		sum := sha256.Sum256(leaf.Raw)
		p := identity.Principal{
			ID: names[at].text, Kind: identity.KindCertificate, Issuer: leaf.Issuer.String(), Scopes: []string{}, Groups: []string{},
			Claims: map[string]any{"serial": leaf.SerialNumber.Text(16), "fingerprint": hex.EncodeToString(sum[:])},
		}
		if m.agent {
			p.Agent = p.ID
		}
		return p, nil
	}
	return identity.Principal{}, errCertificateName
}

// nameType is a type of alternative names (RFC 5280 section 4.2.1.6).
type nameType string

const (
	anyName   nameType = "" // any but an address
	uriName   nameType = "uri"
	dnsName   nameType = "dns"
	emailName nameType = "email"
	ipName    nameType = "ip"
)

// altName is an alternative name of a certificate.
type altName struct {
	kind nameType
	text string
}

// namesOf returns the alternative names of a certificate: URIs, then hosts,
// then email addresses, then IP addresses. It omits the common name, which has
// no type.
func namesOf(leaf *x509.Certificate) []altName {
	var names []altName
	for _, u := range leaf.URIs {
		names = append(names, altName{uriName, u.String()})
	}
	for _, host := range leaf.DNSNames {
		names = append(names, altName{dnsName, host})
	}
	for _, address := range leaf.EmailAddresses {
		names = append(names, altName{emailName, address})
	}
	for _, address := range leaf.IPAddresses {
		if a, ok := netip.AddrFromSlice(address); ok {
			names = append(names, altName{ipName, a.Unmap().String()})
		}
	}
	return names
}

// namePattern is a parsed entry of [CertificateOptions].Allow.
type namePattern struct {
	kind nameType
	text string
	// network is set for ipName.
	network netip.Prefix
}

// parseName parses an entry. Its type is its prefix, or else follows from its
// form.
func parseName(entry string) (namePattern, error) {
	kind, text, typed := strings.Cut(entry, ":")
	switch p := (namePattern{kind: nameType(kind), text: text}); {
	case typed && text == "":
		return p, fmt.Errorf("the name %q is empty", entry)
	case typed && p.kind == ipName:
		return networkOf(text)
	case typed && (p.kind == uriName || p.kind == dnsName || p.kind == emailName):
		return p, nil
	case entry == "*":
		return namePattern{kind: anyName, text: entry}, nil
	}
	if p, err := networkOf(entry); err == nil {
		return p, nil
	}
	switch {
	case strings.ContainsAny(entry, ":/"):
		return namePattern{kind: uriName, text: entry}, nil
	case strings.Contains(entry, "@"):
		return namePattern{kind: emailName, text: entry}, nil
	}
	return namePattern{kind: dnsName, text: entry}, nil
}

// networkOf parses an address or a network of addresses.
func networkOf(text string) (namePattern, error) {
	network, err := netip.ParsePrefix(text)
	if err != nil {
		address, addrErr := netip.ParseAddr(text)
		if addrErr != nil || address.Zone() != "" {
			return namePattern{}, fmt.Errorf("%q is neither an IP address nor a network such as 10.0.0.0/8", text)
		}
		address = address.Unmap()
		network = netip.PrefixFrom(address, address.BitLen())
	}
	return namePattern{kind: ipName, network: network.Masked()}, nil
}

// matches reports whether a name has the pattern's type and matches it.
func (p namePattern) matches(n altName) bool {
	switch {
	case p.kind == ipName:
		address, err := netip.ParseAddr(n.text)
		return n.kind == ipName && err == nil && p.network.Contains(address)
	case p.kind == anyName:
		return n.kind != ipName
	}
	return p.kind == n.kind && wildcard.Matches(p.text, n.text)
}

// certificateMethod is a [CertificateOptions] with parsed patterns.
type certificateMethod struct {
	allow []namePattern
	agent bool
}

func certificateMethodOf(o CertificateOptions) (certificateMethod, error) {
	m := certificateMethod{agent: o.Agent}
	var errs []error
	for _, entry := range o.Allow {
		p, err := parseName(entry)
		m.allow, errs = append(m.allow, p), append(errs, err)
	}
	return m, errors.Join(errs...)
}

// allows reports whether the name of a certificate is accepted. An address is
// accepted only if an entry names it.
func (m certificateMethod) allows(n altName) bool {
	if n.text == "" || n.text == identity.AnonymousAgent {
		return false
	}
	if len(m.allow) == 0 {
		return n.kind != ipName
	}
	return slices.ContainsFunc(m.allow, func(p namePattern) bool { return p.matches(n) })
}

// certChain caches whether the present authorities verify the client
// certificate of a connection. A handshake verifies it once, and connections
// outlive authorities.
type certChain struct {
	files  *tlsFiles
	result atomic.Pointer[chainResult]
}

// chainResult is the result of verifying a chain with one pool of authorities.
// It is valid until the first certificate of the chain expires.
type chainResult struct {
	pool  *x509.CertPool
	until time.Time
	err   error
}

type chainKey struct{}

// ConnContext is the function [ConnContext] for connections of a TLS listener.
// It also makes requests verify their client certificate with the present
// authorities.
func (t *TLS) ConnContext(ctx context.Context, c net.Conn) context.Context {
	ctx = ConnContext(ctx, c)
	if t.files.ClientCAFile == "" {
		return ctx
	}
	return context.WithValue(ctx, chainKey{}, &certChain{files: t.files})
}

// verifyClientCert returns an error if the client certificate of a request,
// which was valid in the handshake, is no longer valid. It checks only
// connections of [TLS.ConnContext].
func verifyClientCert(r *http.Request) error {
	c, ok := r.Context().Value(chainKey{}).(*certChain)
	if !ok {
		return nil
	}
	pool := c.files.clientCAs()
	result := c.result.Load()
	if result == nil || result.pool != pool || result.err == nil && c.files.Now().After(result.until) {
		result = c.verify(r.TLS, pool)
		c.result.Store(result)
	}
	return result.err
}

// verify verifies the chain as a handshake would do now.
func (c *certChain) verify(state *tls.ConnectionState, pool *x509.CertPool) *chainResult {
	o := x509.VerifyOptions{Roots: pool, Intermediates: x509.NewCertPool(), CurrentTime: c.files.Now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	for _, between := range state.PeerCertificates[1:] {
		o.Intermediates.AddCert(between)
	}
	chains, err := leafOf(state).Verify(o)
	if err != nil {
		return &chainResult{pool: pool, err: fmt.Errorf("the client certificate is no longer valid: %w", err)}
	}
	until := chains[0][0].NotAfter
	for _, issuer := range chains[0] { // another chain may be valid longer, and is found then
		if issuer.NotAfter.Before(until) {
			until = issuer.NotAfter
		}
	}
	return &chainResult{pool: pool, until: until}
}
