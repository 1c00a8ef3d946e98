// Package secrets reads the values of secret blocks, and hides them.
//
// A [Store] knows where each secret comes from ([Def]): a variable of the
// environment, a file, what a command prints, or a token server. It reads a
// value when it is first asked for, keeps it until the definitions are set again
// or the token ends. It replaces values by "[secret:name]" wherever it is shown a
// text, also where the text holds them in base64, in hexadecimal or as part of a
// URL: those of variables and files from the first text on, those of commands and
// tokens once they were asked for. A value stays hidden when its definition is gone: old logs are
// written late.
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
	"maps"
	"os"
	"slices"
	"strings"
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
	maxOldValues     = 8
	maxOldUserValues = 256
)

// Def says where the value of a secret comes from: exactly one of Env, File,
// Command and OAuth is set.
type Definition struct {
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
	ScriptReadable bool
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
	Tokens *oauth.Broker
	// Vault returns where the tokens of users are kept that the secret of a key
	// is; it is needed for clients that have any.
	NewVault func(key string) oauth.Vault
}

// Store resolves secrets and hides their values. It is safe for concurrent use.
type Store struct {
	options  Options
	redactor atomic.Pointer[redactor] // over all that is in hidden
	// unseen says that variables and files may hold what is not in hidden; looking
	// is held by who looks.
	needsPreload atomic.Bool
	preloadMu    sync.Mutex

	mu sync.Mutex
	// entries are the definitions by name, as they are now, and by key, as they
	// are and were for the last generations.
	entries    map[string]*entry
	generation uint64
	values     map[string][]secretForms // values of each name, that which was used last at the end
}

// An entry is one definition, and its value once that is known.
type entry struct {
	def        Definition
	generation uint64 // the last that had the definition
	// tokens are those of the client, users those of its users; one of them is nil,
	// and both of other definitions.
	tokens *oauth.ClientCredentials
	users  *oauth.UserTokens

	reading chan struct{} // holds one token while someone reads the value
	value   string        // guarded by the mutex of the Store, as is known
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

// generations is for how many calls of Set a definition that is gone can still
// be asked for by its key, by those who began when it held.
const retainedGenerations = 16

func (s *Store) LookupEnv(name string) (string, bool) { return s.options.LookupEnv(name) }

// Set replaces all definitions. Each value is read again when it is next asked
// for, so that Set also takes up new values of old definitions. Definitions of
// before stay known by their keys for a while.
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
			e.tokens = s.options.Tokens.Source(*d.OAuth, s.Resolve)
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

// Reveal is [Store.Resolve] for a script, which may read only what its
// definition reveals.
func (s *Store) ResolveForScript(ctx context.Context, id string) (string, error) {
	s.mu.Lock()
	e, ok := s.entries[id]
	s.mu.Unlock()
	if ok && !e.def.ScriptReadable {
		return "", fmt.Errorf("secret %q is not revealed to scripts", e.def.Name)
	}
	return s.Resolve(ctx, id)
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
	s.store(e, value)
	return value, nil
}

func (s *Store) known(e *entry) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return e.value, e.known
}

// keep remembers a value, and hides it before anyone can use it.
func (s *Store) store(e *entry, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.value, e.known = value, true
	s.addValues(map[string]string{e.def.Name: value})
}

func placeholder(name string) string { return "[secret:" + name + "]" }

// keyMark parts the name from the rest of a key. No name holds it.
const keySeparator = "#"

// Key names this very definition: another source of the same name has another
// key. A call that began before a reload asks for its secrets by key, so that
// the new value never goes where only the old one was meant to go.
func (d Definition) Key() string {
	h := sha256.New()
	for _, part := range append([]string{d.Env, d.File}, d.Command...) {
		h.Write([]byte(part + "\x00"))
	}
	if d.ScriptReadable {
		h.Write([]byte("reveal"))
	}
	if d.OAuth != nil {
		// Plain data always encodes, and maps in the order of their keys.
		client, _ := json.Marshal(d.OAuth)
		h.Write(client)
	}
	return d.Name + keySeparator + hex.EncodeToString(h.Sum(nil)[:8])
}

// SplitKey returns the name of a secret, and what tells definitions of that name
// apart, of which [Def.Key] is made.
func SplitKey(key string) (name, definition string) {
	name, definition, _ = strings.Cut(key, keySeparator)
	return name, definition
}

// JoinKey is the key of which SplitKey returns these parts.
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
	return "", "definition", errors.New("it names no env, file, command or oauth")
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

// readFile reads as much of a file as a value may hold, and a little more.
func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, MaxValue+2*int64(len("\r\n"))))
}

// cause drops the path that an error of the file system repeats.
func cause(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
