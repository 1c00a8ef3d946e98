package engine_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/base/state"
)

// Each deletion is logged and audited once.
func TestDropUserTokens_audit(t *testing.T) {
	var log strings.Builder
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.jsonl")
	s := server(t, engine.Options{
		Files:  engine.Files{Tools: files("t.hcl", echo), Config: files("mcpd.hcl", "audit { path = \""+filepath.ToSlash(path)+"\" }\n")},
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	store, err := s.Inside().State()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []string{"crm#1\x00key\x00\x00ada", "mail#1\x00jwt\x00https://i\x00ada", "crm#1\x00key\x00\x00bob"} {
		err := store.ChangePair("oauth", row, state.Room{Keys: 9, Bytes: 999}, func(state.Pair, time.Time) (state.Pair, error) {
			return state.Pair{Value: []byte("damaged"), Expires: time.Now().Add(time.Hour)}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, of := range []engine.UserToken{{}, {Kind: "key", Issuer: "https://i"}} {
		if dropped, err := s.DropUserTokens(of); len(dropped) != 0 || err == nil {
			t.Errorf("%+v: dropped are %+v, without an error", of, dropped)
		}
	}
	for _, of := range []engine.UserToken{{ID: "ada", Kind: "jwt", Issuer: "https://j"}, {ID: "eve"}, {Secret: "crm", ID: "ada", Kind: "jwt"}} {
		if dropped, err := s.DropUserTokens(of); len(dropped) != 0 || err != nil {
			t.Errorf("%+v: dropped are %+v, %v", of, dropped, err)
		}
	}
	if dropped, err := s.DropUserTokens(engine.UserToken{ID: "ada", Kind: "jwt", Issuer: "https://i"}); len(dropped) != 1 || dropped[0].Secret != "mail" || err != nil {
		t.Errorf("dropped are %+v, %v", dropped, err)
	}
	if dropped, err := s.DropUserTokens(engine.UserToken{Secret: "crm"}); len(dropped) != 2 || err != nil {
		t.Errorf("dropped are %+v, %v", dropped, err)
	}
	if left, err := s.UserTokens(); len(left) != 0 || err != nil {
		t.Errorf("remaining tokens: %+v, %v", left, err)
	}
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), "token.dropped"); n != 3 || !strings.Contains(string(text), `"https://i"`) {
		t.Errorf("%d audit records:\n%s", n, text)
	}
	if n := strings.Count(log.String(), "drop user token"); n != 3 {
		t.Errorf("%d log lines:\n%s", n, log.String())
	}
}
