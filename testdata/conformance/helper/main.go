// Command helper supports the mcpd that the conformance suite tests: it creates
// a copy of the fixtures for mcpd, and edits a file of the copy when a fixture
// tool asks for it.
//
//	helper FIXTURES WORK
//
// It copies the files of FIXTURES to the directory WORK, with its own port
// instead of port 1, and then prints a line. It serves POST /edit/tool and
// /edit/prompt on loopback. When its standard input ends, because mcpd has
// ended, it removes WORK and exits.
// WORK and ends too.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: helper FIXTURES WORK")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "helper:", err)
		os.Exit(1)
	}
}

func run(fixtures, work string) error {
	// A signal is for mcpd, which ends the helper too.
	signal.Ignore(os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if err := copyFixtures(fixtures, work, listener.Addr().String()); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("POST /edit/tool", &editor{file: filepath.Join(work, "tools.d", "changing.hcl"), text: changingTool})
	mux.Handle("POST /edit/prompt", &editor{file: filepath.Join(work, "tools.d", "changing_prompt.hcl"), text: changingPrompt})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()

	fmt.Println("ready")
	_, err = io.Copy(io.Discard, os.Stdin)
	closed := server.Close()
	if stopped := <-served; !errors.Is(stopped, http.ErrServerClosed) {
		err = errors.Join(err, stopped)
	}
	return errors.Join(err, closed, os.RemoveAll(work))
}

// copyFixtures copies mcpd.hcl and tools.d, with 127.0.0.1:1 replaced by
// address.
func copyFixtures(fixtures, work, address string) error {
	if err := copyFile(fixtures, work, "mcpd.hcl", address); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(work, "tools.d"), 0o700); err != nil {
		return err
	}
	files, err := os.ReadDir(filepath.Join(fixtures, "tools.d"))
	for _, file := range files {
		err = errors.Join(err, copyFile(fixtures, work, filepath.Join("tools.d", file.Name()), address))
	}
	return err
}

func copyFile(fixtures, work, name, address string) error {
	text, err := os.ReadFile(filepath.Join(fixtures, name))
	if err != nil {
		return err
	}
	for _, end := range []string{`"`, `/`} {
		text = bytes.ReplaceAll(text, []byte("127.0.0.1:1"+end), []byte(address+end))
	}
	return os.WriteFile(filepath.Join(work, name), text, 0o600)
}

// editor saves a new version of one file at every request.
type editor struct {
	file string
	text string // a format for the number of the edit

	mu    sync.Mutex
	edits int
}

const (
	changingTool = `tool "changing" {
  description = "Has been edited %[1]d times."
  read_only   = true
  run         = "return 'edited %[1]d times';"
}
`
	changingPrompt = `prompt "changing_prompt" {
  description = "Has been edited %[1]d times."
  message "user" { text = "This prompt has been edited %[1]d times." }
}
`
)

func (e *editor) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.edits++
	if err := save(e.file, fmt.Appendf(nil, e.text, e.edits)); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// save writes a temporary file and renames it, as editors do.
func save(file string, text []byte) error {
	draft := filepath.Join(filepath.Dir(file), "."+filepath.Base(file))
	if err := os.WriteFile(draft, text, 0o600); err != nil {
		return err
	}
	return os.Rename(draft, file)
}
