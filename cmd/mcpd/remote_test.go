package main

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/auth/authn/certtest"
)

func TestRemote_clientCertificate(t *testing.T) {
	authority, dir := certtest.New(t), t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	certtest.WritePair(t, file("cert.pem"), file("key.pem"), authority.Issue(t, "ada"))
	certtest.Write(t, file("ca.pem"), authority.Cert)
	pool := x509.NewCertPool()
	pool.AddCert(authority.Cert)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `"`+r.TLS.PeerCertificates[0].Subject.CommonName+`"`)
	}))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{authority.Issue(t, "localhost")}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
	server.StartTLS()
	defer server.Close()
	for name, c := range map[string]struct {
		flags *callFlags
		want  string // part of the error
	}{
		"certificate":    {flags: &callFlags{cert: file("cert.pem"), key: file("key.pem"), caCert: file("ca.pem")}},
		"no certificate": {&callFlags{caCert: file("ca.pem")}, "no server answers"},
		"no key":         {&callFlags{cert: file("cert.pem")}, "--cert and --key belong together"},
		"no file":        {&callFlags{cert: file("absent"), key: file("key.pem")}, "--cert: "},
		"no pair":        {&callFlags{cert: file("cert.pem"), key: file("ca.pem")}, "--key "},
		"no CA":          {&callFlags{caCert: file("key.pem")}, "has no PEM certificate"},
		"no TLS":         {&callFlags{url: "http://127.0.0.1:1", caCert: file("ca.pem")}, "need an https URL"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.flags.url == "" {
				c.flags.url = strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
			}
			var got string
			r, err := c.flags.remote(processEnv())
			if err == nil {
				err = r.exchange(t.Context(), http.MethodGet, "/", nil, &got)
			}
			switch {
			case c.want == "" && (err != nil || got != "ada"):
				t.Errorf("got %q, %v", got, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestRemote_followsNoRedirect(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the other server got %s %s", r.Method, r.URL)
	}))
	defer other.Close()
	named := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer named.Close()
	err := remoteOf(named.URL).exchange(t.Context(), http.MethodPost, "/mcp/execute", []byte(`{}`), new(answer))
	if err == nil || !strings.Contains(err.Error(), "answered 307 Temporary Redirect") {
		t.Errorf("got %v", err)
	}
}

func TestRemote_redactsPassword(t *testing.T) {
	for _, target := range []string{"http://me:hunter2@127.0.0.1:1", "http://me:hunter2@[::1"} {
		err := remoteOf(target).exchange(t.Context(), http.MethodGet, "", nil, new(answer))
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", target, err)
		}
	}
}
