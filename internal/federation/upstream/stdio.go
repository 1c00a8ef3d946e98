package upstream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
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
}

// errTooDeep refuses to start a program at MaxDepth.
var errTooDeep = fmt.Errorf("this server is the upstream of %d servers in a chain: check for a loop", MaxDepth)

func (l *Conn) startProgram(ctx context.Context) (*stdioServer, error) {
	var inherited []string
	var depth int
	if l.options.Environment != nil {
		inherited, depth = l.options.Environment()
	}
	if depth >= MaxDepth {
		return nil, errTooDeep
	}
	path, err := exec.LookPath(l.target.Command[0])
	if err != nil {
		return nil, fmt.Errorf("find the program: %w", err)
	}
	env := append([]string{DepthVariable + "=" + strconv.Itoa(depth+1)}, inherited...)
	for _, v := range l.target.Env {
		value, err := l.options.ResolveValue(ctx, v.Value)
		if err != nil {
			return nil, fmt.Errorf("read the variable %s: %w", v.Name, err)
		}
		env = append(env, v.Name+"="+value)
	}
	child, err := supervisor.Start(l.options.Supervisor, supervisor.Program{Path: path, Argv: l.target.Command, Env: env, Dir: l.target.Dir})
	if err != nil {
		return nil, fmt.Errorf("start the program: %w", err)
	}
	p := &stdioServer{child: child, filter: l.filter, conn: l, lines: bufio.NewReader(l.filter.breaker.countReads(child.Stdout)), stderrDone: make(chan struct{})}
	go p.logStderr()
	return p, nil
}

// logStderr logs the standard error of the program line by line. It truncates long lines.
func (p *stdioServer) logStderr() {
	defer close(p.stderrDone)
	lines := bufio.NewReaderSize(p.filter.breaker.countReads(p.child.Stderr), 2*maxLogText)
	for within := false; ; {
		line, long, err := lines.ReadLine()
		if err != nil {
			return
		}
		if words := bytes.TrimSpace(line); !within && len(words) > 0 {
			said := truncate.Text(string(words), maxLogText)
			p.lastLine.Store(&said) // for stderrTail
			p.logLine("stderr of upstream server", line)
		}
		within = long
	}
}

func (p *stdioServer) logLine(what string, line []byte) {
	p.filter.throttle()
	p.conn.options.Logger.Debug(what, slog.String("upstream", p.conn.target.Name), logText("line", string(line)))
}

// Read reads the messages that pass the filter, one on each line.
func (p *stdioServer) Read(to []byte) (int, error) {
	for len(p.ready) == 0 {
		line, err := p.line()
		if err == nil {
			p.ready, err = p.message(line)
		}
		if err != nil {
			p.filter.fail(err)
			return 0, io.EOF
		}
	}
	n := copy(to, p.ready)
	p.ready = p.ready[n:]
	return n, nil
}

// message returns what the client library sees of a line. Programs also write other text to
// their standard output.
func (p *stdioServer) message(line []byte) ([]byte, error) {
	if line = bytes.TrimSpace(line); len(line) == 0 {
		return nil, nil
	}
	if line[0] != '{' {
		p.logLine("ignore output of upstream server", line)
		return nil, nil
	}
	text, err := p.filter.incoming(line, &stream{})
	if err != nil || text == nil {
		return nil, err
	}
	return append(bytes.ReplaceAll(text, []byte("\n"), []byte(" ")), '\n'), nil
}

func (p *stdioServer) line() ([]byte, error) {
	line, err := readLine(p.lines, p.filter.limits.Bytes+1)
	switch {
	case err == nil:
		return line, nil
	case err == errLongLine:
		return nil, fmt.Errorf("the server sent a message longer than %d bytes", p.filter.limits.Bytes)
	case errors.Is(err, io.EOF):
		return nil, p.exitError(errClosed)
	}
	return nil, p.exitError(fmt.Errorf("read program output: %w", err))
}

// Write sends complete messages of the client library, each with its line end.
func (p *stdioServer) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.partial = append(p.partial, text...)
	for {
		end := bytes.IndexByte(p.partial, '\n')
		if end < 0 {
			return len(text), nil
		}
		err := p.send(p.partial[:end+1])
		if err != nil {
			err = p.exitError(fmt.Errorf("the program does not read its input: %w", err))
			p.filter.fail(err)
			return 0, err
		}
		p.partial = p.partial[end+1:]
	}
}

// send writes a line to the program, unless it answers a request that the program has
// cancelled.
func (p *stdioServer) send(line []byte) (err error) {
	on, sent := p.filter.outgoing(line)
	if sent != nil {
		defer sent()
	}
	if on != nil {
		_ = p.child.Stdin.SetWriteDeadline(time.Now().Add(sendTimeout))
		_, err = p.child.Stdin.Write(line)
	}
	return err
}

// Close closes the input of the program. A second call, for reading and writing, has no effect.
func (p *stdioServer) Close() error {
	_ = p.child.Stdin.Close()
	return nil
}

// stop stops the program and waits until it has exited.
func (p *stdioServer) stop() {
	_ = p.Close()
	late := time.AfterFunc(stopTimeout, p.child.Kill)
	defer late.Stop()
	_, _ = p.child.Outcome()
	select {
	case <-p.stderrDone: // the rest of standard error
	case <-time.After(stopTimeout):
	}
	_, _ = p.child.Wait()
	<-p.stderrDone
}

var (
	// ErrProcessExited ends the calls of a program that has exited.
	ErrProcessExited = errors.New("the program has ended")
	// errClosed reports that a running program has closed its output.
	errClosed = errors.New("the program has closed its output")
)

// exitError returns how the program exited, or otherwise if it is still running, with the tail
// of its standard error.
func (p *stdioServer) exitError(otherwise error) error {
	select {
	case <-p.child.Done():
	case <-time.After(stopTimeout):
		return p.withStderr(otherwise)
	}
	code, err := p.child.Outcome()
	if err != nil {
		return err
	}
	p.waitStderr()
	return p.withStderr(fmt.Errorf("%w: %s", ErrProcessExited, statusOf(code)))
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
func (p *stdioServer) waitStderr() {
	select {
	case <-p.stderrDone:
	case <-time.After(stopTimeout):
	}
}

// withStderr adds the last line of standard error to an error for the operator. A nil receiver
// stands for an HTTP server.
func (p *stdioServer) withStderr(err error) error {
	if p == nil {
		return err
	}
	words := p.stderrTail()
	if words == "" {
		return err
	}
	return fmt.Errorf("%w; its last words: %s", err, words)
}

// stderrTail returns the last line of standard error, redacted and printable. It redacts before
// it truncates, so that no part of a secret remains.
func (p *stdioServer) stderrTail() string {
	last := p.lastLine.Load()
	if last == nil {
		return ""
	}
	said := *last
	if redact := p.conn.options.Redact; redact != nil {
		said = redact(said)
	}
	said = diag.Printable(said)
	if len(said) > maxStderrTail {
		return truncate.Start(said, maxStderrTail) + "…"
	}
	return said
}
