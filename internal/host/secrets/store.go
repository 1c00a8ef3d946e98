// Package secrets resolves the values of secret blocks and redacts them.
//
// A [Store] has the definitions of secrets ([Definition]): an environment variable, a file, a
// command, or a token server. It reads a value on first use, and caches it until the
// definitions are set again or the token expires. It replaces values by "[secret:name]" in any
// text, also in base64, in hexadecimal or as part of a URL. Values of variables and files are
// redacted from the start; values of commands and tokens once they were resolved. A value stays
// redacted after its definition is removed, because logs may be written later.
//
// The package writes no value anywhere: not into errors, not into logs.
package secrets

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpd/mcpd/internal/host/oauth"
	"github.com/mcpd/mcpd/scripting"
)

const (
	// MaxValue bounds a value, in bytes.
	MaxValue = 64 << 10
	// commandTimeout bounds the run time of a command.
	commandTimeout = 10 * time.Second
	// maxOldValues is how many values of one name stay redacted as it changes, and
	// maxOldUserValues the same for a secret with a value for each user. The most recently used
	// ones stay.
	maxOldValues     = 8
	maxOldUserValues = 256
)

// Definition defines the source of a secret: exactly one of Env, File, Command and OAuth is
// set.
type Definition struct {
	Name string
	// Env is the name of an environment variable.
	Env string
	// File is a path.
	File string
	// Command is a program and its arguments. No shell is involved.
	Command []string
	// OAuth is a client that fetches tokens; the value is the newest one.
	OAuth *oauth.Client
	// ScriptReadable lets scripts read the value.
	ScriptReadable bool
}

// Options configure a Store.
type Options struct {
	// LookupEnv reads a variable. Nil means that none is set.
	LookupEnv func(name string) (string, bool)
	// ReadFile reads a file. Nil reads the disk.
	ReadFile func(path string) ([]byte, error)
	// RunCommand returns the output of a program; ctx bounds its run time. Nil starts a process
	// in its own process group, which is killed when ctx is done. Its environment is the environment of
	// this process, except for the named variables, which hold other secrets, and for values of
	// variable blocks.
	RunCommand func(ctx context.Context, argv, without []string) ([]byte, error)
	// Tokens fetches OAuth tokens. Nil means that there are none.
	Tokens *oauth.Broker
	// NewVault returns the vault for the user tokens of a secret, by key. It is required for
	// clients with user tokens.
	NewVault func(key string) oauth.Vault
}

// Store resolves secrets and redacts their values. It is safe for concurrent use.
type Store struct {
	options  Options
	redactor atomic.Pointer[redactor] // for all of values
	// needsPreload means that variables and files may hold values that are not redacted yet.
	// preloadMu serializes preloading.
	needsPreload atomic.Bool
	preloadMu    sync.Mutex

	mu sync.Mutex
	// entries are the current definitions by name, and definitions of the retained generations
	// by key.
	entries    map[string]*entry
	generation uint64
	values     map[string][]secretForms // by name, most recently used last
}

// entry is one definition and its cached value.
type entry struct {
	def        Definition
	generation uint64 // the last generation with this definition
	// tokens are the tokens of a client itself, users the tokens of its users. At most one is
	// set.
	tokens *oauth.ClientCredentials
	users  *oauth.UserTokens

	reading chan struct{} // holds a token while the value is being read
	value   string        // guarded by the mutex of the Store, like known
	known   bool
}

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
	s := &Store{options: o, entries: map[string]*entry{}, values: map[string][]secretForms{}}
	s.redactor.Store(newRedactor(nil))
	return s
}

// retainedGenerations is how many calls of Set a removed definition stays available by key, for
// calls that started with it.
const retainedGenerations = 16

func (s *Store) LookupEnv(name string) (string, bool) { return s.options.LookupEnv(name) }

// Set replaces all definitions. It drops cached values, so that sources are read again on next
// use. Previous definitions stay available by key for a while.
func (s *Store) Set(defs []Definition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.generation++
	maps.DeleteFunc(s.entries, func(id string, e *entry) bool {
		return id == e.def.Name || s.generation-e.generation > retainedGenerations
	})
	for _, d := range defs {
		e := &entry{def: d, generation: s.generation, reading: make(chan struct{}, 1)}
		switch {
		case d.OAuth == nil || s.options.Tokens == nil:
		case d.OAuth.ForUsers():
			e.users = s.options.Tokens.Users(d.Key(), *d.OAuth, s.Resolve, s.options.NewVault(d.Key()))
		default:
			e.tokens = s.options.Tokens.ClientCredentials(*d.OAuth, s.Resolve)
		}
		s.entries[d.Name], s.entries[d.Key()] = e, e
	}
	s.needsPreload.Store(slices.ContainsFunc(defs, isPreloadable))
	if s.options.Tokens != nil {
		s.options.Tokens.KeepOnly(keysOf(defs))
	}
}

func keysOf(defs []Definition) []string {
	keys := make([]string, len(defs))
	for i, d := range defs {
		keys[i] = d.Key()
	}
	return keys
}

