package sqldb_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// server is a PostgreSQL server of a test.
type server struct{ folder, port string }

// startPostgres starts a server, or skips the test if it is not installed. A failure to start
// is an error.
func startPostgres(t *testing.T) *server {
	t.Helper()
	bin := findPostgres(t)
	folder, err := os.MkdirTemp("/tmp", "mcpd-pg")
	if err != nil {
		without(t, "no folder for PostgreSQL:", err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	secret := filepath.Join(folder, "password")
	if err := errors.Join(os.WriteFile(secret, []byte(password+"\n"), 0o600), handOver(folder), handOver(secret)); err != nil {
		without(t, "no other user can be given a folder, and PostgreSQL does not run as root:", err)
	}
	data := filepath.Join(folder, "data")
	run := func(name string, args ...string) (string, error) {
		c := asOther(exec.Command(filepath.Join(bin, name), args...))
		c.Dir = folder
		out, err := c.CombinedOutput()
		return string(out), err
	}
	if out, err := run("initdb", "-D", data, "-U", "app", "-A", "scram-sha-256", "--pwfile", secret, "-E", "UTF8", "--locale=C", "-N"); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	s := &server{folder: folder}
	log := filepath.Join(folder, "log")
	for try := 1; ; try++ {
		s.port = freePort(t)
		out, err := run("pg_ctl", "-D", data, "-w", "-l", log, "-o", fmt.Sprintf("-c listen_addresses=127.0.0.1 -p %s -k %s -c fsync=off", s.port, folder), "start")
		if err == nil {
			break
		}
		said, _ := os.ReadFile(log)
		if try == 3 || !strings.Contains(string(said), "Address already in use") {
			t.Fatalf("pg_ctl: %v\n%s%s", err, out, said)
		}
	}
	t.Cleanup(func() {
		if out, err := run("pg_ctl", "-D", data, "-m", "immediate", "-w", "stop"); err != nil {
			t.Errorf("stop: %v\n%s", err, out)
		}
	})
	return s
}

// freePort returns a port that was free a moment ago.
func freePort(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	return port
}

// findPostgres returns the directory of the PostgreSQL programs.
func findPostgres(t *testing.T) string {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if path, err := exec.LookPath("initdb"); err == nil {
		found = append(found, path)
	}
	if len(found) == 0 {
		without(t, "there is no PostgreSQL here; install the package postgresql to try it")
	}
	return filepath.Dir(found[len(found)-1])
}

// without skips a test that needs a database, or fails it if MCPD_NEED_POSTGRES is set.
func without(t *testing.T, why ...any) {
	t.Helper()
	if os.Getenv("MCPD_NEED_POSTGRES") != "" {
		t.Fatal(append([]any{"MCPD_NEED_POSTGRES is set:"}, why...)...)
	}
	t.Skip(append([]any{"SKIPPED WITHOUT A DATABASE:"}, why...)...)
}
