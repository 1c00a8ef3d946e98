// Package certtest creates certificates for tests.
//
// An [Authority] issues certificates for servers and clients. [Write] and
// [WritePair] write them to files for a server. No certificate is valid for
// longer than a day.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/url"
	"os"
	"testing"
	"time"
)

// Authority signs certificates.
type Authority struct {
	// Cert is its self-signed certificate.
	Cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// New creates an authority.
func New(t testing.TB) *Authority {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "fleet"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	key := newKey(t)
	return &Authority{Cert: signed(t, template, template, key, key), key: key}
}

// Issue issues a certificate for an hour, for a server or a client. Its common
// name is name. Its other names are the URIs, or name if there are none.
func (a *Authority) Issue(t testing.TB, name string, uris ...string) tls.Certificate {
	t.Helper()
	return a.issue(t, time.Now().Add(time.Hour), name, uris...)
}

// IssueExpired is Issue for an expired certificate.
func (a *Authority) IssueExpired(t testing.TB, name string) tls.Certificate {
	t.Helper()
	return a.issue(t, time.Now().Add(-time.Minute), name)
}

func (a *Authority) issue(t testing.TB, end time.Time, name string, uris ...string) tls.Certificate {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: end, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	if len(uris) == 0 {
		template.DNSNames = []string{name}
	}
	for _, text := range uris {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		template.URIs = append(template.URIs, u)
	}
	key := newKey(t)
	leaf := signed(t, template, a.Cert, key, a.key)
	return tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key, Leaf: leaf}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func signed(t testing.TB, template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// Write writes certificates to a PEM file, and replaces an existing one.
func Write(t testing.TB, path string, certs ...*x509.Certificate) {
	t.Helper()
	var text []byte
	for _, c := range certs {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	write(t, path, text)
}

// WritePair writes a certificate and its key as PEM files.
func WritePair(t testing.TB, certPath, keyPath string, c tls.Certificate) {
	t.Helper()
	key, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	Write(t, certPath, c.Leaf)
	write(t, keyPath, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
}

func write(t testing.TB, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}
