package engine_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
)

// failingTools are tools that cause one log line each.
const failingTools = `
tool "speaks" {
  run = "log.info('a script speaks'); throw new Error('no');"
}
tool "reads" {
  allow {
    secrets { names = ["key", "unset"] }
  }
  run = "return [secrets.key, secrets.unset];"
}
tool "asks" {
  allow {
    http "shut" {
      hosts            = ["HOST"]
      private_networks = true
    }
  }
  run = "await http.shut.get('http://HOST/');"
}
tool "carries" {
  allow {
    http "api" {
      hosts            = ["HOST"]
      private_networks = true
      header "Authorization" { value = "Bearer ${secret.lacks}" }
    }
  }
  run = "await http.api.get('http://HOST/');"
}
tool "opens" {
  allow {
    fs "notes" { root = "FOLDER/notes" }
  }
  run = "return await fs.notes.readText('gone');"
}
tool "orders" {
  allow {
    sql "shop" {
      driver = "sqlite"
      dsn    = "FOLDER/shop.db"
      mode   = "rw"
      statement "add" { query = "INSERT INTO orders (what) VALUES (:what)" }
    }
  }
  run = "await sql.shop.exec('add', { what: null });"
}
tool "keeps" {
  allow {
    kv "sums" { scope = "server" }
  }
  run = "return await kv.sums.incr('n');"
}
tool "posts" {
  allow {
    module "ledger" { accounts = ["sales"] }
  }
  run = "return await modules.ledger.fails({});"
}
hook "tells" {
  on    = ["start"]
  tools = ["speaks"]
  run   = "log.info('a hook speaks'); throw new Error('no');"
}
hook "reads" {
  on    = ["start"]
  tools = ["speaks"]
  allow {
    fs "notes" { root = "FOLDER/notes" }
  }
  run = "await fs.notes.readText('gone');"
}
`

const ailingConfig = `
secret "key" {
  env    = "KEY"
  reveal = true
}
secret "unset" {
  env    = "UNSET"
  reveal = true
}
secret "lacks" { env = "UNSET" }
`

// Each line has the request id of the caller and the call id, whichever package writes it. Lines
// outside of calls have none.
func TestLog_requestID(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the paths in the tools are those of other systems")
	}
	text, folder := []byte(failingTools), newFailingFolder(t)
	text = bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("FOLDER"), []byte(folder)), []byte("HOST"), []byte(closedPort(t)))
	log := &logBuffer{}
	s := server(t, engine.Options{
		Logger: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Files: engine.Files{
			Tools:     fstest.MapFS{"t.hcl": {Data: text}},
			Config:    files("mcpd.hcl", ailingConfig),
			LookupEnv: func(name string) (string, bool) { return "the-key-of-ada", name == "KEY" },
		}, StatePath: filepath.Join(folder, "state", "plain", "mcpd.db"),
		Scripts: engine.Scripts{Modules: []engine.HostModule{ledger(nil)}},
		Hooks: []engine.Hook{func(_ context.Context, e call.Event) {
			if e.Tool == "speaks" && e.Phase == call.Failed {
				panic("a hook in Go")
			}
		}},
	})
	began, calls := len(log.String()), map[string]string{} // call ids by request id
	for i, name := range []string{"speaks", "reads", "asks", "carries", "opens", "orders", "keeps", "posts"} {
		request := fmt.Sprintf("r-%d", i)
		caller := identity.Caller{Principal: identity.Principal{ID: "ada", Kind: identity.KindKey}, Agent: identity.Agent{AgentID: "bot", RequestID: request}}
		result := s.Execute(t.Context(), call.Request{Name: name, Arguments: json.RawMessage("{}"), Caller: caller})
		if result.Err == nil {
			t.Errorf("%s does not fail", name)
		}
		calls[request] = result.CallID
	}
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	said := map[string]bool{}
	for lines := json.NewDecoder(strings.NewReader(log.String()[began:])); lines.More(); {
		var line struct {
			Message string `json:"msg"`
			Request string `json:"request_id"`
			Call    string `json:"call_id"`
		}
		if err := lines.Decode(&line); err != nil {
			t.Fatal(err)
		}
		if line.Request == "" || line.Call != calls[line.Request] {
			t.Errorf("%q has the request id %q and the call id %q", line.Message, line.Request, line.Call)
		}
		said[line.Message] = true
	}
	if strings.Contains(log.String()[:began], "request_id") {
		t.Errorf("a line before all calls has a request id: %s", log.String()[:began])
	}
	want := []string{
		"HTTP request of script failed", "a hook speaks", "a script speaks", "call failed", "file operation failed", "hook failed", "kv operation failed",
		"module function failed", "read secret for script", "read secret of grant", "script read secret", "statement failed",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(said))); diff != "" {
		t.Errorf("the log says (-want +got)\n%s", diff)
	}
}

// closedPort returns the address of a closed port.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// newFailingFolder returns a directory without notes, with a state that is a plain file, and a database
// that accepts no statement.
func newFailingFolder(t *testing.T) string {
	t.Helper()
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(folder, "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = db.Exec("CREATE TABLE orders (what TEXT NOT NULL)")
	err = errors.Join(err, db.Close(), os.Mkdir(filepath.Join(folder, "notes"), 0o700), os.Mkdir(filepath.Join(folder, "state"), 0o700),
		os.WriteFile(filepath.Join(folder, "state", "plain"), nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	return folder
}
