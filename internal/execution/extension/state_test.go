package extension

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/language/definition"
)

func TestResolveState_keyLength(t *testing.T) {
	replica := &definition.Replica{Listen: "127.0.0.1:0"}
	for _, row := range []struct {
		name         string
		key, old     int // characters; 0 for none
		replica      *definition.Replica
		existing     bool
		failure, log string
	}{
		{"long", 32, 0, replica, false, "", ""},
		{"no key", 0, 0, nil, false, "", ""},
		{"short for replicas", 31, 0, replica, false, "at least 32 random characters", ""},
		{"short for an existing fleet", 31, 0, replica, true, "", "state key is short"},
		{"short", 16, 0, nil, false, "", "state key is short"},
		{"too short", 15, 0, nil, false, "too short for a key", ""},
		{"short old one", 32, 16, replica, false, "", "state key is short"},
		{"old one too short", 32, 15, replica, false, "too short for a key", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			var log bytes.Buffer
			secrets := map[string]string{"new": strings.Repeat("k", row.key), "old": strings.Repeat("o", row.old)}
			block := &definition.State{Replica: row.replica}
			if row.key > 0 {
				block.Key = "new"
			}
			if row.old > 0 {
				block.OldKey = "old"
			}
			o := &StateOptions{
				Database: state.Database{URL: "postgres://db", Existing: row.existing}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
				Resolve: func(_ context.Context, secret string) (string, error) { return secrets[secret], nil },
				Block:   func() (string, *definition.State) { return "shop", block },
			}
			d, err := o.resolveState(block, o.Database)
			switch {
			case row.failure == "" && err != nil, row.failure != "" && (err == nil || !strings.Contains(err.Error(), row.failure)):
				t.Errorf("error %v, want %q", err, row.failure)
			case err != nil && (strings.Contains(err.Error(), "kkk") || strings.Contains(err.Error(), "ooo")):
				t.Errorf("the error has a key: %v", err)
			case err == nil && len(d.Keys) != min(1, row.key)+min(1, row.old):
				t.Errorf("%d keys", len(d.Keys))
			}
			if text := log.String(); strings.Contains(text, "kkk") || (row.log == "") != (text == "") || !strings.Contains(text, row.log) {
				t.Errorf("log %q, want %q", text, row.log)
			}
		})
	}
}

func TestDatabase_givenKeyLength(t *testing.T) {
	for _, row := range []struct {
		length  int
		replica *definition.Replica
		want    string
	}{
		{15, nil, "open the state store: Options.StateKeys[0] is too short for a key: use"},
		{31, &definition.Replica{Listen: "127.0.0.1:0"}, "open the state store: Options.StateKeys[0] is too short for a key with a replica block"},
		{32, &definition.Replica{Listen: "127.0.0.1:0"}, "open the state store: the state block needs postgres.New()"},
	} {
		block := &definition.State{Replica: row.replica}
		o := &StateOptions{Database: state.Database{URL: "postgres://db", Keys: []string{strings.Repeat("k", row.length)}}, Block: func() (string, *definition.State) { return "shop", block }}
		if _, err := (&Set{}).database(o); err == nil || !strings.HasPrefix(err.Error(), row.want) || strings.Contains(err.Error(), "kkk") {
			t.Errorf("a key of %d characters: %v", row.length, err)
		}
	}
}
