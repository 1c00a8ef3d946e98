package secrets

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpd/mcpd/internal/host/oauth"
)

const (
	// MaxValue bounds a value, in bytes.
	MaxValue = 64 << 10
	// commandTimeout is how long a command may take to print a value.
	commandTimeout = 10 * time.Second
	// remembered is how many values of one name stay hidden as it changes, and
	// rememberedOfUsers of one of which each user has another: those used last.
	remembered        = 8
	rememberedOfUsers = 256
)

// Def says where the value of a secret comes from: exactly one of Env, File,
// Command and OAuth is set.
type Def struct {
	Name string
	// Env is the name of a variable.
	Env string
	// File is a path.
	File string
	// Command is a program and its arguments. No shell takes part.
	Command []string
	// OAuth is the client that gets tokens, of which the value is the newest.
	OAuth *oauth.Client
	// Reveal says that scripts may read the value.
	Reveal bool
}

// Options are a Store's doors to the outside.
type Options struct {
	// LookupEnv reads a variable. Nil means that none is set.
	LookupEnv func(name string) (string, bool)
	// ReadFile reads a file. Nil reads the disk.
	ReadFile func(path string) ([]byte, error)
	// RunCommand returns what a program prints; ctx bounds its time. Nil
	// starts a process, with its children in a group of its own that does not
	// outlive ctx. Its environment is that of this process without the named
	// variables, which hold other secrets, and without values of variable blocks.
	RunCommand func(ctx context.Context, argv, without []string) ([]byte, error)
	// Tokens gets the tokens of clients. Nil means that there are none.
	Tokens *oauth.Issuer
	// Vault returns where the tokens of users are kept that the secret of a key
	// is; it is needed for clients that have any.
	Vault func(key string) oauth.Vault
}

// Store resolves secrets and hides their values. It is safe for concurrent use.
type Store struct {
	options Options
	veil    atomic.Pointer[veil] // over all that is in hidden
	// unseen says that variables and files may hold what is not in hidden; looking
	// is held by who looks.
	unseen  atomic.Bool
	looking sync.Mutex

	mu sync.Mutex
	// entries are the definitions by name, as they are now, and by key, as they
	// are and were for the last generations.
	entries    map[string]*entry
	generation uint64
	hidden     map[string][]concealed // values of each name, that which was used last at the end
}

// An entry is one definition, and its value once that is known.
type entry struct {
	def        Def
	generation uint64 // the last that had the definition
	// tokens are those of the client, users those of its users; one of them is nil,
	// and both of other definitions.
	tokens *oauth.Source
	users  *oauth.Users

	reading chan struct{} // holds one token while someone reads the value
	value   string        // guarded by the mutex of the Store, as is known
	known   bool
}

// New returns a Store without definitions.
func New(o Options) *Store {
	if o.LookupEnv == nil {
		o.LookupEnv = func(string) (string, bool) { return "", false }
	}
	if o.ReadFile == nil {
		o.ReadFile = readFile
	}
	if o.RunCommand == nil {
		o.RunCommand = runCommand
	}
	s := &Store{options: o, entries: map[string]*entry{}, hidden: map[string][]concealed{}}
	s.veil.Store(weave(nil))
	return s
}

// generations is for how many calls of Set a definition that is gone can still
// be asked for by its key, by those who began when it held.
const generations = 16

// LookupEnv reads a variable of the environment, from where secrets are read.
func (s *Store) LookupEnv(name string) (string, bool) { return s.options.LookupEnv(name) }

// Set replaces all definitions. Each value is read again when it is next asked
// for, so that Set also takes up new values of old definitions. Definitions of
// before stay known by their keys for a while.
func (s *Store) Set(defs []Def) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generation++
	maps.DeleteFunc(s.entries, func(id string, e *entry) bool {
		return id == e.def.Name || s.generation-e.generation > generations
	})
	for _, d := range defs {
		e := &entry{def: d, generation: s.generation, reading: make(chan struct{}, 1)}
		switch {
		case d.OAuth == nil || s.options.Tokens == nil:
		case d.OAuth.ForUsers():
			e.users = s.options.Tokens.Users(d.Key(), *d.OAuth, s.Resolve, s.options.Vault(d.Key()))
		default:
			e.tokens = s.options.Tokens.Source(*d.OAuth, s.Resolve)
		}
		s.entries[d.Name], s.entries[d.Key()] = e, e
	}
	s.unseen.Store(slices.ContainsFunc(defs, rests))
	if s.options.Tokens != nil {
		s.options.Tokens.Retain(keysOf(defs))
	}
}

// keysOf returns the keys of definitions.
func keysOf(defs []Def) []string {
	keys := make([]string, len(defs))
	for i, d := range defs {
		keys[i] = d.Key()
	}
	return keys
}

// Generation counts the calls of Set: within one, no value that was read is read again.
func (s *Store) Generation() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.generation
}

// Resolve returns the value of a secret, by its name or by the key of its
// definition: what its source holds, without the
// line breaks at its end. An empty value is an error, and so is one longer
// than [MaxValue]. Errors name the source and never hold a value.
func (s *Store) Resolve(ctx context.Context, name string) (string, error) {
	secret, err := s.Secret(ctx, name)
	return secret.value, err
}

// Reveal is [Store.Resolve] for a script, which may read only what its
// definition reveals.
func (s *Store) Reveal(ctx context.Context, id string) (string, error) {
	s.mu.Lock()
	e, ok := s.entries[id]
	s.mu.Unlock()
	if ok && !e.def.Reveal {
		return "", fmt.Errorf("secret %q is not revealed to scripts", e.def.Name)
	}
	return s.Resolve(ctx, id)
}

// Secret is [Store.Resolve] for a value that does not print.
func (s *Store) Secret(ctx context.Context, name string) (Secret, error) {
	s.mu.Lock()
	e, ok := s.entries[name]
	s.mu.Unlock()
	if !ok {
		return Secret{}, fmt.Errorf("secret %q is not defined", nameOf(name))
	}
	value, err := s.resolve(ctx, e)
	if err != nil {
		return Secret{}, fmt.Errorf("secret %q: %w", e.def.Name, err)
	}
	return Secret{name: e.def.Name, value: value}, nil
}

// resolve reads the value of an entry unless it is known. Several callers at
// once read it once; an error is not kept. A token is asked of its source each
// time, which knows how long it holds.
func (s *Store) resolve(ctx context.Context, e *entry) (string, error) {
	switch {
	case e.tokens != nil:
		return s.token(ctx, e, e.tokens)
	case e.users != nil:
		return s.token(ctx, e, e.users)
	}
	if value, ok := s.known(e); ok {
		return value, nil
	}
	select {
	case e.reading <- struct{}{}:
		defer func() { <-e.reading }()
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if value, ok := s.known(e); ok {
		return value, nil
	}
	value, err := s.read(ctx, e.def)
	if err != nil {
		return "", err
	}
	s.keep(e, value)
	return value, nil
}

func (s *Store) known(e *entry) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return e.value, e.known
}

// keep remembers a value, and hides it before anyone can use it.
func (s *Store) keep(e *entry, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.value, e.known = value, true
	s.hide(map[string]string{e.def.Name: value})
}
