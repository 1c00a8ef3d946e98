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

// Roster knows who may enter, by methods that are replaced while requests come
// in. A request is judged by the methods of one moment. Its methods may be used
// together; [Roster.Close] must come last.
type Registry struct {
	// Fixed at creation.
	protocol   idp.Protocol
	client     *http.Client
	now        func() time.Time
	log        *slog.Logger
	onKeyEvent func(KeyEvent)

	set atomic.Pointer[methodSet]

	// Guarded by mu, which whoever replaces the set holds.
	mu      sync.Mutex
	files   map[string]*keyFile
	issuers map[string]*issuer
	closed  bool
}

// RosterOptions are what a [Roster] has of the outside world. Zero fields stand
// for what the names say.
type RegistryOptions struct {
	// Protocol reads what identity providers publish. Nil is a program without
	// extensions/oidc: then [Roster.Apply] takes no tokens.
	Protocol idp.Protocol
	// Client fetches the documents of identity providers. Its answers are bounded
	// here, its redirects and addresses by whoever made it. Nil follows no redirect.
	Client *http.Client
	// Now is the clock. Nil is time.Now.
	Now func() time.Time
	// Logger is told what goes wrong with files and providers. Nil is nobody.
	Logger *slog.Logger
	// Keys is told of keys that the files in force have more or less than they had,
	// after that counts. Nil is nobody.
	OnKeyEvent func(KeyEvent)
}

// NewRoster returns a roster that lets nobody in until [Roster.Apply].
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

// Authenticate is the [Authenticator] of the roster. Its errors are [*Refusal].
func (r *Registry) Authenticate(req *http.Request) (identity.Principal, error) {
	return r.set.Load().authenticate(req)
}

// Apply replaces the methods, or none of them when it fails. What is wrong is
// told at once. Files of keys are read; a provider that does not answer is no
// failure, as its tokens are refused until it does.
func (r *Registry) Apply(o Options) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return errors.New("apply methods of authentication: the roster is closed")
	}
	next := &setBuilder{registry: r, files: map[string]*keyFile{}, issuers: map[string]*issuer{}}
	s, err := next.build(o)
	if err != nil {
		return fmt.Errorf("apply methods of authentication: %w", err)
	}
	r.set.Store(s)
	for key, gone := range r.issuers {
		if next.issuers[key] != gone {
			gone.close()
		}
	}
	for key, made := range next.issuers {
		if r.issuers[key] != made {
			made.fetch(r.now()) // before anybody needs the keys
		}
	}
	r.files, r.issuers = next.files, next.issuers
	return nil
}

// Wrong returns by its path what is wrong with each file of keys that cannot be read as
// it is now, or has a mistake.
func (r *Registry) KeyFileErrors() map[string]error {
	r.mu.Lock()
	defer r.mu.Unlock()
	wrong := map[string]error{}
	for path, file := range r.files {
		if err := file.err(); err != nil {
			wrong[path] = err
		}
	}
	return wrong
}

// Close ends what is under way, and lets nobody in from then on.
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

// errNoProtocol is the error of tokens in a program that cannot check them.
var errNoProtocol = errors.New("this program cannot check tokens: import github.com/mcpd/mcpd/extensions/oidc into it, and put its New() into engine.Options.Extensions")

// building is a set in the making, with what outlives the old one.
type setBuilder struct {
	registry *Registry
	files    map[string]*keyFile
	issuers  map[string]*issuer
}

func (b *setBuilder) build(o Options) (*methodSet, error) {
	s := &methodSet{peers: slices.Clone(o.Peers), anonymous: o.Anonymous, allowAll: o.AllowAll, now: b.registry.now}
	var wrong []error
	for _, k := range o.Keys {
		file, err := b.file(k.File)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		s.keys = append(s.keys, file)
	}
	for _, c := range o.Certificates {
		method, err := certificateMethodOf(c)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("names of client certificates: %w", err))
		}
		s.certificates = append(s.certificates, method)
	}
	for _, t := range o.Tokens {
		t, err := t.withDefaults()
		if err == nil && b.registry.protocol == nil {
			err = errNoProtocol
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("tokens of %q: %w", t.Issuer, err))
			continue
		}
		s.tokens = append(s.tokens, &tokenMethod{TokenOptions: t, issuer: b.issuer(t)})
	}
	if len(o.Peers) > 0 && !peercred.Supported {
		wrong = append(wrong, errors.New("the users of a socket are not known on this system; remove the methods that name them"))
	}
	if o.AllowAll && (o.Anonymous || len(o.Keys)+len(o.Tokens)+len(o.Certificates)+len(o.Peers) > 0) {
		wrong = append(wrong, errors.New("a server that is open has no methods"))
	}
	wrong = append(wrong, s.setMetadata())
	s.setChallenges()
	return s, errors.Join(wrong...)
}

// file returns a file of keys, as it is known already or as it is now.
func (b *setBuilder) file(path string) (*keyFile, error) {
	if known := b.files[path]; known != nil {
		return known, nil
	}
	known := b.registry.files[path]
	if known == nil {
		var err error
		if known, err = newKeyFile(path, b.registry.now, b.registry.log, b.registry.onKeyEvent); err != nil {
			return nil, err
		}
	}
	b.files[path] = known
	return known, nil
}

// issuer returns a provider, as it is known already or new.
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
