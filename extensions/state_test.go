package extensions_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/postgres"
	"github.com/mcpd/mcpd/internal/base/postgrestest"
	"github.com/mcpd/mcpd/scripting"
)

// newServer returns a server with a tool that counts its calls, and with a state block in its
// configuration or a database in its options.
func newServer(t testing.TB, config string, env map[string]string, url, fleet string) *engine.Server {
	t.Helper()
	server, err := engine.New(engine.Options{
		Name: "shop", StateURL: url, StateFleet: fleet, Scripts: engine.Scripts{Executor: scripting.Inline()}, Extensions: []engine.Extension{postgres.New()},
		Files: engine.Files{
			Config:    fstest.MapFS{"mcpd.hcl": {Data: []byte(config), Mode: 0o644}},
			Tools:     fstest.MapFS{"visit.hcl": {Data: []byte("tool \"visit\" {\n  timeout = \"1m\"\n  allow {\n    kv \"visits\" {}\n  }\n  run = \"return await kv.visits.incr('all')\"\n}\ntool \"hello\" { run = \"return 'hello'\" }\n"), Mode: 0o644}},
			LookupEnv: func(name string) (string, bool) { value, ok := env[name]; return value, ok },
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if _, err := server.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return server
}

func wantVisit(t *testing.T, server *engine.Server, want string) {
	t.Helper()
	result, err := server.Call(t.Context(), "visit", nil)
	if err != nil || string(result.Value) != want {
		t.Fatalf("visit %s, %v; want %s", result.Value, err, want)
	}
}

const block = `
server { name = "shop" }
state {
  url = "postgres://app:${secret.password}@HOST/postgres?schema=blocks"
  key = secret.state_key
}
secret "password" { env = "PASSWORD" }
secret "state_key" { env = "STATE_KEY" }
`

func TestState_sharedByServers(t *testing.T) {
	database := postgrestest.Start(t, os.Getenv("MCPD_NEED_POSTGRES"))
	t.Run("options", func(t *testing.T) {
		url := database.URL("postgres", "")
		a, b := newServer(t, "", nil, url, ""), newServer(t, "", nil, url, "")
		wantVisit(t, a, "1")
		wantVisit(t, b, "2")
		wantVisit(t, a, "3")
		_, err := newServer(t, "", nil, url, "crm").Inside().State()
		if err == nil || !strings.Contains(err.Error(), `"shop"`) || !strings.Contains(err.Error(), `"crm"`) {
			t.Errorf("another fleet: %v", err)
		}
	})
	t.Run("block", func(t *testing.T) {
		config := strings.ReplaceAll(block, "HOST", "127.0.0.1:"+database.Port)
		env := map[string]string{"PASSWORD": postgrestest.Password, "STATE_KEY": "a key of many random characters"}
		a, b := newServer(t, config, env, "", ""), newServer(t, config, env, "", "")
		wantVisit(t, a, "1")
		wantVisit(t, b, "2")
		// A URL in the options replaces that of the block, and not its key.
		given := database.URL("postgres", "schema=blocks")
		wantVisit(t, newServer(t, config, env, given, ""), "3")
		if _, err := newServer(t, "", nil, given, "").Call(t.Context(), "visit", nil); err == nil {
			t.Error("an encrypted value is read without the key")
		}
		_, err := newServer(t, config, map[string]string{"PASSWORD": postgrestest.Password, "STATE_KEY": "short"}, "", "").Inside().State()
		if err == nil || !strings.Contains(err.Error(), "too short") || strings.Contains(err.Error(), `"short"`) {
			t.Errorf("short key: %v", err)
		}
		_, err = newServer(t, config, map[string]string{"PASSWORD": "hunter2", "STATE_KEY": env["STATE_KEY"]}, "", "").Inside().State()
		if err == nil || !strings.Contains(err.Error(), "rejects the user or the password") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("wrong password: %v", err)
		}
	})
}

// A call without a shared limit costs the same with and without a state database.
func BenchmarkCall(b *testing.B) {
	database := postgrestest.Start(b, os.Getenv("MCPD_NEED_POSTGRES"))
	for name, url := range map[string]string{"memory": "", "database": database.URL("postgres", "")} {
		b.Run(name, func(b *testing.B) {
			server := newServer(b, "", nil, url, "")
			if _, err := server.Inside().State(); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := server.Call(b.Context(), "hello", nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
