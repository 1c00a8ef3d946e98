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

// TLSOptions say what the server shows its clients, and by whom it knows theirs.
type TLSOptions struct {
	// CertFile and KeyFile are the paths of the server's certificate chain and of
	// its key, in PEM.
	CertFile, KeyFile string
	// ClientCAFile is the path of the authorities of client certificates, in PEM.
	// Empty asks for no client certificate; otherwise who shows one must have it
	// verified, and who shows none has another credential, or none.
	ClientCAFile string
	// Now is the clock. Nil is time.Now.
	Now func() time.Time
	// Logger is told of files that cannot be read any more. Nil is nobody.
	Logger *slog.Logger
}

// authorityAge is how old what is known of the files may be when a request comes in on a
// connection with a client certificate: one whose authority was taken out is refused that
// much later at most.
const caMaxAge = 500 * time.Millisecond

// TLS has a listener speak TLS 1.3 and HTTP/1.1. The files are looked at with every
// handshake, and read again when one has changed; where they are wrong, what was read
// before goes on. No session is resumed: its client would be known by an authority that
// may have been taken out since. It is safe for concurrent use.
type TLS struct {
	files  *tlsFiles
	config *tls.Config
}

// Config returns the configuration of the listener.
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
	outer := c.Clone()
	outer.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return f.config() }
	return &TLS{f, outer}, nil
}

// tlsFiles are the files of a listener as they were last read.
type tlsFiles struct {
	TLSOptions // fixed at creation

	current   atomic.Pointer[tls.Config]
	checkedAt atomic.Int64 // when, in nanoseconds

	// Guarded by mu, which whoever looks at the files holds.
	mu         sync.Mutex
	seen       [3]fs.FileInfo
	lastLogged string
}

var errServerExpired = errors.New("the server's certificate has expired")

// config returns what is right for a handshake that begins now. While somebody
// looks at the files, others go on with what is known.
func (f *tlsFiles) config() (*tls.Config, error) {
	now := f.Now()
	f.refresh(now)
	c := f.current.Load()
	if leaf := c.Certificates[0].Leaf; now.After(leaf.NotAfter) {
		return nil, errServerExpired
	}
	return c, nil
}

// authorities returns those of client certificates, as they were a moment ago at most.
func (f *tlsFiles) clientCAs() *x509.CertPool {
	now := f.Now()
	if age := now.UnixNano() - f.checkedAt.Load(); age >= int64(caMaxAge) || age < 0 {
		f.refresh(now)
	}
	return f.current.Load().ClientCAs
}

// refresh looks at the files, unless somebody does.
func (f *tlsFiles) refresh(now time.Time) {
	if !f.mu.TryLock() {
		return
	}
	defer f.mu.Unlock()
	f.reload(now)
	f.checkedAt.Store(now.UnixNano())
}

// look reads the files again if one has changed. The caller holds mu.
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
		f.logOnce("the TLS files cannot be read: what was read before goes on", err)
	case sameTLS(c, f.current.Load()):
		f.lastLogged = ""
	default:
		f.current.Store(c)
		f.lastLogged = ""
		f.Logger.Info("the TLS files have changed: handshakes use them from now on")
	}
	f.expire(now)
}

func (f *tlsFiles) expire(now time.Time) {
	if now.After(f.current.Load().Certificates[0].Leaf.NotAfter) {
		f.logOnce("no client can connect: replace the certificate", errServerExpired)
	}
}

// tell logs an error once.
func (f *tlsFiles) logOnce(message string, err error) {
	if err.Error() != f.lastLogged {
		f.lastLogged = err.Error()
		f.Logger.Error(message, slog.String("error", f.lastLogged))
	}
}

// stat returns what the disk says of the files, nil for one that is not there.
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

// sameTLS reports whether two configurations were read from equal files.
func sameTLS(a, b *tls.Config) bool {
	return slices.EqualFunc(a.Certificates[0].Certificate, b.Certificates[0].Certificate, bytes.Equal) && a.ClientAuth == b.ClientAuth &&
		(a.ClientCAs == b.ClientCAs || a.ClientCAs != nil && a.ClientCAs.Equal(b.ClientCAs))
}