// Generation counts the calls of Set. Within a generation, no value is read twice.
func (s *Store) Generation() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.generation
}

// Resolve returns the value of a secret, by name or by definition key. It trims line breaks at
// the end. An empty value is an error, and so is a value longer than [MaxValue]. Errors name
// the source and never hold a value.
func (s *Store) Resolve(ctx context.Context, name string) (string, error) {
	s.mu.Lock()
	e, ok := s.entries[name]
	s.mu.Unlock()
	if !ok {
		name, _ = SplitKey(name)
		return "", fmt.Errorf("secret %q is not defined", name)
	}
	value, err := s.resolve(ctx, e)
	if err != nil {
		return "", fmt.Errorf("secret %q: %w", e.def.Name, err)
	}
	return value, nil
}

// Resolver returns the value of a secret, by its name or its [Definition.Key].
type Resolver = func(ctx context.Context, name string) (string, error)

// LogErrors returns a resolver for the secrets of a grant. It logs a secret that cannot be read,
// except if its user has not consented yet.
func LogErrors(resolve Resolver, logger *slog.Logger, grant string) Resolver {
	return func(ctx context.Context, name string) (string, error) {
		value, err := resolve(ctx, name)
		var refused *scripting.HostError
		if err != nil && !errors.As(err, &refused) {
			secret, _ := SplitKey(name)
			logger.WarnContext(ctx, "read secret of grant",
				slog.String("grant", grant), slog.String("secret", secret), slog.String("error", err.Error()))
		}
		return value, err
	}
}

// ResolveForScript is [Store.Resolve] for a script, which may only read values that are
// ScriptReadable.
func (s *Store) ResolveForScript(ctx context.Context, id string) (string, error) {
	s.mu.Lock()
	e, ok := s.entries[id]
	s.mu.Unlock()
	if ok && !e.def.ScriptReadable {
		return "", fmt.Errorf("secret %q is not revealed to scripts", e.def.Name)
	}
	return s.Resolve(ctx, id)
}

// resolve returns the cached value of an entry, or reads it. Concurrent callers read it once.
// Errors are not cached. Tokens are cached by their source, which knows when they expire.
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
	s.store(e, value)
	return value, nil
}

func (s *Store) known(e *entry) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return e.value, e.known
}

// store caches a value, and redacts it before it is used.
func (s *Store) store(e *entry, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.value, e.known = value, true
	s.addValues(map[string]string{e.def.Name: value})
}

func placeholder(name string) string { return "[secret:" + name + "]" }

// keySeparator separates the name from the rest of a key. Names do not contain it.
const keySeparator = "#"

// Key identifies this definition: another source with the same name has another key. A call
// that started before a reload resolves its secrets by key, so that a new value is never sent
// where only the old one was intended.
func (d Definition) Key() string {
	h := sha256.New()
	for _, part := range append([]string{d.Env, d.File}, d.Command...) {
		h.Write([]byte(part + "\x00"))
	}
	if d.ScriptReadable {
		h.Write([]byte("reveal"))
	}
	if d.OAuth != nil {
		// Plain data always encodes, with maps in key order.
		client, _ := json.Marshal(d.OAuth)
		h.Write(client)
	}
	return d.Name + keySeparator + hex.EncodeToString(h.Sum(nil)[:8])
}

// SplitKey returns the parts of a [Definition.Key]: the name of the secret, and an id of the
// definition.
func SplitKey(key string) (name, definition string) {
	name, definition, _ = strings.Cut(key, keySeparator)
	return name, definition
}

// JoinKey reverts SplitKey.
func JoinKey(name, definition string) string { return name + keySeparator + definition }

func (s *Store) read(ctx context.Context, d Definition) (string, error) {
	value, source, err := s.readSource(ctx, d)
	value = strings.TrimRight(value, "\r\n")
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: %w", source, err)
	case value == "":
		return "", fmt.Errorf("%s: the value is empty", source)
	case len(value) > MaxValue:
		return "", fmt.Errorf("%s: the value is longer than %d bytes", source, MaxValue)
	}
	return value, nil
}

func (s *Store) readSource(ctx context.Context, d Definition) (value, source string, err error) {
	var raw []byte
	switch {
	case d.Env != "":
		value, ok := s.options.LookupEnv(d.Env)
		if !ok {
			err = errors.New("it is not set")
		}
		return value, "environment variable " + d.Env, err
	case d.File != "":
		raw, err = s.options.ReadFile(d.File)
		return string(raw), "file " + d.File, cause(err)
	case len(d.Command) > 0:
		ctx, cancel := context.WithTimeout(ctx, commandTimeout)
		defer cancel()
		raw, err = s.options.RunCommand(ctx, d.Command, s.variables())
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return string(raw), "command " + d.Command[0], err
	}
	return "", "definition", errors.New("it has no env, file, command or oauth")
}

func (s *Store) variables() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, e := range s.entries {
		if e.def.Env != "" {
			names = append(names, e.def.Env)
		}
	}
	return names
}

// readFile reads a file, up to slightly more than MaxValue.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, MaxValue+2*int64(len("\r\n"))))
}

// cause removes the path that a file system error repeats.
func cause(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
