package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// TestLSP_transcripts plays the messages of a client to mcpd lsp in a directory with the files of the
// archive, and compares the messages of the server. A line starts with --> for the client and with
// <-- for the server. ROOT stands for the URI of the directory. A response is expected by its id, and
// other messages in order. With -update, it writes the messages of the server.
func TestLSP_transcripts(t *testing.T) {
	names, err := filepath.Glob("../../testdata/lsp/*.txtar")
	if err != nil || len(names) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			playTranscript(t, name, func(t *testing.T, dir string) *editor { return startLSP(t, dir) })
		})
	}
}

// TestLSP_program plays a transcript to the built program.
func TestLSP_program(t *testing.T) {
	t.Parallel()
	playTranscript(t, "../../testdata/lsp/diagnostics.txtar", startLSPProgram)
}

func playTranscript(t *testing.T, name string, start func(*testing.T, string) *editor) {
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	dir, messages := t.TempDir(), -1
	for i, f := range archive.Files {
		if f.Name == "messages" {
			messages = i
			continue
		}
		writeProjectFile(t, filepath.Join(dir, f.Name), string(f.Data))
	}
	ed := start(t, dir)
	var played strings.Builder
	for number, line := range strings.Split(strings.TrimSuffix(string(archive.Files[messages].Data), "\n"), "\n") {
		switch text, isServer := strings.CutPrefix(line, "<-- "); {
		case isServer:
			want := normal(t, []byte(text))
			got := ed.next(want)
			for _, part := range []string{"result", "params"} {
				if want[part] == "*" && got[part] != nil {
					got[part] = "*"
				}
			}
			fmt.Fprintf(&played, "<-- %s\n", encode(t, got))
			if diff := cmp.Diff(want, got); diff != "" && !*update {
				t.Fatalf("%s, line %d of messages (-want +got):\n%s\n<-- %s", name, number+1, diff, encode(t, got))
			}
			continue
		case strings.HasPrefix(line, "--> "):
			ed.send(strings.TrimPrefix(line, "--> "))
		case line != "" && !strings.HasPrefix(line, "#"):
			t.Fatalf("line %d of messages has no arrow", number+1)
		}
		played.WriteString(line + "\n")
	}
	if code := ed.close(); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	for m := range ed.read {
		ed.early = append(ed.early, m)
	}
	for _, m := range ed.early {
		t.Errorf("%s does not expect <-- %s", name, encode(t, m))
	}
	if *update {
		archive.Files[messages].Data = []byte(played.String())
		if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func writeProjectFile(t testing.TB, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// normal decodes a message, without the member that all messages share.
func normal(t testing.TB, message []byte) map[string]any {
	t.Helper()
	var decoded map[string]any
	if err := json.Unmarshal(message, &decoded); err != nil {
		t.Fatalf("%v: %s", err, message)
	}
	delete(decoded, "jsonrpc")
	return decoded
}

func encode(t testing.TB, message any) string {
	t.Helper()
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(message); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// editor is a client of mcpd lsp.
type editor struct {
	t     testing.TB
	root  string // the URI of the directory
	in    io.WriteCloser
	read  chan map[string]any // the messages of the server; closed at their end
	early []map[string]any    // read while another one was expected
	exit  chan int
	log   *lockedBuffer // what a server in this process writes to standard error
}

func newEditor(t testing.TB, dir string, in io.WriteCloser, out io.Reader) *editor {
	ed := &editor{t: t, root: (&url.URL{Scheme: "file", Path: filepath.ToSlash(dir)}).String(), in: in, read: make(chan map[string]any, 1000), exit: make(chan int, 1)}
	go func() {
		defer close(ed.read)
		for r := bufio.NewReader(out); ; {
			message, err := readFramed(r)
			if err != nil {
				return
			}
			ed.read <- normal(t, []byte(strings.ReplaceAll(string(message), ed.root, "ROOT")))
		}
	}()
	return ed
}

// startLSP runs mcpd lsp in this process.
func startLSP(t testing.TB, dir string, args ...string) *editor {
	e, err := scenarioEnv(dir, []string{"PATH=" + os.Getenv("PATH")})
	if err != nil {
		t.Fatal(err)
	}
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	var log lockedBuffer
	e.stdin, e.stdout, e.stderr = in, out, &log
	ed := newEditor(t, dir, toServer, fromServer)
	ed.log = &log
	go func() {
		code := run(e, append([]string{"lsp"}, args...))
		_ = in.Close()
		_ = out.Close()
		ed.exit <- code
	}()
	t.Cleanup(func() {
		_ = toServer.Close()
		_ = fromServer.Close()
		if t.Failed() {
			t.Logf("log of the server:\n%s", log.String())
		}
	})
	return ed
}

// startLSPProgram runs mcpd lsp as a process.
func startLSPProgram(t *testing.T, dir string) *editor {
	command := exec.CommandContext(t.Context(), buildDaemon(t), "lsp", "--stdio")
	command.Dir = dir
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, stdout, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stdout = stdout
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	_ = stdout.Close()
	ed := newEditor(t, dir, in, out)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = command.Wait() // the exit code says how it ended
		ed.exit <- command.ProcessState.ExitCode()
	}()
	t.Cleanup(func() {
		_ = in.Close()
		<-ended
		_ = out.Close()
	})
	return ed
}

// readFramed reads one message with its header.
func readFramed(r *bufio.Reader) ([]byte, error) {
	length := 0
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return nil, err
		}
		line = strings.TrimSpace(line)
		if line == "" {
			break
		}
		if value, ok := strings.CutPrefix(line, "Content-Length: "); ok {
			if length, err = strconv.Atoi(value); err != nil {
				return nil, err
			}
		}
	}
	message := make([]byte, length)
	_, err := io.ReadFull(r, message)
	return message, err
}

// send sends a message without the member that all messages share.
func (ed *editor) send(message string) {
	ed.t.Helper()
	message = strings.ReplaceAll(message, "ROOT", ed.root)
	if !json.Valid([]byte(message)) {
		ed.t.Fatalf("no JSON: %s", message)
	}
	ed.write(`{"jsonrpc":"2.0",` + strings.TrimPrefix(message, "{"))
}

// write sends any text as a message.
func (ed *editor) write(message string) {
	ed.t.Helper()
	if _, err := fmt.Fprintf(ed.in, "Content-Length: %d\r\n\r\n%s", len(message), message); err != nil {
		ed.t.Fatal(err)
	}
}

// next returns the response with the id of want, or else the next message that is no response.
func (ed *editor) next(want map[string]any) map[string]any {
	ed.t.Helper()
	_, isCall := want["method"]
	fits := func(m map[string]any) bool {
		_, call := m["method"]
		return call == isCall && (isCall || cmp.Equal(m["id"], want["id"]))
	}
	for i, m := range ed.early {
		if fits(m) {
			ed.early = append(ed.early[:i:i], ed.early[i+1:]...)
			return m
		}
	}
	deadline := time.After(10 * patience)
	for {
		select {
		case m, ok := <-ed.read:
			if !ok {
				ed.t.Fatalf("the server ended before %s", encode(ed.t, want))
			}
			if fits(m) {
				return m
			}
			ed.early = append(ed.early, m)
		case <-deadline:
			ed.t.Fatalf("no message like %s", encode(ed.t, want))
		}
	}
}

// request sends a request and returns the response.
func (ed *editor) request(id int, method, params string) map[string]any {
	ed.t.Helper()
	ed.send(fmt.Sprintf(`{"id":%d,"method":%q,"params":%s}`, id, method, params))
	return ed.next(map[string]any{"id": float64(id)})
}

// close ends the stream to the server and returns its exit code.
func (ed *editor) close() int {
	ed.t.Helper()
	if err := ed.in.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		ed.t.Error(err)
	}
	select {
	case code := <-ed.exit:
		return code
	case <-time.After(10 * patience):
		ed.t.Fatal("the server does not end")
		return -1
	}
}
