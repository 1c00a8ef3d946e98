package serve_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/mcpd/mcpd/internal/auth/authn"
	"github.com/mcpd/mcpd/internal/auth/authn/certtest"
)

// encryption is what a listener with TLS has, and who signs for its clients.
type encryption struct {
	authority *certtest.Authority
	files     authn.TLSOptions
}

func newEncryption(t *testing.T) encryption {
	t.Helper()
	folder, by := t.TempDir(), certtest.New(t)
	e := encryption{by, authn.TLSOptions{
		CertFile: filepath.Join(folder, "cert.pem"), KeyFile: filepath.Join(folder, "key.pem"), ClientCAFile: filepath.Join(folder, "ca.pem"),
	}}
	certtest.WritePair(t, e.files.CertFile, e.files.KeyFile, by.Issue(t, "127.0.0.1"))
	certtest.Write(t, e.files.ClientCAFile, by.Cert)
	return e
}

// block returns the listen block of the files.
func (e encryption) block() string {
	return fmt.Sprintf("listen {\n  tls {\n    cert_file      = %q\n    key_file       = %q\n    client_ca_file = %q\n  }\n}\n", e.files.CertFile, e.files.KeyFile, e.files.ClientCAFile)
}

// site returns a site as somebody with a certificate reaches it, or with none.
func (e encryption) site(t *testing.T, at site, own ...tls.Certificate) site {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		if len(own) == 0 {
			return &tls.Certificate{}, nil
		}
		return &own[0], nil
	}}}
	t.Cleanup(transport.CloseIdleConnections)
	return site{at.name, at.url, &http.Client{Transport: transport}}
}

// encrypted returns the server on an address with TLS, as ada reaches it with her
// certificate.
func (m *matrix) encrypted(e encryption) site {
	m.t.Helper()
	handler, err := m.front.Handler()
	if err != nil {
		m.t.Fatal(err)
	}
	listening, err := authn.NewTLS(e.files)
	if err != nil {
		m.t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		m.t.Fatal(err)
	}
	server := &httptest.Server{
		Listener: tls.NewListener(listener, listening.Config()),
		Config:   &http.Server{Handler: handler, ConnContext: listening.ConnContext, ErrorLog: log.New(io.Discard, "", 0)},
	}
	server.Start()
	m.t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return e.site(m.t, site{name: "tls", url: "https://" + listener.Addr().String()}, e.authority.Issue(m.t, "ada.example"))
}

// unconnected returns what is wrong where somebody gets an answer who is not to have a
// connection.
func (m *matrix) unconnected(at site, method, path string) string {
	m.t.Helper()
	r, err := http.NewRequestWithContext(m.t.Context(), method, at.url+path, http.NoBody)
	if err != nil {
		m.t.Fatal(err)
	}
	answer, err := at.client.Transport.RoundTrip(r)
	if err != nil {
		return ""
	}
	answer.Body.Close()
	return answer.Status
}
