package worker

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/mcpd/mcpd/internal/process/osproc"
	"github.com/mcpd/mcpd/scripting"
)

const (
	// idleFor is how long a process waits for more work before it ends.
	idleTimeout = 10 * time.Second
	// patience is how long a trial may take by the clock on the wall, far more
	// than the processor time that the process itself allows for it.
	trialTimeout = 30 * time.Second
	// maxLost is how much of what did not survive is remembered.
	maxFatal = 1024
)

// errUntried is the error for a source that the processes of a pool cannot compile.
var errNoTranspiler = errors.New("the worker processes of the program have no transpiler: add typescript.Transpiler() to the arguments of worker.Main")

// ErrLost says that a process did not survive what it was given.
var ErrProcessDied = errors.New("the process that it was given to went over its limits of processor time, memory or stack")

// Pool starts and keeps processes. It is safe for concurrent use, and starts
// none before there is work.
type Pool struct {
	// Fixed at creation.
	path string
	argv []string

	// Guarded by mu.
	mu     sync.Mutex
	idle   []*trialProcess
	fatal  map[[sha256.Size]byte]bool // what did not survive
	closed bool

	reaping sync.WaitGroup
}

// NewPool returns a pool whose processes run the program at path with argv,
// the name of the program first. The program calls [Main] and ends.
func NewPool(path string, argv ...string) *Pool { return &Pool{path: path, argv: argv} }

// Try compiles a source in another process, and returns [ErrLost] when that
// process did not survive it. What else the compiler finds is not its concern:
// nil means that compiling here is safe. Other errors say that no process could
// be started, or that [Main] has no transpiler there. A source that imports nothing and was lost is not tried again.
// Try is made for [scripting.Source.Trial].
func (p *Pool) Try(src scripting.Source) error {
	content, err := encodeTrial(src)
	if err != nil {
		return err
	}
	key := sha256.Sum256(content)
	if p.isFatal(key) {
		return ErrProcessDied
	}
	w, err := p.startTrial(content)
	if err != nil {
		return fmt.Errorf("start a worker: %w", err)
	}
	timer := time.AfterFunc(trialTimeout, w.kill)
	err = w.serve(src)
	if untried := errors.Is(err, errNoTranspiler); timer.Stop() && (err == nil || untried) {
		p.release(w)
		if untried && src.Transpiler == nil {
			return nil // this process compiles it no further
		}
		return err
	}
	w.kill()
	if src.Import == nil {
		p.addFatal(key)
	}
	return ErrProcessDied
}

// given returns a process that has taken a trial: one that was idle, unless it
// died of something else meanwhile, or a new one.
func (p *Pool) startTrial(content []byte) (*trialProcess, error) {
	for {
		w, fresh, err := p.acquire()
		if err != nil {
			return nil, err
		}
		if err = writeFrame(w.in, frameTrial, content); err == nil {
			return w, nil
		}
		w.kill()
		if fresh {
			return nil, err
		}
	}
}

func (p *Pool) isFatal(key [sha256.Size]byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.fatal[key]
}

func (p *Pool) addFatal(key [sha256.Size]byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fatal == nil || len(p.fatal) >= maxFatal {
		p.fatal = map[[sha256.Size]byte]bool{}
	}
	p.fatal[key] = true
}

// take returns a process that is idle, or a fresh one.
func (p *Pool) acquire() (w *trialProcess, fresh bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, false, errors.New("the pool is closed")
	}
	if n := len(p.idle); n > 0 {
		w, p.idle = p.idle[n-1], p.idle[:n-1]
		w.expiry.Stop()
		return w, false, nil
	}
	w, err = start(p.path, p.argv, &p.reaping)
	return w, true, err
}

// give keeps a process for more work, for a while.
func (p *Pool) release(w *trialProcess) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		w.kill()
		return
	}
	p.idle = append(p.idle, w)
	w.expiry = time.AfterFunc(idleTimeout, func() { p.expire(w) })
}

// expire ends a process that is still idle.
func (p *Pool) expire(w *trialProcess) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.idle, w); i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)
		w.kill()
	}
}

// Close ends the processes that are idle, and waits until every process has
// ended. No Try may follow.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	for _, w := range p.idle {
		w.expiry.Stop()
		w.kill()
	}
	p.idle = nil
	p.mu.Unlock()
	p.reaping.Wait()
	return nil
}

// trialProcess is a started program that runs [Main]. One goroutine at a time may
// use it; kill may be called by any, more than once.
type trialProcess struct {
	in     io.WriteCloser
	out    io.ReadCloser
	kill   func()
	exited <-chan struct{} // closed when a process that was killed has ended
	expiry *time.Timer
}

// start starts a process, without an environment, that reaping waits for.
func start(path string, argv []string, reaping *sync.WaitGroup) (*trialProcess, error) {
	cmd := &exec.Cmd{Path: path, Args: argv, Env: []string{}, SysProcAttr: osproc.GroupAttr()}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := osproc.Start(cmd); err != nil {
		return nil, err
	}
	killed, ended := make(chan struct{}), make(chan struct{})
	reaping.Go(func() {
		defer close(ended)
		<-killed
		// How it ended says nothing that is not known: it was killed.
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	// When this fails the process has ended, which shows when it is used.
	_ = writeFrame(in, frameBounds, processBounds{memory: defaultMemory}.append(nil)) // a trial watches its own time
	return &trialProcess{in: in, out: out, exited: ended, kill: sync.OnceFunc(func() { close(killed) })}, nil
}

// attend answers what a process asks for that has taken a trial, until it says
// that it survived.
func (w *trialProcess) serve(src scripting.Source) error {
	for {
		kind, name, err := readFrame(w.out, maxName)
		switch {
		case err != nil:
			return err
		case kind == frameTrialDone:
			return nil
		case kind == frameNoTranspiler:
			return errNoTranspiler
		case kind != frameImport || src.Import == nil || !fs.ValidPath(string(name)):
			return errFrame
		}
		if err := w.sendFile(src, string(name)); err != nil {
			return err
		}
	}
}

// answer sends a file that the process asks for. Why there is none is told by
// the compiler of this side.
func (w *trialProcess) sendFile(src scripting.Source, name string) error {
	content, err := src.Import(name)
	if err != nil {
		return writeFrame(w.in, frameNoFile, nil)
	}
	return writeFrame(w.in, frameFile, content)
}
