package serve_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/auth/authn"
	"github.com/mcpd/mcpd/internal/auth/authn/certtest"
	"github.com/mcpd/mcpd/serve"
)

func TestRun_addressInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	s, err := engine.New(engine.Options{Name: "test"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	err = serve.New(s, serve.Options{Address: taken.Addr().String()}).Run(t.Context())
	if err == nil || strings.Count(err.Error(), "listen") != 1 {
		t.Errorf("got %v", err)
	}
}

func TestRun_configuredSocket(t *testing.T) {
	folder, err := os.MkdirTemp("", "mcpd") // a path that is short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	path := filepath.Join(folder, "s")
	s, err := engine.New(engine.Options{
		Name: "test", Files: engine.Files{
			Tools:  fstest.MapFS{},
			Config: fstest.MapFS{"mcpd.hcl": {Data: fmt.Appendf(nil, "listen {\n  unix = %q\n}\n", path), Mode: 0o644}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var at net.Addr
	err = serve.New(s, serve.Options{OnListen: func(a net.Addr) {
		at = a
		stop()
	}}).Run(ctx)
	if err != nil || at == nil || at.String() != path || at.Network() != "unix" {
		t.Errorf("listening at %v, %v", at, err)
	}
}

// addressChecks checks the address but not the files of auth blocks.
type addressChecks struct{ withoutTLS }

func (addressChecks) CheckAuth([]engine.Auth) error { return nil }

// withoutTLS does not check the files of a tls block.
type withoutTLS struct{ serve.Checks }

func (withoutTLS) CheckTLS(engine.ListenTLS) error { return nil }

// TestReload_insecureListen edits the address or its authentication.
func TestReload_insecureListen(t *testing.T) {
	const guarded = "listen {\n  address = \"0.0.0.0:8443\"\n  tls {\n    cert_file = \"c\"\n    key_file  = \"k\"\n  }\n}\n"
	const keys = "auth \"api_key\" \"people\" {}\n"
	config := fstest.MapFS{"mcpd.hcl": {Data: []byte(guarded + keys), Mode: 0o644}}
	s, err := engine.New(engine.Options{Name: "test", Files: engine.Files{Config: config}, Front: addressChecks{}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(t.Context())
	if report, err := s.Load(t.Context()); err != nil {
		t.Fatal(report.Problems)
	}
	revision := s.Snapshot().Revision()
	for _, edit := range []struct{ text, where string }{
		{guarded, "mcpd.hcl:2:13"},
		{guarded + keys + "auth \"anonymous\" \"all\" {}\n", "mcpd.hcl:2:13"},
		{"listen { address = \"0.0.0.0:8443\" }\n" + keys, "mcpd.hcl:1:20"},
		{"listen { address = \":80\" }\n", "mcpd.hcl:1:20"},
	} {
		config["mcpd.hcl"].Data = []byte(edit.text)
		_, err := s.Load(t.Context())
		if err == nil || !strings.Contains(err.Error(), edit.where) || !strings.Contains(err.Error(), "anyone who reaches it could call every tool") {
			t.Errorf("%s: got %v", edit.text, err)
		}
		if s.Snapshot().Revision() != revision {
			t.Fatalf("%s was accepted", edit.text)
		}
	}
	for _, text := range []string{"listen { address = \"localhost:80\" }\n", "listen { address = \"[::1]:80\" }\n", "listen { hosts = [\"x.example\"] }\n", "listen { unix = \"/tmp/s\" }\n"} {
		config["mcpd.hcl"].Data = []byte(text)
		if _, err := s.Load(t.Context()); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// encryption is a TLS listener's certificate with the authority of its clients.
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

// site returns a site as reached with or without a client certificate.
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

// encrypted returns the server on an address with TLS, as reached with ada's
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

// unconnected returns an error if a client gets a response that must not
// connect.
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

// client returns an HTTP client with a certificate, on one connection.
func client(t *testing.T, by *certtest.Authority, name string) *http.Client {
	own := by.Issue(t, name)
	transport := &http.Transport{MaxConnsPerHost: 1, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &own, nil }}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// encrypted runs a server with client certificates, and returns its URL.
func encrypted(t *testing.T, folder string, by *certtest.Authority) string {
	t.Helper()
	certtest.WritePair(t, filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem"), by.Issue(t, "127.0.0.1"))
	certtest.Write(t, filepath.Join(folder, "ca.pem"), by.Cert)
	s, err := engine.New(engine.Options{
		Name: "test", Files: engine.Files{
			ConfigPath: filepath.ToSlash(filepath.Join(folder, "mcpd.hcl")),
			Config:     fstest.MapFS{"mcpd.hcl": {Mode: 0o644, Data: []byte("listen {\n  tls {\n    cert_file = \"cert.pem\"\n    key_file = \"key.pem\"\n    client_ca_file = \"ca.pem\"\n  }\n}\nauth \"mtls\" \"fleet\" {}\n")}},
		}, Front: serve.Checks{},
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

// TestTLS_removedAuthority: open connections are checked with the present
// authorities, not those of their handshake.
func TestTLS_removedAuthority(t *testing.T) {
	folder, before, after := t.TempDir(), certtest.New(t), certtest.New(t)
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
	old := client(t, before, "ada.example")
	for round := range 2 {
		if status, reused := ask(old); status != http.StatusOK || reused != (round > 0) {
			t.Fatalf("status %d, on the same connection: %v", status, reused)
		}
	}
	certtest.Write(t, filepath.Join(folder, "ca.pem"), after.Cert)
	// A new connection makes the server check the file.
	if status, _ := ask(client(t, after, "bob.example")); status != http.StatusOK {
		t.Errorf("client of the new authority: %d", status)
	}
	if status, reused := ask(old); status != http.StatusUnauthorized || !reused {
		t.Errorf("old connection: %d, reused: %v", status, reused)
	}
	if status, _ := ask(client(t, before, "ada.example")); status == http.StatusOK {
		t.Error("a client of the old authority was accepted")
	}
}
