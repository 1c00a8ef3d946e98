package authn

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/auth/idp"
	"github.com/mcpd/mcpd/internal/auth/peercred"
)

// Registry authenticates requests by methods that may be replaced while
// requests arrive. Each request uses the methods of one moment. A Registry is
// safe for concurrent use; [Registry.Close] must be the last call.
type Registry struct {
	// Fixed at creation.
	protocol   idp.Protocol
	client     *http.Client
	now        func() time.Time
	log        *slog.Logger
	onKeyEvent func(KeyEvent)

	set atomic.Pointer[methodSet]

	// Guarded by mu, which the goroutine that replaces the set holds.
	mu      sync.Mutex
	files   map[string]*keyFile
	issuers map[string]*issuer
	closed  bool
}

// RegistryOptions are the dependencies of a [Registry]. Zero fields have
// defaults.
type RegistryOptions struct {
	// Protocol reads the documents of identity providers. It is nil in a program
	// without extensions/oidc: then [Registry.Apply] rejects token methods.
	Protocol idp.Protocol
	// Client fetches the documents of identity providers. The registry limits its
	// responses; the creator of the client limits redirects and addresses. Nil
	// means a client that follows no redirect.
	Client *http.Client
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Logger logs errors of files and providers; nil discards the records.
	Logger *slog.Logger
	// OnKeyEvent is called for added and revoked keys of the files in use, after
	// the change has taken effect. It may be nil.
	OnKeyEvent func(KeyEvent)
}

// NewRegistry returns a registry that rejects every request until
// [Registry.Apply].
func NewRegistry(o RegistryOptions) *Registry {
	r := &Registry{protocol: o.Protocol, client: o.Client, now: o.Now, log: o.Logger, onKeyEvent: o.OnKeyEvent, files: map[string]*keyFile{}, issuers: map[string]*issuer{}}
	if r.client == nil {
		r.client = &http.Client{
			Timeout:       fetchTimeout,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	if r.now == nil {
		r.now = time.Now
	}
	if r.log == nil {
		r.log = slog.New(slog.DiscardHandler)
	}
	if r.onKeyEvent == nil {
		r.onKeyEvent = func(KeyEvent) {}
	}
	empty := &methodSet{now: r.now}
	empty.setChallenges()
	r.set.Store(empty)
	return r
}

// Authenticate is the [Authenticator] of the registry. Its errors are
// [*AuthError].
func (r *Registry) Authenticate(req *http.Request) (identity.Principal, error) {
	return r.set.Load().authenticate(req)
}

// Apply replaces all methods; on an error it replaces none. It reads the key
// files. A provider that does not answer is not an error: its tokens are
// rejected until it answers.
func (r *Registry) Apply(o Options) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errors.New("apply authentication methods: the registry is closed")
	}
	next := &setBuilder{registry: r, files: map[string]*keyFile{}, issuers: map[string]*issuer{}}
	s, err := next.build(o)
	if err != nil {
		return fmt.Errorf("apply authentication methods: %w", err)
	}
	r.set.Store(s)
	for key, old := range r.issuers {
		if next.issuers[key] != old {
			old.close()
		}
	}
	for key, created := range next.issuers {
		if r.issuers[key] != created {
			created.fetch(r.now()) // before the first request needs the keys
		}
	}
	r.files, r.issuers = next.files, next.issuers
	return nil
}

// KeyFileErrors returns, by path, the errors of key files that are invalid or
// cannot be read.
func (r *Registry) KeyFileErrors() map[string]error {
	r.mu.Lock()
	defer r.mu.Unlock()
	errs := map[string]error{}
	for path, file := range r.files {
		if err := file.err(); err != nil {
			errs[path] = err
		}
	}
	return errs
}

// Close ends running fetches, and rejects all later requests.
func (r *Registry) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	empty := &methodSet{now: r.now}
	empty.setChallenges()
	r.set.Store(empty)
	for _, i := range r.issuers {
		i.close()
	}
	r.issuers = nil
}

// errNoProtocol is the error of token methods in a program that cannot check
// them.
var errNoProtocol = errors.New("this program cannot check tokens: import github.com/mcpd/mcpd/extensions/oidc into it, and put its New() into engine.Options.Extensions")

// setBuilder builds a set, with the retained state of the present one.
type setBuilder struct {
	registry *Registry
	files    map[string]*keyFile
	issuers  map[string]*issuer
}

func (b *setBuilder) build(o Options) (*methodSet, error) {
	s := &methodSet{peers: slices.Clone(o.Peers), anonymous: o.Anonymous, allowAll: o.AllowAll, now: b.registry.now}
	var errs []error
	for _, k := range o.Keys {
		file, err := b.file(k.File)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		s.keys = append(s.keys, file)
	}
	for _, c := range o.Certificates {
		method, err := certificateMethodOf(c)
		if err != nil {
			errs = append(errs, fmt.Errorf("names of client certificates: %w", err))
		}
		s.certificates = append(s.certificates, method)
	}
	for _, t := range o.Tokens {
		t, err := t.withDefaults()
		if err == nil && b.registry.protocol == nil {
			err = errNoProtocol
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("tokens of %q: %w", t.Issuer, err))
			continue
		}
		s.tokens = append(s.tokens, &tokenMethod{TokenOptions: t, issuer: b.issuer(t)})
	}
	if len(o.Peers) > 0 && !peercred.Supported {
		errs = append(errs, errors.New("this system does not authenticate socket users; remove the peers methods"))
	}
	if o.AllowAll && (o.Anonymous || len(o.Keys)+len(o.Tokens)+len(o.Certificates)+len(o.Peers) > 0) {
		errs = append(errs, errors.New("open access excludes other methods"))
	}
	errs = append(errs, s.setMetadata())
	s.setChallenges()
	return s, errors.Join(errs...)
}

// file returns the present state of a key file, or reads it.
func (b *setBuilder) file(path string) (*keyFile, error) {
	if file := b.files[path]; file != nil {
		return file, nil
	}
	file := b.registry.files[path]
	if file == nil {
		var err error
		if file, err = newKeyFile(path, b.registry.now, b.registry.log, b.registry.onKeyEvent); err != nil {
			return nil, err
		}
	}
	b.files[path] = file
	return file, nil
}

// issuer returns the present state of a provider, or a new one.
func (b *setBuilder) issuer(t TokenOptions) *issuer {
	key := fmt.Sprintf("%q %q", t.Issuer, t.Algorithms)
	if b.issuers[key] == nil {
		if b.issuers[key] = b.registry.issuers[key]; b.issuers[key] == nil {
			r := b.registry
			b.issuers[key] = &issuer{url: t.Issuer, algorithms: t.Algorithms, protocol: r.protocol, client: jsonClient(r.client), now: r.now, log: r.log}
		}
	}
	return b.issuers[key]
}
