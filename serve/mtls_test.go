package serve_test

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/serve"
)

// signer signs certificates.
type signer struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newSigner(t *testing.T) signer {
	s := signer{t: t}
	template := &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	made := s.sign(template)
	s.cert, s.key = made.Leaf, made.PrivateKey.(*ecdsa.PrivateKey)
	return s
}

// sign signs a certificate, which one that has not signed yet does itself.
func (s signer) sign(template *x509.Certificate) tls.Certificate {
	s.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(1), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	by, signs := s.cert, s.key
	if by == nil {
		by, signs = template, key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, by, key.Public(), signs)
	if err != nil {
		s.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(raw)
	if err != nil {
		s.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key, Leaf: leaf}
}

// client is somebody with a certificate of a name, on one connection.
func (s signer) client(name string) *http.Client {
	own := s.sign(&x509.Certificate{DNSNames: []string{name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	transport := &http.Transport{MaxConnsPerHost: 1, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &own, nil }}}
	s.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

func writePEM(t *testing.T, path, kind string, raw []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), 0o600); err != nil {
		t.Fatal(err)
	}
}

// encrypted runs a server that knows its callers by certificates, and returns its URL.
func encrypted(t *testing.T, folder string, by signer) string {
	t.Helper()
	own := by.sign(&x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	key, err := x509.MarshalPKCS8PrivateKey(own.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	writePEM(t, filepath.Join(folder, "cert.pem"), "CERTIFICATE", own.Certificate[0])
	writePEM(t, filepath.Join(folder, "key.pem"), "PRIVATE KEY", key)
	writePEM(t, filepath.Join(folder, "ca.pem"), "CERTIFICATE", by.cert.Raw)
	s, err := engine.New(engine.Options{
		Name: "test", ConfigPath: filepath.ToSlash(filepath.Join(folder, "mcpd.hcl")), CheckAuth: serve.CheckAuth, CheckTLS: serve.CheckTLS,
		Config: fstest.MapFS{"mcpd.hcl": {Mode: 0o644, Data: []byte("listen {\n  tls {\n    cert_file = \"cert.pem\"\n    key_file = \"key.pem\"\n    client_ca_file = \"ca.pem\"\n  }\n}\nauth \"mtls\" \"fleet\" {}\n")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	at, ended := make(chan net.Addr, 1), make(chan error, 1)
	front := serve.New(s, serve.Options{Address: "127.0.0.1:0", Grace: time.Millisecond, OnListen: func(a net.Addr) { at <- a }})
	go func() { ended <- front.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case a := <-at:
		return "https://" + a.String()
	case err := <-ended:
		ended <- err
		t.Fatal(err)
	}
	return ""
}

// TestAnAuthorityThatIsTakenOutTakesItsConnectionsAlong: a client that is connected is
// judged by the authorities of now, and not by those of its handshake.
func TestAnAuthorityThatIsTakenOutTakesItsConnectionsAlong(t *testing.T) {
	folder, before, after := t.TempDir(), newSigner(t), newSigner(t)
	url := encrypted(t, folder, before)
	ask := func(c *http.Client) (status int, reused bool) {
		trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused }}
		r, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodGet, url+"/mcp/capabilities", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := c.Do(r)
		if err != nil {
			return 0, reused
		}
		_, err = io.Copy(io.Discard, answer.Body)
		if err = cmp.Or(err, answer.Body.Close()); err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, reused
	}
	old := before.client("ada.example")
	for round := range 2 {
		if status, reused := ask(old); status != http.StatusOK || reused != (round > 0) {
			t.Fatalf("the status is %d, on the same connection: %v", status, reused)
		}
	}
	writePEM(t, filepath.Join(folder, "ca.pem"), "CERTIFICATE", after.cert.Raw)
	// Whoever connects has the server look at the file.
	if status, _ := ask(after.client("bob.example")); status != http.StatusOK {
		t.Errorf("a client of the new authority gets %d", status)
	}
	if status, reused := ask(old); status != http.StatusUnauthorized || !reused {
		t.Errorf("the old connection gets %d, and is the same: %v", status, reused)
	}
	if status, _ := ask(before.client("ada.example")); status == http.StatusOK {
		t.Error("a client of the old authority gets in")
	}
}
