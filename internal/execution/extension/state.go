package extension

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// StateOptions say where the state of a server is: in a database, in a file, or in memory.
type StateOptions struct {
	// Path is a file, and Optional means that the state may be in memory instead.
	Path     string
	Optional bool
	// Database is used if it has a URL.
	Database state.Database
	// Block returns the name of the server and the state block of its files, if any. The block is used
	// if no database is given, and no file that is required.
	Block func() (name string, block *definition.State)
	// Resolve returns the value of a secret.
	Resolve func(ctx context.Context, secret string) (string, error)
	// Now is the clock of the program; nil for the default. A database then uses its clock.
	Now    func() time.Time
	Logger *slog.Logger
}

// States returns the state store of a server. It is opened at the first use.
func (s *Set) States(o StateOptions) (*state.Lazy, error) {
	if s.SQLite == nil && o.Path != "" {
		return nil, errors.New("Options.StatePath needs sqlite.New() of github.com/mcpd/mcpd/extensions/sqlite in Options.Extensions")
	}
	if o.Database.URL != "" && (s.PostgreSQL == nil || o.Path != "") {
		return nil, errors.New("Options.StateURL needs postgres.New() of github.com/mcpd/mcpd/extensions/postgres in Options.Extensions, and no StatePath")
	}
	states := &state.Lazy{Path: o.Path, Optional: o.Optional, Options: state.Options{Now: o.Now}, Logger: o.Logger, InDatabase: o.inDatabase, ReplicaConfig: o.replicaConfig, Database: func() (*state.Database, error) { return s.database(&o) }}
	if s.SQLite != nil {
		states.File = s.SQLite.OpenState
	}
	if s.PostgreSQL != nil {
		states.OpenDatabase = s.PostgreSQL.OpenDatabase
	}
	return states, nil
}

// inDatabase reports whether the options or the files name a database.
func (o *StateOptions) inDatabase() bool {
	_, block := o.Block()
	return o.Database.URL != "" || block != nil && (o.Path == "" || o.Optional)
}

// replicaConfig returns the replica block that the database is used with, or nil.
func (o *StateOptions) replicaConfig() *state.ReplicaConfig {
	_, block := o.Block()
	if block == nil || block.Replica == nil || !o.inDatabase() {
		return nil
	}
	c := state.ReplicaConfig(*block.Replica)
	return &c
}

// database returns the database with the state, or nil.
func (s *Set) database(o *StateOptions) (*state.Database, error) {
	if !o.inDatabase() {
		return nil, nil
	}
	d := o.Database
	for i, key := range d.Keys {
		if err := o.checkStateKey("Options.StateKeys", key, i > 0); err != nil {
			return nil, fmt.Errorf("open the state store: Options.StateKeys[%d] is %w", i, err)
		}
	}
	name, block := o.Block()
	if block != nil {
		given, err := o.resolveState(block, d)
		if err != nil {
			return nil, fmt.Errorf("open the state store: %w", err)
		}
		d = given
	}
	if d.URL == "" {
		return nil, nil
	}
	if s.PostgreSQL == nil {
		return nil, errors.New("open the state store: the state block needs postgres.New() of github.com/mcpd/mcpd/extensions/postgres in Options.Extensions")
	}
	if !d.Existing {
		d.Fleet = cmp.Or(d.Fleet, name)
	}
	return &d, nil
}

const (
	// stateTimeout bounds reading the secrets of the state block.
	stateTimeout = 10 * time.Second
	// minStateKey is the minimum length of a key, in bytes. Whoever has a session id or can connect to
	// the port of a replica can try keys offline, so replicas with a replica block need safeStateKey.
	minStateKey  = 16
	safeStateKey = 32
)

// checkStateKey returns an error if a value is too short for key or, with old, for old_key: one that is
// being replaced may be as short as it was. It logs a warning for one that should be longer.
func (o *StateOptions) checkStateKey(name, value string, old bool) error {
	switch {
	case len(value) < minStateKey:
		return fmt.Errorf("too short for a key: use at least %d random characters", safeStateKey)
	case len(value) >= safeStateKey:
		return nil
	case o.replicaConfig() != nil && !old && !o.Database.Existing:
		return fmt.Errorf("too short for a key with a replica block: use at least %d random characters, as openssl rand -base64 32 prints, and set old_key to the present secret", safeStateKey)
	}
	if o.Logger != nil {
		o.Logger.Warn("state key is short", slog.String("secret", name), slog.Int("want", safeStateKey))
	}
	return nil
}

// resolveState adds the arguments of a state block that are not given, with the values of their
// secrets.
func (o *StateOptions) resolveState(block *definition.State, d state.Database) (state.Database, error) {
	ctx, cancel := context.WithTimeout(context.Background(), stateTimeout)
	defer cancel()
	d.Fleet = cmp.Or(d.Fleet, block.Fleet)
	keysGiven := len(d.Keys) > 0
	for i, name := range []string{block.Key, block.OldKey} {
		if name == "" || keysGiven {
			continue
		}
		key, err := o.Resolve(ctx, name)
		if err == nil {
			if err = o.checkStateKey(name, key, i > 0); err != nil {
				err = fmt.Errorf("secret %q is %w", name, err)
			}
		}
		if err != nil {
			return state.Database{}, err
		}
		d.Keys = append(d.Keys, key)
	}
	if d.URL != "" {
		return d, nil
	}
	var text strings.Builder
	for _, part := range block.URL.Parts {
		value := part.Literal
		if part.Secret != "" {
			var err error
			if value, err = o.Resolve(ctx, part.Secret); err != nil {
				return state.Database{}, err
			}
			if len(block.URL.Parts) > 1 { // a part of the URL
				value = strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
			}
		}
		text.WriteString(value)
	}
	d.URL = text.String()
	return d, nil
}
