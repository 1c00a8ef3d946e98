package authn

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"math/big"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"
)

func methodFor(t *testing.T, allow ...string) certificateMethod {
	t.Helper()
	m, err := certificateMethodOf(CertificateOptions{Allow: allow})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// certificateOf returns a certificate with the alternative names.
func certificateOf(t *testing.T, names x509.Certificate) *x509.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	names.SerialNumber, names.NotAfter = big.NewInt(1), time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, &names, &names, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return leaf
}

func TestCertificateAllow_types(t *testing.T) {
	fleet, err := url.Parse("spiffe://fleet/a")
	if err != nil {
		t.Fatal(err)
	}
	query, err := url.Parse("https://evil.example/?mallory@example.com")
	if err != nil {
		t.Fatal(err)
	}
	leaves := map[string]*x509.Certificate{
		"uri":   certificateOf(t, x509.Certificate{URIs: []*url.URL{fleet}}),
		"query": certificateOf(t, x509.Certificate{URIs: []*url.URL{query}}),
		"dns":   certificateOf(t, x509.Certificate{DNSNames: []string{"api.example.com"}}),
		"email": certificateOf(t, x509.Certificate{EmailAddresses: []string{"ada@api.example.com"}}),
		"ip":    certificateOf(t, x509.Certificate{IPAddresses: []net.IP{net.ParseIP("10.1.2.3"), net.ParseIP("2001:db8::1")}}),
		"none":  certificateOf(t, x509.Certificate{}),
	}
	for _, row := range []struct {
		allow, accepts string // kinds of accepted names, and their ids
	}{
		{"", "dns:api.example.com email:ada@api.example.com query:https://evil.example/?mallory@example.com uri:spiffe://fleet/a"},
		{"*", "dns:api.example.com email:ada@api.example.com query:https://evil.example/?mallory@example.com uri:spiffe://fleet/a"},
		{"*.example.com", "dns:api.example.com"},
		{"api.example.com", "dns:api.example.com"},
		{"dns:*", "dns:api.example.com"},
		{"*@api.example.com", "email:ada@api.example.com"},
		{"*@*.com", "email:ada@api.example.com"},
		{"email:*.example.com", "email:ada@api.example.com"},
		{"spiffe://fleet/*", "uri:spiffe://fleet/a"},
		{"spiffe:*", "uri:spiffe://fleet/a"},
		{"*/fleet/*", "uri:spiffe://fleet/a"},
		{"uri:*fleet*", "uri:spiffe://fleet/a"},
		{"*fleet*", ""},
		{"dns:spiffe://fleet/a", ""},
		{"ip:10.0.0.0/8", "ip:10.1.2.3"},
		{"10.1.2.3", "ip:10.1.2.3"},
		{"ip:2001:db8::/32", "ip:2001:db8::1"},
		{"2001:db8::1", "ip:2001:db8::1"},
		{"::ffff:10.1.2.3", "ip:10.1.2.3"},
		{"10.1.*", ""},
		{"10.1.2.4", ""},
	} {
		var allow []string
		if row.allow != "" {
			allow = []string{row.allow}
		}
		var accepts []string
		for _, kind := range []string{"dns", "email", "ip", "none", "query", "uri"} {
			if p, err := principalOf(leaves[kind], []certificateMethod{methodFor(t, allow...)}, time.Now()); err == nil {
				accepts = append(accepts, kind+":"+p.ID)
			}
		}
		if got := strings.Join(accepts, " "); got != row.accepts {
			t.Errorf("allow = [%q] accepts %q, want %q", row.allow, got, row.accepts)
		}
	}
}

func TestCertificateAllow_malformed(t *testing.T) {
	for _, entry := range []string{"ip:10.0.0.0/99", "ip:*", "ip:fe80::1%eth0", "dns:", "ip:"} {
		if err := Check(Options{Certificates: []CertificateOptions{{Allow: []string{entry}}}}); err == nil {
			t.Errorf("%q was accepted", entry)
		}
	}
}
