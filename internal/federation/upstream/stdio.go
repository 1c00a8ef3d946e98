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
	// sendTime is how long a program may take to read a message.
	sendTimeout = 10 * time.Second
	// leaveTime is how long a program may go on that has nothing more to read, and how
	// long a server over HTTP may take to hear that a session is over.
	stopTimeout = time.Second
)

// program is a server that speaks over its standard streams: messages are lines.
type stdioServer struct {
	child      *supervisor.Child
	filter     *messageFilter
	conn       *Conn
	lines      *bufio.Reader
	ready      []byte
	stderrDone chan struct{}          // closed when its standard error has been read
	lastLine   atomic.Pointer[string] // line of that

	mu      sync.Mutex
	partial []byte // of a message that the client library has not written to its end
}

// errDeep says that too many servers stand before this one.
var errTooDeep = fmt.Errorf("this server is itself the upstream of %d servers, one behind the other: is one its own?", MaxDepth)

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

// tell passes what the program writes to its standard error on to the log, line by line.
// Of a long line it passes on the beginning.
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
			p.lastLine.Store(&said) // the last line of the standard error
			p.logLine("an upstream server says", line)
		}
		within = long
	}
}

func (p *stdioServer) logLine(what string, line []byte) {
	p.filter.throttle()
	p.conn.options.Logger.Debug(what, slog.String("upstream", p.conn.target.Name), logText("line", string(line)))
}

// Read reads the messages that the wire lets through, one on each line.
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

// message returns what the client library is to see of a line. Programs write to their
// standard output what is no message, too.
func (p *stdioServer) message(line []byte) ([]byte, error) {
	if line = bytes.TrimSpace(line); len(line) == 0 {
		return nil, nil
	}
	if line[0] != '{' {
		p.logLine("an upstream server writes what is no message", line)
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
		return nil, fmt.Errorf("the server sends a message of more than %d bytes", p.filter.limits.Bytes)
	case errors.Is(err, io.EOF):
		return nil, p.exitError(errClosed)
	}
	return nil, p.exitError(fmt.Errorf("read what the program writes: %w", err))
}

// Write sends what the client library writes: whole messages, each with its line end.
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
			err = p.exitError(fmt.Errorf("the program does not read: %w", err))
			p.filter.fail(err)
			return 0, err
		}
		p.partial = p.partial[end+1:]
	}
}

// send writes a line to the program, unless that is an answer which it does not want.
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

// Close tells the program that there is nothing more to read. Two of them, of reading and
// of writing, are one.
func (p *stdioServer) Close() error {
	_ = p.child.Stdin.Close()
	return nil
}

// end ends the program, and returns when nothing of it is left.
func (p *stdioServer) stop() {
	_ = p.Close()
	late := time.AfterFunc(stopTimeout, p.child.Kill)
	defer late.Stop()
	_, _ = p.child.Outcome()
	select {
	case <-p.stderrDone: // its last words
	case <-time.After(stopTimeout):
	}
	_, _ = p.child.Wait()
	<-p.stderrDone
}

var (
	// ErrEnded is why the calls of a program end that has ended.
	ErrProcessExited = errors.New("the program has ended")
	// errClosed is of a program that goes on, and of which nothing more can come.
	errClosed = errors.New("the program has closed its output")
)

// fate returns how the program has ended that is of no use any more, or otherwise where it
// goes on, with its last words.
func (p *stdioServer) exitError(otherwise error) error {
	select {
	case <-p.child.Ended():
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

// Of a program that a signal has ended the code is that of shells: signalled and the number
// of the signal.
const (
	signalled  = 128
	lastSignal = 64
)

// statusOf tells an exit code in words: of one that stands for a signal its name, too.
func statusOf(code int) string {
	if signal := code - signalled; signal > 0 && signal <= lastSignal {
		return fmt.Sprintf("exit status %d (%s)", code, syscall.Signal(signal))
	}
	return fmt.Sprintf("exit status %d", code)
}

// maxWords is how much is shown of the last words of a program, in bytes.
const maxStderrTail = 200

// heard waits a little until the standard error of a program has been read that has ended:
// others may hold it open.
func (p *stdioServer) waitStderr() {
	select {
	case <-p.stderrDone:
	case <-time.After(stopTimeout):
	}
}

// explained is an error, which is for the operator, with the last line that the program has
// written to its standard error. Nil stands for a server over HTTP, which has none.
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

// words are the last line, without secrets and as a terminal may show it. Secrets go first:
// no part of one is left where the line is cut.
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
