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
	sendTime = 10 * time.Second
	// leaveTime is how long a program may go on that has nothing more to read, and how
	// long a server over HTTP may take to hear that a session is over.
	leaveTime = time.Second
)

// program is a server that speaks over its standard streams: messages are lines.
type program struct {
	child *supervisor.Child
	wire  *wire
	link  *Link
	lines *bufio.Reader
	ready []byte
	told  chan struct{}          // closed when its standard error has been read
	last  atomic.Pointer[string] // line of that

	mu   sync.Mutex
	part []byte // of a message that the client library has not written to its end
}

// errDeep says that too many servers stand before this one.
var errDeep = fmt.Errorf("this server is itself the upstream of %d servers, one behind the other: is one its own?", MaxDepth)

func (l *Link) start(ctx context.Context) (*program, error) {
	var inherited []string
	var depth int
	if l.options.Environment != nil {
		inherited, depth = l.options.Environment()
	}
	if depth >= MaxDepth {
		return nil, errDeep
	}
	path, err := exec.LookPath(l.place.Command[0])
	if err != nil {
		return nil, fmt.Errorf("find the program: %w", err)
	}
	env := append([]string{DepthVariable + "=" + strconv.Itoa(depth+1)}, inherited...)
	for _, v := range l.place.Env {
		value, err := l.options.Value(ctx, v.Value)
		if err != nil {
			return nil, fmt.Errorf("read the variable %s: %w", v.Name, err)
		}
		env = append(env, v.Name+"="+value)
	}
	child, err := supervisor.Start(l.options.Supervisor, supervisor.Program{Path: path, Argv: l.place.Command, Env: env, Dir: l.place.Dir})
	if err != nil {
		return nil, fmt.Errorf("start the program: %w", err)
	}
	p := &program{child: child, wire: l.wire, link: l, lines: bufio.NewReader(l.wire.health.listen(child.Stdout)), told: make(chan struct{})}
	go p.tell()
	return p, nil
}

// tell passes what the program writes to its standard error on to the log, line by line.
// Of a long line it passes on the beginning.
func (p *program) tell() {
	defer close(p.told)
	lines := bufio.NewReaderSize(p.wire.health.listen(p.child.Stderr), 2*maxNoise)
	for within := false; ; {
		line, long, err := lines.ReadLine()
		if err != nil {
			return
		}
		if words := bytes.TrimSpace(line); !within && len(words) > 0 {
			said := truncate.Text(string(words), maxNoise)
			p.last.Store(&said) // the last line of the standard error
			p.noise("an upstream server says", line)
		}
		within = long
	}
}

func (p *program) noise(what string, line []byte) {
	p.wire.keepPace()
	p.link.options.Logger.Debug(what, slog.String("upstream", p.link.place.Name), logged("line", string(line)))
}

// Read reads the messages that the wire lets through, one on each line.
func (p *program) Read(to []byte) (int, error) {
	for len(p.ready) == 0 {
		line, err := p.line()
		if err == nil {
			p.ready, err = p.message(line)
		}
		if err != nil {
			p.wire.fail(err)
			return 0, io.EOF
		}
	}
	n := copy(to, p.ready)
	p.ready = p.ready[n:]
	return n, nil
}

// message returns what the client library is to see of a line. Programs write to their
// standard output what is no message, too.
func (p *program) message(line []byte) ([]byte, error) {
	if line = bytes.TrimSpace(line); len(line) == 0 {
		return nil, nil
	}
	if line[0] != '{' {
		p.noise("an upstream server writes what is no message", line)
		return nil, nil
	}
	text, err := p.wire.incoming(line, &stream{})
	if err != nil || text == nil {
		return nil, err
	}
	return append(bytes.ReplaceAll(text, []byte("\n"), []byte(" ")), '\n'), nil
}

func (p *program) line() ([]byte, error) {
	line, err := readLine(p.lines, p.wire.limits.Bytes+1)
	switch {
	case err == nil:
		return line, nil
	case err == errLongLine:
		return nil, fmt.Errorf("the server sends a message of more than %d bytes", p.wire.limits.Bytes)
	case errors.Is(err, io.EOF):
		return nil, p.fate(errClosed)
	}
	return nil, p.fate(fmt.Errorf("read what the program writes: %w", err))
}

// Write sends what the client library writes: whole messages, each with its line end.
func (p *program) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.part = append(p.part, text...)
	for {
		end := bytes.IndexByte(p.part, '\n')
		if end < 0 {
			return len(text), nil
		}
		err := p.send(p.part[:end+1])
		if err != nil {
			err = p.fate(fmt.Errorf("the program does not read: %w", err))
			p.wire.fail(err)
			return 0, err
		}
		p.part = p.part[end+1:]
	}
}

// send writes a line to the program, unless that is an answer which it does not want.
func (p *program) send(line []byte) (err error) {
	on, sent := p.wire.outgoing(line)
	if sent != nil {
		defer sent()
	}
	if on != nil {
		_ = p.child.Stdin.SetWriteDeadline(time.Now().Add(sendTime))
		_, err = p.child.Stdin.Write(line)
	}
	return err
}

// Close tells the program that there is nothing more to read. Two of them, of reading and
// of writing, are one.
func (p *program) Close() error {
	_ = p.child.Stdin.Close()
	return nil
}

// end ends the program, and returns when nothing of it is left.
func (p *program) end() {
	_ = p.Close()
	late := time.AfterFunc(leaveTime, p.child.Kill)
	defer late.Stop()
	_, _ = p.child.Outcome()
	select {
	case <-p.told: // its last words
	case <-time.After(leaveTime):
	}
	_, _ = p.child.Wait()
	<-p.told
}

var (
	// ErrEnded is why the calls of a program end that has ended.
	ErrEnded = errors.New("the program has ended")
	// errClosed is of a program that goes on, and of which nothing more can come.
	errClosed = errors.New("the program has closed its output")
)

// fate returns how the program has ended that is of no use any more, or otherwise where it
// goes on, with its last words.
func (p *program) fate(otherwise error) error {
	select {
	case <-p.child.Done():
	case <-time.After(leaveTime):
		return p.explained(otherwise)
	}
	code, err := p.child.Outcome()
	if err != nil {
		return err
	}
	p.heard()
	return p.explained(fmt.Errorf("%w: %s", ErrEnded, statusOf(code)))
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
const maxWords = 200

// heard waits a little until the standard error of a program has been read that has ended:
// others may hold it open.
func (p *program) heard() {
	select {
	case <-p.told:
	case <-time.After(leaveTime):
	}
}

// explained is an error, which is for the operator, with the last line that the program has
// written to its standard error. Nil stands for a server over HTTP, which has none.
func (p *program) explained(err error) error {
	if p == nil {
		return err
	}
	words := p.words()
	if words == "" {
		return err
	}
	return fmt.Errorf("%w; its last words: %s", err, words)
}

// words are the last line, without secrets and as a terminal may show it. Secrets go first:
// no part of one is left where the line is cut.
func (p *program) words() string {
	last := p.last.Load()
	if last == nil {
		return ""
	}
	said := *last
	if redact := p.link.options.Redact; redact != nil {
		said = redact(said)
	}
	said = diag.Printable(said)
	if len(said) > maxWords {
		return truncate.Start(said, maxWords) + "…"
	}
	return said
}
