//go:build unix

package main

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/mcpd/mcpd/internal/base/postgrestest"
	"github.com/mcpd/mcpd/internal/base/yaml"
)

// podFiles are the files of a fleet whose pods listen for a name of their load balancer.
var podFiles = map[string]string{
	"mcpd.hcl": `
server { name = "shop" }
state {
  url = secret.database
  key = secret.state_key
}
secret "database" { env = "FLEET_DATABASE" }
secret "state_key" { env = "FLEET_KEY" }
listen { hosts = ["tools.example.com"] }
`,
	"tools.d/count.hcl": `
tool "count" {
  allow {
    kv "calls" {}
  }
  run = "return kv.calls.incr('n');"
}
`,
}

// TestCompose_podsShareState runs the containers of a Deployment as processes with its
// arguments, and probes them as Kubernetes does.
func TestCompose_podsShareState(t *testing.T) {
	t.Parallel()
	database, program, dir := postgrestest.Start(t, os.Getenv("MCPD_NEED_POSTGRES")), buildDaemon(t), t.TempDir()
	for name, text := range podFiles {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := append(os.Environ(), "FLEET_DATABASE="+database.URL("postgres", "sslmode=disable"), "FLEET_KEY=0123456789abcdef0123456789abcdef")
	for i := range 2 {
		port := vacantPort(t)
		out := fmt.Sprint("deploy", i)
		compose := exec.Command(program, "compose", "--version=v1.0.0", "--insecure-listen", "--replicas=2", "--grace=3s", "--out="+out, fmt.Sprint("--port=", port))
		compose.Dir = dir
		if text, err := compose.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		container := podContainer(t, filepath.Join(dir, out, "kubernetes/4-mcpd.yaml"))
		run := t.TempDir()
		var args []string
		for _, a := range member[[]any](t, container, "args") {
			args = append(args, strings.NewReplacer("/etc/mcpd/config", dir, "/etc/mcpd", dir, "/run/mcpd", run, "0.0.0.0", "127.0.0.1").Replace(a.(string)))
		}
		if args[0] != "serve" {
			t.Fatalf("arguments %q", args)
		}
		d, err := startDaemon(program, dir, append(env, "XDG_STATE_HOME="+run), args[1:])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(d.kill)
		d.client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // a server that stops waits 5 s for connections without a request
		if at, err := url.Parse(d.url); err != nil || at.Port() != fmt.Sprint(port) {
			t.Errorf("the container serves %s, not its port %d", d.url, port)
		}
		probe := member[*yaml.Map](t, member[*yaml.Map](t, container, "readinessProbe"), "httpGet")
		header := member[[]any](t, probe, "httpHeaders")[0].(*yaml.Map)
		request, err := http.NewRequest(http.MethodGet, d.url+member[string](t, probe, "path"), nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = member[string](t, header, "value")
		response, err := d.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("the probe with Host %s got %s", request.Host, response.Status)
		}
		want := fmt.Sprintf(`"text":"%d"`, i+1)
		if status, text, err := d.modern("tools/call", `{"name":"count","arguments":{}}`); err != nil || status != http.StatusOK || !strings.Contains(string(text), want) {
			t.Errorf("replica %d: %d %s, %v, want %s", i, status, text, err, want)
		}
		t.Cleanup(func() {
			if err := d.cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
			_, _ = d.waitFor(endOfLog)
			if err := d.cmd.Wait(); err != nil {
				t.Errorf("replica %d: %v\n%s", i, err, strings.Join(d.lines, "\n"))
			}
		})
	}
}

// podContainer returns the container of the first workload in a manifest.
func podContainer(t *testing.T, path string) *yaml.Map {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	documents, err := yaml.Parse(string(text), func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	at := documents[0].(*yaml.Map)
	for _, name := range []string{"spec", "template", "spec"} {
		at = member[*yaml.Map](t, at, name)
	}
	return member[[]any](t, at, "containers")[0].(*yaml.Map)
}

// member returns a member of a mapping.
func member[T any](t *testing.T, m *yaml.Map, name string) T {
	t.Helper()
	for i := range m.Names {
		if value, ok := m.Values[i].(T); ok && m.Names[i] == name {
			return value
		}
	}
	var none T
	t.Fatalf("no %T %q among %q", none, name, m.Names)
	return none
}

// vacantPort returns a port of this machine that nothing listens on.
func vacantPort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}
