package worker

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcpd/mcpd/internal/base/truncate"
	"github.com/mcpd/mcpd/internal/process/osproc"
	"github.com/mcpd/mcpd/scripting"
)

// drainWait is the maximum time for reading the last output of an exited process.
const drainWait = time.Second

// process is a worker process as its parent sees it.
type process struct {
	child
	placement
	programCache
	reader pipeReader
	callTable
	ticks *atomic.Int64 // ticks of the executor
}

// child is an operating-system process and its streams. Fixed at creation.
type child struct {
	cmd        *exec.Cmd
	stream     stream
	wire       wire
	stderr     io.ReadCloser
	stderrHead headBuffer
	killed     chan struct{} // closed when the process is killed
	readDone   chan struct{} // closed when reading has failed, as after the exit
	exited     chan struct{} // closed after the exit, when all output was handled
}

// placement is what the scheduler decides by. The mutex of the executor guards it.
type placement struct {
	memory      int64         // memory limit in bytes; 0 before the process has one
	cpuLimit    time.Duration // limit of processor time
	calls       int
	exclusive   bool   // its call shares the process with no other
	trusted     bool   // the programs of its calls are trusted
	isolatedFor *owner // owner of all its calls, if they share it with no other owner; else nil
	idleTicks   int    // ticks since the last call
	stuck       bool   // a call computes for so long that other calls prefer other processes
	draining    bool   // takes no more calls, and exits after the calls that it has
}

// programCache has the programs that a process has loaded. The mutex sending guards it.
type programCache struct {
	sending   sync.Mutex         // held while a call and its program are sent, which may take long
	programs  map[[32]byte]int64 // program hash to weight in bytes
	order     [][32]byte         // keys of programs, oldest first
	weight    int64              // sum of the weights
	maxWeight int64              // limit of weight
}

// callTable has the calls in a process that have no outcome yet.
type callTable struct {
	running atomic.Int64 // calls that compute; the others wait for their host

	// guarded by mu
	mu         sync.Mutex
	executions map[uint64]*execution
	total      int  // calls since the start
	discarding bool // drop output that was not read yet
	exit       exit
}

// exit is the state of a process when it was killed or exited by itself.
type exit struct {
	cause  exitCause // notExited while the process lives
	calls  int       // calls in the process
	oldest int64     // tick at which the longest running call started to compute; 0 if none did
}

// start starts a process without an environment, which waits for its memory limit. The caller holds
// mu.
func (e *Executor) start() (*process, error) {
	p := &process{
		child:        child{killed: make(chan struct{}), readDone: make(chan struct{}), exited: make(chan struct{})},
		programCache: programCache{programs: map[[32]byte]int64{}},
		callTable:    callTable{executions: map[uint64]*execution{}},
		ticks:        &e.ticks,
	}
	p.cmd = &exec.Cmd{Path: e.command.path, Args: e.command.argv, Env: []string{}, SysProcAttr: osproc.GroupAttr()}
	ours, theirs, err := connect(p.cmd)
	if err != nil {
		return nil, err
	}
	if p.stderr, err = p.cmd.StderrPipe(); err == nil {
		err = osproc.Start(p.cmd)
	}
	if err == nil {
		e.counts.Started++
	}
	for _, end := range theirs {
		_ = end.Close()
	}
	if err != nil {
		_ = ours.Close()
		return nil, err
	}
	p.stream, p.wire.out = ours, ours
	p.reader = pipeReader{in: bufio.NewReaderSize(ours, 64<<10), limit: maxChildFrame, handle: p.handle, failed: p.readFailed}
	e.reaping.Go(func() {
		p.wait()
		e.removeExited(p)
		close(p.exited)
	})
	return p, nil
}

// configure sends a process its limits, by which it confines itself. The caller holds the mutex of
// the executor; the frame always fits into the pipe.
func (p *process) configure(memory int64, processor time.Duration) {
	p.memory, p.cpuLimit, p.maxWeight = memory, processor, memory/programShare
	// An error means that the process has exited, which the next use reports.
	_ = writeFrame(p.stream, frameBounds, processBounds{uint64(memory), uint64(processor / time.Second)}.append(nil))
}

// wait waits for the exit of the process and handles all its output.
func (p *process) wait() {
	_, _ = io.Copy(&p.stderrHead, p.stderr) // until the stream is closed or the process exits
	p.kill(exitUnknown)
	_ = p.cmd.Wait() // standard error has the reason
	p.drain()
	_ = p.stream.Close()
}

// isStuck reports whether a call has computed for at least stuckTicks.
func (p *process) isStuck() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	oldest := p.oldestRunning()
	return oldest != 0 && p.ticks.Load()-oldest >= stuckTicks
}

// oldestRunning returns the tick at which the longest running call started to compute; 0 if no call
// computes. The caller holds mu.
func (p *process) oldestRunning() (oldest int64) {
	for _, x := range p.executions {
		if since := x.runningSince.Load(); since != 0 && (oldest == 0 || since < oldest) {
			oldest = since
		}
	}
	return oldest
}

// attach adds a call, unless the process has exited.
func (p *process) attach(x *execution) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exit.cause != notExited {
		return false
	}
	p.executions[x.id] = x
	p.total++
	return true
}

