package authn

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/auth/authn/certtest"
	"github.com/mcpd/mcpd/internal/auth/peercred"
)

// front is a TLS server with its files.
type front struct {
	t      *testing.T
	clock  *clock
	folder string
	log    strings.Builder
	site   *httptest.Server
	ca     *certtest.Authority
	pass   atomic.Pointer[Access] // of the last accepted request
}

func newFront(t *testing.T, r *Registry) *front { return newFrontAt(t, r, "tcp", "127.0.0.1:0") }

// newFrontAt is newFront at an address of a network.
func newFrontAt(t *testing.T, r *Registry, network, address string) *front {
	f := &front{t: t, clock: newClock(), folder: t.TempDir(), ca: certtest.New(t)}
	f.writeServer(f.ca.Issue(t, "127.0.0.1"))
	certtest.Write(t, f.path("ca.pem"), f.ca.Cert)
	c, err := NewTLS(TLSOptions{
		CertFile: f.path("cert.pem"), KeyFile: f.path("key.pem"), ClientCAFile: f.path("ca.pem"),
		Now: f.clock.now, Logger: slog.New(slog.NewTextHandler(&f.log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	f.site = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		p, _, pass, err := Middleware{Authenticator: r.Authenticate}.Authenticate(req)
		if err == nil {
			f.pass.Store(pass)
		}
		w.Header().Set("From", req.RemoteAddr)
		if err != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(p.ID))
	}))
	_ = f.site.Listener.Close()
	f.site.Listener, f.site.Config.ConnContext = tls.NewListener(l, c.Config()), c.ConnContext
	f.site.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	f.site.Start()
	t.Cleanup(f.site.Close)
	return f
}

func (f *front) path(name string) string { return filepath.Join(f.folder, name) }

func (f *front) writeServer(c tls.Certificate) {
	f.t.Helper()
	certtest.WritePair(f.t, f.path("cert.pem"), f.path("key.pem"), c)
}

// get opens a new connection, and returns the status of a request (0 for none)
// and the serial number of the server's certificate.
func (f *front) get(most uint16, certs ...tls.Certificate) (status int, serial string) {
	f.t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: certs, MaxVersion: most}}
	defer transport.CloseIdleConnections()
	r, err := (&http.Client{Transport: transport}).Get("https://" + f.site.Listener.Addr().String())
	if err != nil {
		return 0, ""
	}
	defer r.Body.Close()
	return r.StatusCode, r.TLS.PeerCertificates[0].SerialNumber.String()
}

// resumed reports whether a second connection resumes the session of the first.
func (f *front) resumed(c tls.Certificate) bool {
	f.t.Helper()
	config := &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{c}, ClientSessionCache: tls.NewLRUClientSessionCache(1)}
	for range 2 {
		transport := &http.Transport{TLSClientConfig: config}
		r, err := (&http.Client{Transport: transport}).Get("https://" + f.site.Listener.Addr().String())
		if err != nil {
			f.t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_ = r.Body.Close()
		transport.CloseIdleConnections()
		if r.TLS.DidResume {
			return true
		}
	}
	return false
}

func TestTLS_noResumption(t *testing.T) {
	if f := newFront(t, certificates(t)); f.resumed(f.ca.Issue(t, "a")) {
		t.Error("a session was resumed")
	}
}

