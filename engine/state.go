package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// StateDatabase is a PostgreSQL database with the state of several servers, which are the replicas of
// one fleet: a waiting call, a task or a stored value is there for all of them, and no call is resumed
// twice. It needs extensions/postgres in [Options].Extensions. Leave Options.Now nil, so that the clock
// of the database decides when something expires.
type StateDatabase struct {
	// URL is postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=verify-full, with the options of
	// libpq, schema=NAME for the schema of the tables ("mcpd") and pool_max_conns=N (8). The tables
	// are created at the first use. No error and no log contains the URL.
	URL string
	// Fleet is the name that all servers with this state share. A database refuses another one, so
	// that two fleets cannot mix their state by mistake. The default is the name of the server.
	Fleet string
	// Keys are secrets. The first encrypts the stored keys, tokens, values and results; the others
	// decrypt what a replaced key has encrypted. Without keys, nothing is encrypted.
	Keys []string
}

// stateTimeout bounds reading the secrets of the state block.
const stateTimeout = 10 * time.Second

// stateDatabase returns the database with the state, or nil for a file or memory. Options win over the
// state block, which only a serving program uses.
func (s *Server) stateDatabase(ownClock bool) (*state.Database, error) {
	d, name := s.options.StateDatabase, s.options.Name
	snap := s.current.Load()
	if snap != nil {
		name = snap.catalog.Server.Name
	}
	if d.URL == "" && snap != nil && s.options.Mode == serving && (s.options.StatePath == "" || s.options.StateOptional) {
		block := snap.catalog.Definitions.Config.State
		if block == nil {
			return nil, nil
		}
		var err error
		if d, err = s.resolveState(block); err != nil {
			return nil, fmt.Errorf("open the state store: %w", err)
		}
	}
	if d.URL == "" {
		return nil, nil
	}
	if s.states.OpenDatabase == nil {
		return nil, errors.New("open the state store: a database needs postgres.New() of github.com/mcpd/mcpd/extensions/postgres in Options.Extensions")
	}
	return &state.Database{URL: d.URL, Fleet: cmp.Or(d.Fleet, name), Keys: d.Keys, OwnClock: ownClock}, nil
}

// resolveState reads the secrets of a state block.
func (s *Server) resolveState(block *definition.State) (StateDatabase, error) {
	ctx, cancel := context.WithTimeout(context.Background(), stateTimeout)
	defer cancel()
	d := StateDatabase{Fleet: block.Fleet}
	for _, name := range []string{block.Key, block.OldKey} {
		if name == "" {
			continue
		}
		key, err := s.brokers.Secrets.Resolve(ctx, name)
		if err != nil {
			return StateDatabase{}, err
		}
		if len(key) < minStateKey {
			return StateDatabase{}, fmt.Errorf("secret %q is too short for a key: use at least %d random characters", name, minStateKey)
		}
		d.Keys = append(d.Keys, key)
	}
	whole := len(block.URL.Parts) == 1
	var text strings.Builder
	for _, part := range block.URL.Parts {
		value := part.Literal
		if part.Secret != "" {
			var err error
			if value, err = s.brokers.Secrets.Resolve(ctx, part.Secret); err != nil {
				return StateDatabase{}, err
			}
			if !whole {
				value = url.QueryEscape(value)
				value = strings.ReplaceAll(value, "+", "%20")
			}
		}
		text.WriteString(value)
	}
	d.URL = text.String()
	return d, nil
}

// minStateKey is the minimum length of a key, in bytes.
const minStateKey = 16
