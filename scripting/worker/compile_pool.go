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
	// idleTimeout is how long an idle process waits for work before it exits.
	idleTimeout = 10 * time.Second
	// trialTimeout is the maximum wall time of a trial, far above the processor time that the
	// process allows.
	trialTimeout = 30 * time.Second
	// maxFatal is the number of fatal sources that are remembered.
	maxFatal = 1024
)

// errNoTranspiler is the error for a source that the processes of a pool cannot compile.
var errNoTranspiler = errors.New("the worker processes have no transpiler: add typescript.Transpiler() to the arguments of worker.Main")

// ErrProcessDied is returned by [Pool.Try] for a source that killed its process.
var ErrProcessDied = errors.New("the worker process exceeded its limits of processor time, memory or stack")

// Pool has processes that compile sources on trial. It is safe for concurrent use. It starts
// processes on demand.
type Pool struct {
	// fixed at creation
	path string
	argv []string

	// guarded by mu
	mu     sync.Mutex
	idle   []*trialProcess
	fatal  map[[sha256.Size]byte]bool // hashes of sources that killed a process
	closed bool

	reaping sync.WaitGroup
}

// NewPool returns a pool. Its processes run the executable at path. argv are its arguments;
// argv[0] is the name of the program. The executable calls [Main] and exits.
func NewPool(path string, argv ...string) *Pool { return &Pool{path: path, argv: argv} }

// Try compiles src in another process, and returns [ErrProcessDied] if the process did not survive.
// It does not report errors of the compiler: nil means that compiling src in this process is safe.
// Other errors mean that no process could be started, or that [Main] has no transpiler. A fatal
// source without imports is not tried again. Try is a value for [scripting.Source.Trial].
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
		return fmt.Errorf("start worker process: %w", err)
	}
	timer := time.AfterFunc(trialTimeout, w.kill)
	err = w.serve(src)
	if untried := errors.Is(err, errNoTranspiler); timer.Stop() && (err == nil || untried) {
		p.release(w)
		if untried && src.Transpiler == nil {
			return nil // this process has no transpiler either
		}
		return err
	}
	w.kill()
	if src.Import == nil {
		p.addFatal(key)
	}
	return ErrProcessDied
}

// startTrial returns a process that has received a trial: an idle one, if it is still alive, or a
// new one.
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

// acquire returns an idle process, or a fresh one.
func (p *Pool) acquire() (w *trialProcess, fresh bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, false, errors.New("pool is closed")
	}
	if n := len(p.idle); n > 0 {
		w, p.idle = p.idle[n-1], p.idle[:n-1]
		w.expiry.Stop()
		return w, false, nil
	}
	w, err = start(p.path, p.argv, &p.reaping)
	return w, true, err
}

// release keeps a process for more work until idleTimeout.
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

// expire kills a process that is still idle.
func (p *Pool) expire(w *trialProcess) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.idle, w); i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)
		w.kill()
	}
}

// Close kills the idle processes, and waits until all processes have exited. No Try may follow.
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

// trialProcess is a process that runs [Main]. One goroutine at a time may use it; kill is safe for
// concurrent use and may be called more than once.
type trialProcess struct {
	in     io.WriteCloser
	out    io.ReadCloser
	kill   func()
	exited <-chan struct{} // closed when a killed process has exited
	expiry *time.Timer
}

// start starts a process without an environment. reaping waits for it.
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
		// Its exit status is known: it was killed.
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	// An error means that the process has exited, which the next use reports.
	_ = writeFrame(in, frameBounds, processBounds{memory: defaultMemory}.append(nil)) // a trial limits its own time
	return &trialProcess{in: in, out: out, exited: ended, kill: sync.OnceFunc(func() { close(killed) })}, nil
}

// serve answers the requests of a process that runs a trial, until the process reports its end.
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

// sendFile sends a file that the process requests. The compiler of this process reports missing
// files.
func (w *trialProcess) sendFile(src scripting.Source, name string) error {
	content, err := src.Import(name)
	if err != nil {
		return writeFrame(w.in, frameNoFile, nil)
	}
	return writeFrame(w.in, frameFile, content)
}
