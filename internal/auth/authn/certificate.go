package authn

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"github.com/mcpd/mcpd/identity"
)

var (
	errCertificateName = errors.New("no name of the client certificate is allowed")
	errCertificateTime = errors.New("the client certificate has expired since the connection was made")
)

// leafOf returns the client certificate of a connection, nil when it has none
// that was verified.
func leafOf(c *tls.ConnectionState) *x509.Certificate {
	if c == nil || len(c.VerifiedChains) == 0 || len(c.VerifiedChains[0]) == 0 {
		return nil
	}
	return c.VerifiedChains[0][0]
}

// principalOf returns who holds a certificate that was verified, by the first of
// the methods that allows one of its names.
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
