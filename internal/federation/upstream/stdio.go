package upstream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/truncate"
	"github.com/mcpd/mcpd/internal/process/supervisor"
)

const (
	// sendTimeout bounds the write of one message to a program.
	sendTimeout = 10 * time.Second
	// stopTimeout bounds the time that a program runs after its input is closed, and the time
	// that an HTTP server takes to end a session.
	stopTimeout = time.Second
)

// stdioServer is a server that uses its standard streams: messages are lines.
type stdioServer struct {
	child      *supervisor.Child
	filter     *messageFilter
	conn       *Conn
	lines      *bufio.Reader
	ready      []byte
	stderrDone chan struct{}          // closed when standard error has been read
	lastLine   atomic.Pointer[string] // the last line of standard error

	mu      sync.Mutex
	partial []byte // an incomplete message of the client library
	sendErr error  // the first error of send: nothing is sent after it
}

// errTooDeep refuses to start a program at MaxDepth.
var errTooDeep = fmt.Errorf("this server is the upstream of %d servers in a chain: check for a loop", MaxDepth)

func (c *Conn) startProgram(ctx context.Context) (*stdioServer, error) {
	var inherited []string
	var depth int
	if c.options.Environment != nil {
		inherited, depth = c.options.Environment()
	}
	if depth >= MaxDepth {
		return nil, errTooDeep
	}
	path, err := exec.LookPath(c.target.Command[0])
	if err != nil {
		return nil, fmt.Errorf("find the program: %w", err)
	}
	env := append([]string{DepthVariable + "=" + strconv.Itoa(depth+1)}, inherited...)
	for _, v := range c.target.Env {
		value, err := c.options.ResolveValue(ctx, v.Value)
		if err != nil {
			return nil, fmt.Errorf("read the variable %s: %w", v.Name, err)
		}
		env = append(env, v.Name+"="+value)
	}
	child, err := supervisor.Start(c.options.Supervisor, supervisor.Program{Path: path, Argv: c.target.Command, Env: env, Dir: c.target.Dir})
	if err != nil {
		return nil, fmt.Errorf("start the program: %w", err)
	}
	s := &stdioServer{child: child, filter: c.filter, conn: c, lines: bufio.NewReader(c.filter.breaker.countReads(child.Stdout)), stderrDone: make(chan struct{})}
	go s.logStderr()
	return s, nil
}

// logStderr logs the standard error of the program line by line. It truncates long lines.
func (s *stdioServer) logStderr() {
	defer close(s.stderrDone)
	lines := bufio.NewReaderSize(s.filter.breaker.countReads(s.child.Stderr), 2*maxLogText)
	for within := false; ; {
		line, long, err := lines.ReadLine()
		if err != nil {
			return
		}
		if words := bytes.TrimSpace(line); !within && len(words) > 0 {
			text := truncate.Text(string(words), maxLogText)
			s.lastLine.Store(&text) // for stderrTail
			s.logLine("stderr of upstream server", line)
		}
		within = long
	}
}

func (s *stdioServer) logLine(what string, line []byte) {
	s.filter.throttle()
	s.conn.options.Logger.Debug(what, slog.String("upstream", s.conn.target.Name), logText("line", string(line)))
}

// Read reads the messages that pass the filter, one on each line.
func (s *stdioServer) Read(to []byte) (int, error) {
	for len(s.ready) == 0 {
		line, err := s.line()
		if err == nil {
			s.ready, err = s.message(line)
		}
		if err != nil {
			s.filter.fail(err)
			return 0, io.EOF
		}
	}
	n := copy(to, s.ready)
	s.ready = s.ready[n:]
	return n, nil
}

// message returns what the client library sees of a line. Programs also write other text to
// their standard output.
func (s *stdioServer) message(line []byte) ([]byte, error) {
	if line = bytes.TrimSpace(line); len(line) == 0 {
		return nil, nil
	}
	if line[0] != '{' {
		s.logLine("ignore output of upstream server", line)
		return nil, nil
	}
	text, err := s.filter.incoming(line, &stream{})
	if err != nil || text == nil {
		return nil, err
	}
	return append(bytes.ReplaceAll(text, []byte("\n"), []byte(" ")), '\n'), nil
}