func certificates(t *testing.T) *Registry {
	r := NewRegistry(RegistryOptions{})
	t.Cleanup(r.Close)
	if err := r.Apply(Options{Certificates: []CertificateOptions{{}}}); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTLS_clientCertificates(t *testing.T) {
	f := newFront(t, certificates(t))
	for name, row := range map[string]struct {
		certs []tls.Certificate
		most  uint16
		want  int
	}{
		"own authority":   {[]tls.Certificate{f.ca.Issue(t, "a")}, 0, 200},
		"none":            {nil, 0, 401},
		"other authority": {[]tls.Certificate{certtest.New(t).Issue(t, "a")}, 0, 0},
		"TLS 1.2":         {[]tls.Certificate{f.ca.Issue(t, "a")}, tls.VersionTLS12, 0},
	} {
		switch got, _ := f.get(row.most, row.certs...); {
		case name == "other authority" && got == 401: // Go's client sends no certificate of an authority that was not requested
		case got != row.want:
			t.Errorf("%s: status %d, want %d", name, got, row.want)
		}
	}
}

func TestTLS_reload(t *testing.T) {
	f := newFront(t, certificates(t))
	_, first := f.get(0)
	client := f.ca.Issue(t, "a")
	f.writeServer(f.ca.Issue(t, "127.0.0.1"))
	status, second := f.get(0, client)
	if status != 200 || second == first {
		t.Errorf("status %d, with the previous certificate: %v", status, second == first)
	}
	certtest.Write(t, f.path("cert.pem"), &x509.Certificate{Raw: []byte("none")})
	if status, again := f.get(0, client); status != 200 || again != second {
		t.Errorf("invalid file: status %d, with the previous certificate: %v", status, again == second)
	}
	if n := strings.Count(f.log.String(), "read TLS files, keeping previous ones"); n != 1 {
		t.Errorf("%d log messages", n)
	}
	f.ca = certtest.New(t)
	f.writeServer(f.ca.Issue(t, "127.0.0.1"))
	certtest.Write(t, f.path("ca.pem"), f.ca.Cert)
	if status, _ := f.get(0, client); status == 200 {
		t.Error("a client of a removed authority was accepted")
	}
	if status, _ := f.get(0, f.ca.Issue(t, "a")); status != 200 {
		t.Errorf("client of the new authority: status %d", status)
	}
}

// TestTLS_reloadsIntermediates: the server's own certificate is unchanged.
func TestTLS_reloadsIntermediates(t *testing.T) {
	f := newFront(t, certificates(t))
	served := func() int {
		f.get(0)
		c, err := tls.Dial("tcp", f.site.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return len(c.ConnectionState().PeerCertificates)
	}
	if n := served(); n != 1 {
		t.Fatalf("%d certificates", n)
	}
	text, err := os.ReadFile(f.path("cert.pem"))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	certtest.Write(t, f.path("cert.pem"), leaf, f.ca.Cert)
	if n := served(); n != 2 {
		t.Errorf("%d certificates, want two", n)
	}
}

// TestTLS_removedAuthority: a connection ends with its authority, and continues
// while the authority remains.
func TestTLS_removedAuthority(t *testing.T) {
	short, err := os.MkdirTemp("", "m") // socket paths must be short
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(short) }()
	for network, address := range map[string]string{"tcp": "127.0.0.1:0", "unix": filepath.Join(short, "s")} {
		t.Run(network, func(t *testing.T) { endsWithAuthority(t, newFrontAt(t, certificates(t), network, address)) })
	}
}

func endsWithAuthority(t *testing.T, f *front) {
	before, after := f.ca, certtest.New(t)
	open := func(c tls.Certificate) func() int {
		at, dialer := f.site.Listener.Addr(), net.Dialer{}
		transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{c}}, MaxConnsPerHost: 1}
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, at.Network(), at.String())
		}
		t.Cleanup(transport.CloseIdleConnections)
		var from string
		return func() int {
			r, err := (&http.Client{Transport: transport}).Get("https://front")
			if err != nil {
				t.Fatal(err)
			}
			defer r.Body.Close()
			_, _ = io.Copy(io.Discard, r.Body)
			now := r.Header.Get("From")
			if from = cmp.Or(from, now); now != from {
				t.Fatalf("the request came from %s, the first one from %s", now, from)
			}
			return r.StatusCode
		}
	}
	trust := func(authorities ...*certtest.Authority) {
		f.clock.pass(caMaxAge)
		var certs []*x509.Certificate
		for _, a := range authorities {
			certs = append(certs, a.Cert)
		}
		certtest.Write(t, f.path("ca.pem"), certs...)
		f.clock.pass(caMaxAge)
	}
	old := open(before.Issue(t, "a"))
	if status := old(); status != 200 {
		t.Fatalf("first status %d", status)
	}
	trust(before, after)
	fresh := open(after.Issue(t, "a"))
	pass := f.pass.Load()
	if one, other := old(), fresh(); one != 200 || other != 200 {
		t.Errorf("with both authorities: status %d and %d", one, other)
	}
	trust(after)
	if one, other := old(), fresh(); one != 401 || other != 200 {
		t.Errorf("without its authority: status %d; the other: %d", one, other)
	}
	if pass.recheck(); !pass.revoked.Load() {
		t.Error("the running request continues")
	}
	if status := old(); status != 401 {
		t.Errorf("second status %d", status)
	}
	trust(before, after)
	if status := old(); status != 200 {
		t.Errorf("with the authority again: status %d", status)
	}
}

