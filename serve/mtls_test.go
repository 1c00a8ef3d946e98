package serve_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/auth/authn/certtest"
	"github.com/mcpd/mcpd/serve"
)

// client is somebody with a certificate of a name, on one connection.
func client(t *testing.T, by *certtest.Authority, name string) *http.Client {
	own := by.Issue(t, name)
	transport := &http.Transport{MaxConnsPerHost: 1, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &own, nil }}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// encrypted runs a server that knows its callers by certificates, and returns its URL.
func encrypted(t *testing.T, folder string, by *certtest.Authority) string {
	t.Helper()
	certtest.WritePair(t, filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem"), by.Issue(t, "127.0.0.1"))
	certtest.Write(t, filepath.Join(folder, "ca.pem"), by.Cert)
	s, err := engine.New(engine.Options{
		Name: "test", ConfigPath: filepath.ToSlash(filepath.Join(folder, "mcpd.hcl")), Front: serve.Checks{},
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
			t.Fatalf("the status is %d, on the same connection: %v", status, reused)
		}
	}
	certtest.Write(t, filepath.Join(folder, "ca.pem"), after.Cert)
	// Whoever connects has the server look at the file.
	if status, _ := ask(client(t, after, "bob.example")); status != http.StatusOK {
		t.Errorf("a client of the new authority gets %d", status)
	}
	if status, reused := ask(old); status != http.StatusUnauthorized || !reused {
		t.Errorf("the old connection gets %d, and is the same: %v", status, reused)
	}
	if status, _ := ask(client(t, before, "ada.example")); status == http.StatusOK {
		t.Error("a client of the old authority gets in")
	}
}