func (s *stdioServer) line() ([]byte, error) {
	line, err := readLine(s.lines, s.filter.limits.Bytes+1)
	switch {
	case err == nil:
		return line, nil
	case err == errLongLine:
		return nil, fmt.Errorf("the server sent a message longer than %d bytes", s.filter.limits.Bytes)
	case errors.Is(err, io.EOF):
		return nil, s.exitError(errClosed)
	}
	return nil, s.exitError(fmt.Errorf("read program output: %w", err))
}

// Write sends complete messages of the client library, each with its line end. After an error,
// each further Write returns that error.
func (s *stdioServer) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sendErr != nil {
		return 0, s.sendErr
	}
	s.partial = append(s.partial, text...)
	for {
		end := bytes.IndexByte(s.partial, '\n')
		if end < 0 {
			return len(text), nil
		}
		if err := s.send(s.partial[:end+1]); err != nil {
			if !errors.Is(err, os.ErrClosed) { // this side has not closed the input
				err = s.exitError(fmt.Errorf("the program does not read its input: %w", err))
			}
			s.sendErr = err
			s.filter.fail(err)
			return 0, err
		}
		s.partial = s.partial[end+1:]
	}
}

// send writes a line to the program, unless it answers a request that the program has
// cancelled.
func (s *stdioServer) send(line []byte) (err error) {
	st, sent := s.filter.outgoing(line)
	if sent != nil {
		defer sent()
	}
	if st != nil {
		_ = s.child.Stdin.SetWriteDeadline(time.Now().Add(sendTimeout))
		_, err = s.child.Stdin.Write(line)
	}
	return err
}

// Close closes the input of the program, which ends a blocked Write. A second call, for reading
// and writing, has no effect.
func (s *stdioServer) Close() error {
	_ = s.child.Stdin.Close()
	return nil
}

// stop stops the program and waits until it has exited.
func (s *stdioServer) stop() {
	_ = s.Close()
	late := time.AfterFunc(stopTimeout, s.child.Kill)
	defer late.Stop()
	_, _ = s.child.Outcome()
	select {
	case <-s.stderrDone: // the rest of standard error
	case <-time.After(stopTimeout):
	}
	_, _ = s.child.Wait()
	<-s.stderrDone
}

var (
	// ErrProcessExited ends the calls of a program that has exited.
	ErrProcessExited = errors.New("the program has ended")
	// errClosed reports that a running program has closed its output.
	errClosed = errors.New("the program has closed its output")
)

// exitError returns how the program exited, or otherwise if it is still running, with the tail
// of its standard error.
func (s *stdioServer) exitError(otherwise error) error {
	select {
	case <-s.child.Done():
	case <-time.After(stopTimeout):
		return s.withStderr(otherwise)
	}
	code, err := s.child.Outcome()
	if err != nil {
		return err
	}
	s.waitStderr()
	return s.withStderr(fmt.Errorf("%w: %s", ErrProcessExited, statusOf(code)))
}

// The exit code of a program that was killed by a signal is signaled plus the signal number,
// as in shells.
const (
	signaled   = 128
	lastSignal = 64
)

// statusOf describes an exit code, with the name of the signal, if any.
func statusOf(code int) string {
	if signal := code - signaled; signal > 0 && signal <= lastSignal {
		return fmt.Sprintf("exit status %d (%s)", code, syscall.Signal(signal))
	}
	return fmt.Sprintf("exit status %d", code)
}

// maxStderrTail bounds the shown tail of standard error, in bytes.
const maxStderrTail = 200

// waitStderr waits briefly until the standard error of an exited program has been read: other
// processes may hold it open.
func (s *stdioServer) waitStderr() {
	select {
	case <-s.stderrDone:
	case <-time.After(stopTimeout):
	}
}

// withStderr adds the last line of standard error to an error for the operator. A nil receiver
// stands for an HTTP server.
func (s *stdioServer) withStderr(err error) error {
	if s == nil {
		return err
	}
	words := s.stderrTail()
	if words == "" {
		return err
	}
	return fmt.Errorf("%w; its last words: %s", err, words)
}

// stderrTail returns the last line of standard error, redacted and printable. It redacts before
// it truncates, so that no part of a secret remains.
func (s *stdioServer) stderrTail() string {
	last := s.lastLine.Load()
	if last == nil {
		return ""
	}
	line := *last
	if redact := s.conn.options.Redact; redact != nil {
		line = redact(line)
	}
	line = diag.Printable(line)
	if len(line) > maxStderrTail {
		return truncate.Start(line, maxStderrTail) + "…"
	}
	return line
}