// The memory of a compiled program. Measured programs take 14 to 25 bytes per byte of source, the
// densest 58; the shortest take 3 KiB.
const (
	weightPerByte    = 64
	weightPerProgram = 16 << 10
	// programShare is the share of its memory that the programs of a process may have: a quarter,
	// so that no call is charged for the programs of others.
	programShare = 4
)

// ensureProgram sends a program that the process does not have, and returns the name by which a
// call refers to it: its hash or, for a one-shot program, a name derived from the call. If there
// are too many programs, the process drops the oldest. The caller holds sending until it has sent
// the call.
func (p *process) ensureProgram(program *scripting.Program, call uint64) (as [32]byte, err error) {
	if isOneShot(program) {
		binary.BigEndian.PutUint64(as[:], call)
		return as, p.sendProgram(frameOneShot, as, program)
	}
	as = program.Hash()
	if p.programs[as] > 0 {
		return as, nil
	}
	weight := weightPerProgram + weightPerByte*int64(program.Size())
	for len(p.order) > 0 && p.weight+weight > p.maxWeight {
		oldest := p.order[0]
		p.order = p.order[1:]
		p.weight -= p.programs[oldest]
		delete(p.programs, oldest)
		if err := p.wire.send(frameForget, func(dst []byte) []byte { return append(dst, oldest[:]...) }); err != nil {
			return as, err
		}
	}
	p.order = append(p.order, as)
	p.programs[as] = weight
	p.weight += weight
	return as, p.sendProgram(frameProgram, as, program)
}

func (p *process) sendProgram(kind byte, as [32]byte, program *scripting.Program) error {
	text, err := program.MarshalBinary()
	if err != nil {
		return err
	}
	return p.wire.send(kind, func(dst []byte) []byte { return append(append(dst, as[:]...), text...) })
}

// headBuffer stores the start of the standard error of a process.
type headBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

// maxStderr is the size of a headBuffer, in bytes.
const maxStderr = 2 * truncate.Least

// Write stores as much of p as fits, and reports all of p as written.
func (l *headBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p[:min(len(p), maxStderr-l.text.Len())])
	return len(p), nil
}

func (l *headBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return truncate.Text(l.text.String(), maxStderr-1) // full text may be truncated text
}

// readFor reads until the first frame for x has arrived, unless another goroutine reads. So a call
// reads its frames itself while it waits only for its process. No goroutine reads while there are
// no calls.
func (p *process) readFor(x *execution) {
	lease, ok := p.reader.acquire()
	if !ok {
		return
	}
	p.mu.Lock()
	waits := p.executions[x.id] == x // otherwise its outcome was read meanwhile
	p.mu.Unlock()
	if !waits {
		p.release()
		return
	}
	x.lease = lease
	p.reader.read(lease)
}

// release returns the lease when no calls are left. A call that arrived meanwhile could not acquire
// the lease, and would wait forever, so release starts a reader for it.
func (p *process) release() {
	p.reader.release()
	p.mu.Lock()
	calls := len(p.executions)
	p.mu.Unlock()
	if calls == 0 {
		return
	}
	if lease, ok := p.reader.acquire(); ok {
		go p.reader.read(lease)
	}
}

// handle passes a frame to its call, which receives all frames up to its outcome. The call that
// reads passes the lease with its first frame, so that its work does not delay other calls.
func (p *process) handle(lease uint64, kind byte, content []byte) error {
	id, size := binary.Uvarint(content)
	if size <= 0 || kind != frameHostCall && kind != frameHostCancel && kind != frameOutcome {
		return errFrame
	}
	x, left := p.find(id, kind == frameOutcome)
	if x == nil {
		return errFrame
	}
	reads := x.lease == lease
	select {
	case x.frames <- frame{kind, content[size:]}:
	case <-p.killed: // the call receives no more frames
	}
	switch {
	case left == 0:
		p.release()
	case reads:
		p.reader.pass(lease)
	}
	return nil
}

// find returns the call with an id, and the number of remaining calls. leaves removes the call: no
// frame may follow its outcome.
func (p *process) find(id uint64, leaves bool) (x *execution, left int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x = p.executions[id]; x == nil || p.discarding {
		return nil, 0
	}
	if leaves {
		delete(p.executions, id)
	}
	return x, len(p.executions)
}

// readFailed kills the process after an error of reading.
func (p *process) readFailed(err error) {
	why := exitUnknown
	if errors.Is(err, errFrame) {
		why = exitProtocol
	}
	p.kill(why)
	close(p.readDone)
}

// drain waits until all output of an exited process was read, and keeps the lease, so that no
// goroutine reads after that.
func (p *process) drain() {
	for wait := drainWait; ; wait = time.Millisecond {
		if _, ok := p.reader.acquire(); ok {
			return
		}
		select {
		case <-p.readDone:
			return
		case <-time.After(wait):
			p.stream.wake()
		}
	}
}

// discardOutput makes the reader of a killed process stop before the process has exited. The last
// output is lost, as if the process had been killed earlier.
func (p *process) discardOutput() {
	p.mu.Lock()
	p.discarding = true
	p.mu.Unlock()
	p.stream.wake()
}
