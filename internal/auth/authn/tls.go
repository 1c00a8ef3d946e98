package authn

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// TLSOptions configure the server's certificate and the authorities of its
// clients.
type TLSOptions struct {
	// CertFile and KeyFile are the paths of the server's certificate chain and of
	// its key, in PEM.
	CertFile, KeyFile string
	// ClientCAFile is the path of the authorities of client certificates, in PEM.
	// If it is empty, no client certificate is requested. Otherwise a client may
	// send one, which must be valid; a client without one may use another
	// credential.
	ClientCAFile string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Logger logs errors of the files; nil discards the records.
	Logger *slog.Logger
}

// caMaxAge is the maximum age of the authorities when a request arrives with a
// client certificate: after that time, a certificate of a removed authority is
// rejected.
const caMaxAge = 500 * time.Millisecond

// TLS configures a listener with TLS 1.3 and HTTP/1.1. Each handshake checks
// the files, and reads them again if one has changed; if they are invalid, the
// previous ones apply. Sessions are not resumed, because the authority of the
// client may have been removed since. A TLS is safe for concurrent use.
type TLS struct {
	files  *tlsFiles
	config *tls.Config
}

// Config returns the configuration for the listener.
func (t *TLS) Config() *tls.Config { return t.config }

// NewTLS reads the files of a listener.
func NewTLS(o TLSOptions) (*TLS, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	f := &tlsFiles{TLSOptions: o}
	f.seen = f.stat()
	c, err := f.load()
	if err != nil {
		return nil, fmt.Errorf("read TLS files: %w", err)
	}
	f.current.Store(c)
	f.checkedAt.Store(o.Now().UnixNano())
	config := c.Clone()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return f.config() }
	return &TLS{f, config}, nil
}

// tlsFiles are the files of a listener as last read.
type tlsFiles struct {
	TLSOptions // fixed at creation

	current   atomic.Pointer[tls.Config]
	checkedAt atomic.Int64 // time of the last check, in nanoseconds

	// Guarded by mu, which the goroutine that checks the files holds.
	mu         sync.Mutex
	seen       [3]fs.FileInfo
	lastLogged string
}

var errServerExpired = errors.New("the server's certificate has expired")

// config returns the configuration for a new handshake. While one goroutine
// checks the files, others continue with the present configuration.
func (f *tlsFiles) config() (*tls.Config, error) {
	now := f.Now()
	f.refresh(now)
	c := f.current.Load()
	if leaf := c.Certificates[0].Leaf; now.After(leaf.NotAfter) {
		return nil, errServerExpired
	}
	return c, nil
}

// clientCAs returns the authorities of client certificates, at most caMaxAge
// old.
func (f *tlsFiles) clientCAs() *x509.CertPool {
	now := f.Now()
	if age := now.UnixNano() - f.checkedAt.Load(); age >= int64(caMaxAge) || age < 0 {
		f.refresh(now)
	}
	return f.current.Load().ClientCAs
}

// refresh checks the files, unless another goroutine does.
func (f *tlsFiles) refresh(now time.Time) {
	if !f.mu.TryLock() {
		return
	}
	defer f.mu.Unlock()
	f.reload(now)
	f.checkedAt.Store(now.UnixNano())
}

// reload reads the files again if one has changed. The caller holds mu.
func (f *tlsFiles) reload(now time.Time) {
	seen, same := f.stat(), true
	for i := range seen {
		same = same && (sameFile(f.seen[i], seen[i], now) || f.seen[i] == nil && seen[i] == nil)
	}
	if same {
		f.expire(now)
		return
	}
	f.seen = seen
	c, err := f.load()
	switch {
	case err != nil:
		f.logOnce("read TLS files, keeping previous ones", err)
	case sameTLS(c, f.current.Load()):
		f.lastLogged = ""
	default:
		f.current.Store(c)
		f.lastLogged = ""
		f.Logger.Info("reload TLS files")
	}
	f.expire(now)
}

func (f *tlsFiles) expire(now time.Time) {
	if now.After(f.current.Load().Certificates[0].Leaf.NotAfter) {
		f.logOnce("reject all connections", errServerExpired)
	}
}

// logOnce logs an error, unless it was the last one logged.
func (f *tlsFiles) logOnce(message string, err error) {
	if err.Error() != f.lastLogged {
		f.lastLogged = err.Error()
		f.Logger.Error(message, slog.String("error", f.lastLogged))
	}
}

// stat returns the metadata of the files; nil for a missing one.
func (f *tlsFiles) stat() (seen [3]fs.FileInfo) {
	for i, path := range []string{f.CertFile, f.KeyFile, f.ClientCAFile} {
		if path == "" {
			continue
		}
		if info, err := os.Stat(path); err == nil {
			seen[i] = info
		}
	}
	return seen
}

func (f *tlsFiles) load() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(f.CertFile, f.KeyFile)
	if err != nil {
		return nil, err
	}
	c := &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"},
		Time: f.Now, SessionTicketsDisabled: true,
	}
	if f.ClientCAFile == "" {
		return c, nil
	}
	text, err := os.ReadFile(f.ClientCAFile)
	if err != nil {
		return nil, err
	}
	c.ClientCAs, c.ClientAuth = x509.NewCertPool(), tls.VerifyClientCertIfGiven
	if !c.ClientCAs.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%s has no certificate", f.ClientCAFile)
	}
	return c, nil
}

// sameTLS reports whether two configurations have equal certificates.
func sameTLS(a, b *tls.Config) bool {
	return slices.EqualFunc(a.Certificates[0].Certificate, b.Certificates[0].Certificate, bytes.Equal) && a.ClientAuth == b.ClientAuth &&
		(a.ClientCAs == b.ClientCAs || a.ClientCAs != nil && a.ClientCAs.Equal(b.ClientCAs))
}