// TestTLS_expiredAuthority: the client's own certificate is still valid.
func TestTLS_expiredAuthority(t *testing.T) {
	a := certtest.New(t)
	leaf := a.Issue(t, "a").Leaf
	begun := a.Cert.NotAfter.Add(-time.Minute)
	now := begun
	pool := x509.NewCertPool()
	pool.AddCert(a.Cert)
	f := &tlsFiles{TLSOptions: TLSOptions{Now: func() time.Time { return now }}}
	f.current.Store(&tls.Config{ClientCAs: pool})
	f.mu.Lock() // prevents reading the files
	late := *leaf
	late.NotAfter = begun.Add(time.Hour)
	r := (&http.Request{TLS: &tls.ConnectionState{PeerCertificates: []*x509.Certificate{&late}, VerifiedChains: [][]*x509.Certificate{{&late, a.Cert}}}}).
		WithContext(context.WithValue(t.Context(), chainKey{}, &certChain{files: f}))
	if err := verifyClientCert(r); err != nil {
		t.Fatal(err)
	}
	if now = begun.Add(2 * time.Minute); verifyClientCert(r) == nil {
		t.Error("an expired authority was accepted")
	}
}

// TestPeerContext: a socket may use TLS, and then has both a user and a client
// certificate.
func TestPeerContext(t *testing.T) {
	type other struct{}
	user, vouching := peercred.Cred{UID: 7}, &certChain{}
	ctx := t.Context()
	for key, value := range map[any]any{other{}: "x", peerKey{}: user, chainKey{}: vouching} {
		ctx = context.WithValue(ctx, key, value)
	}
	stored := credentialRequest(request().WithContext(ctx)).Context()
	if stored.Value(peerKey{}) != user || stored.Value(chainKey{}) != vouching || stored.Value(other{}) != nil {
		t.Errorf("the context has %v, %v and %v", stored.Value(peerKey{}), stored.Value(chainKey{}), stored.Value(other{}))
	}
}

func TestTLS_expiredServer(t *testing.T) {
	f := newFront(t, certificates(t))
	f.clock.pass(2 * time.Hour)
	for range 2 {
		if status, _ := f.get(0); status != 0 {
			t.Errorf("status %d", status)
		}
	}
	if n := strings.Count(f.log.String(), "reject all connections"); n != 1 {
		t.Errorf("%d log messages:\n%s", n, f.log.String())
	}
}

func TestNewTLS_missingFiles(t *testing.T) {
	folder := t.TempDir()
	if _, err := NewTLS(TLSOptions{CertFile: folder + "/cert.pem", KeyFile: folder + "/key.pem"}); err == nil || !strings.HasPrefix(err.Error(), "read TLS files: ") {
		t.Error(err)
	}
}

func TestPrincipalOf_commonName(t *testing.T) {
	leaf := certtest.New(t).Issue(t, "root", "spiffe://fleet/a").Leaf
	p, err := principalOf(leaf, []certificateMethod{methodFor(t, "root")}, time.Now())
	if err == nil {
		t.Errorf("principal = %v", p)
	}
}
