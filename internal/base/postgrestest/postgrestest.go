// Package postgrestest starts PostgreSQL servers for tests. A [Server] has its files in a temporary
// folder, and one user "app" with a [Password].
package postgrestest

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Password is hard to write in a URL.
const Password = "p@ss:/?#[]% \"'\\é"

// Server is a running PostgreSQL server. Its socket is in Folder.
type Server struct {
	Folder, Port string
	bin, data    string
}

// missingError is the error for a machine that cannot run PostgreSQL.
type missingError struct{ error }

// Start starts a server for one test, or skips the test if PostgreSQL is not installed. If needed is not
// empty, the test fails instead: it is the value of MCPD_NEED_POSTGRES. A failure to start is an
// error.
func Start(t testing.TB, needed string) *Server {
	t.Helper()
	s, err := Launch()
	require(t, err, needed)
	t.Cleanup(func() {
		if err := s.Remove(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Shared is a server that the tests of a package share. It starts at the first use; TestMain calls
// Remove.
type Shared struct {
	once sync.Once
	s    *Server
	err  error
	// databases counts the databases of tests.
	databases atomic.Int64
}

// Server returns the server, or skips the test as [Start] does.
func (p *Shared) Server(t testing.TB, needed string) *Server {
	t.Helper()
	p.once.Do(func() { p.s, p.err = Launch() })
	require(t, p.err, needed)
	return p.s
}

// Database returns the URL of a new database of the server, with options. The database is dropped at
// the end of the test, with all its connections.
func (p *Shared) Database(t testing.TB, needed, options string) string {
	t.Helper()
	s, name := p.Server(t, needed), fmt.Sprint("test_", p.databases.Add(1))
	if err := s.administer("createdb", name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.administer("dropdb", "--force", name); err != nil {
			t.Error(err)
		}
	})
	return s.URL(name, options)
}

// Remove stops the server, if it was started.
func (p *Shared) Remove() error {
	if p.s == nil {
		return nil
	}
	return p.s.Remove()
}

// require skips a test that needs a database, or fails it if needed, MCPD_NEED_POSTGRES, is set.
func require(t testing.TB, err error, needed string) {
	t.Helper()
	missing := missingError{}
	switch {
	case err == nil:
	case !errors.As(err, &missing):
		t.Fatal(err)
	case needed != "":
		t.Fatal("MCPD_NEED_POSTGRES is set: ", err)
	default:
		t.Skip("SKIPPED WITHOUT A DATABASE: ", err)
	}
}

// Launch starts a server, which the caller must remove.
func Launch() (*Server, error) {
	bin, err := programs()
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("/tmp", "mcpd-pg")
	if err != nil {
		return nil, missingError{fmt.Errorf("no folder for PostgreSQL: %w", err)}
	}
	s := &Server{Folder: folder, bin: bin, data: filepath.Join(folder, "data")}
	if err := handOver(folder); err != nil {
		err = fmt.Errorf("no other user can be given a folder, and PostgreSQL does not run as root: %w", err)
		return nil, missingError{errors.Join(err, os.RemoveAll(folder))}
	}
	err = s.initialize()
	for try := 0; err == nil && try < 3; try++ {
		if s.Port, err = freePort(); err != nil {
			break
		}
		if err = s.Restart(); err == nil {
			return s, nil
		}
		if said, _ := os.ReadFile(s.log()); strings.Contains(string(said), "Address already in use") {
			err = nil
		}
	}
	return nil, errors.Join(err, os.RemoveAll(folder))
}

// initial is the files of a new server, once there was one: initdb takes much longer than writing them again.
var initial struct {
	sync.Mutex
	files []initialFile // each folder before its files
}

type initialFile struct {
	path   string
	folder bool
	data   []byte
}

// initialize creates the files of the server.
func (s *Server) initialize() error {
	initial.Lock()
	defer initial.Unlock()
	if initial.files == nil {
		secret := filepath.Join(s.Folder, "password")
		if err := errors.Join(os.WriteFile(secret, []byte(Password+"\n"), 0o600), handOver(secret)); err != nil {
			return err
		}
		if err := s.run("initdb", "-D", s.data, "-U", "app", "-A", "scram-sha-256", "--pwfile", secret, "-E", "UTF8", "--locale=C", "-N", "--wal-segsize=1"); err != nil {
			return err
		}
		files, err := readFiles(s.data)
		initial.files = files
		return err
	}
	for _, f := range initial.files {
		path := filepath.Join(s.data, f.path)
		var err error
		if f.folder {
			err = os.Mkdir(path, 0o700)
		} else {
			err = os.WriteFile(path, f.data, 0o600)
		}
		if err := errors.Join(err, handOver(path)); err != nil {
			return err
		}
	}
	return nil
}

func readFiles(root string) (files []initialFile, err error) {
	err = fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		f := initialFile{path: path, folder: entry.IsDir()}
		if !f.folder {
			f.data, err = os.ReadFile(filepath.Join(root, path))
		}
		files = append(files, f)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the files of a new server: %w", err)
	}
	return files, nil
}

func (s *Server) log() string { return filepath.Join(s.Folder, "log") }

// run runs a program of PostgreSQL as a user that is not root.
func (s *Server) run(name string, args ...string) error {
	path := filepath.Join(s.bin, name)
	if _, err := os.Stat(path); err != nil {
		path = name // clients may be elsewhere
	}
	c := asOther(exec.Command(path, args...))
	c.Dir, c.Env = s.Folder, append(c.Environ(), "PGPASSWORD="+Password)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}

// administer runs a program that connects to the server.
func (s *Server) administer(name string, args ...string) error {
	return s.run(name, append([]string{"-h", "127.0.0.1", "-p", s.Port, "-U", "app"}, args...)...)
}

// Restart starts a stopped server at its port.
func (s *Server) Restart() error {
	options := fmt.Sprintf("-c listen_addresses=127.0.0.1 -p %s -k %s -c fsync=off -c max_connections=300", s.Port, s.Folder)
	return s.run("pg_ctl", "-D", s.data, "-w", "-l", s.log(), "-o", options, "start")
}

// Stop ends the server and all its connections.
func (s *Server) Stop() error { return s.run("pg_ctl", "-D", s.data, "-m", "fast", "-w", "stop") }

// Kill ends the server like a crash: the next Restart recovers from the log.
func (s *Server) Kill() error { return s.run("pg_ctl", "-D", s.data, "-m", "immediate", "-w", "stop") }

// Remove stops the server and removes its files.
func (s *Server) Remove() error {
	var err error
	if _, missing := os.Stat(filepath.Join(s.data, "postmaster.pid")); missing == nil {
		err = s.Kill()
	}
	return errors.Join(err, os.RemoveAll(s.Folder))
}

// URL returns the URL of a database of the server, with options.
func (s *Server) URL(database, options string) string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword("app", Password), Host: "127.0.0.1:" + s.Port, Path: "/" + database, RawQuery: options}
	return u.String()
}

// freePort returns a port that was free a moment ago.
func freePort() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	return port, err
}

// programs returns the directory of the PostgreSQL programs.
func programs() (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if path, err := exec.LookPath("initdb"); err == nil {
		found = append(found, path)
	}
	if len(found) == 0 {
		return "", missingError{errors.New("there is no PostgreSQL here; install the package postgresql to try it")}
	}
	path, err := filepath.EvalSymlinks(found[len(found)-1])
	return filepath.Dir(path), err
}
