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

// lastWait is how long the last words of a process that has ended may take.
const drainWait = time.Second

// process is a worker process as its parent sees it.
type process struct {
	child
	placement
	programCache
	reader pipeReader
	callTable
	ticks *atomic.Int64 // the looks of the executor
}

// child is the process of the operating system with its streams. Fixed at creation.
type child struct {
	cmd        *exec.Cmd
	stream     stream
	wire       wire
	stderr     io.ReadCloser // standard error
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
	trusted     bool   // the programs of its calls are proven
	isolatedFor *owner // owner of all its calls, if they share it with no other owner; else nil
	idleTicks   int    // looks since the last call
	stuck       bool   // a call computes for so long that other calls prefer other processes
	draining    bool   // takes no more calls, and exits after the calls that it has
}

// programCache has the programs that a process has loaded. The mutex teaching guards it.
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
	discarding bool // output that was not read yet is dropped
	exit       exit
}

// exit is the state of a process when it was killed or exited by itself.
type exit struct {
	cause  exitCause // endless while the process lives
	calls  int       // calls in the process
	oldest int64     // look at which the longest computing call started to compute; 0 if none did
}

// start starts a process without an environment, which waits to be given its
// memory. The caller holds mu.
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

// give tells a process what it may have, by which it confines itself. The caller
// holds the mutex of the executor; there is always room for so little.
func (p *process) configure(memory int64, processor time.Duration) {
	p.memory, p.cpuLimit, p.maxWeight = memory, processor, memory/programShare
	// When this fails the process has ended, which shows when it is used.
	_ = writeFrame(p.stream, frameBounds, processBounds{uint64(memory), uint64(processor / time.Second)}.append(nil))
}

// attend waits for the end of the process, and of what it has sent.
func (p *process) wait() {
	_, _ = io.Copy(&p.stderrHead, p.stderr) // to its end, or that of the process
	p.kill(exitUnknown)
	_ = p.cmd.Wait() // how it ended is told by its last words
	p.drain()
	_ = p.stream.Close()
}

// holds reports whether a call computes since before the look before the last.
func (p *process) isStuck() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	oldest := p.oldestRunning()
	return oldest != 0 && p.ticks.Load()-oldest >= stuckTicks
}

// longest returns since when the call computes that does so for the longest
// time; 0 when none does. The caller holds mu.
func (p *process) oldestRunning() (oldest int64) {
	for _, x := range p.executions {
		if since := x.runningSince.Load(); since != 0 && (oldest == 0 || since < oldest) {
			oldest = since
		}
	}
	return oldest
}

// board takes a call on, unless the process has ended.
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

// What a compiled program takes of the memory of its process. Programs as they are written
// take 14 to 25 bytes for each of their source, the densest that were found 58, and the
// shortest 3 KiB.
const (
	weightPerByte    = 64
	weightPerProgram = 16 << 10
	// programShare is the part of its memory that the programs of a process may have: a
	// quarter, so that no call is charged for the programs of others.
	programShare = 4
)

// teach sends a program that the process does not have, and returns what a call names it
// by: its hash or, for a program that has one call, a name of its own. If the process has
// too many programs, it forgets the oldest. The caller holds teaching until it has sent
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

// lastWords keeps the beginning of what a process writes to its standard error.
type headBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

// maxWords bounds them, in bytes.
const maxStderr = 2 * truncate.Least

// Write takes everything, and keeps what there is room for.
func (l *headBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p[:min(len(p), maxStderr-l.text.Len())])
	return len(p), nil
}

func (l *headBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return truncate.Text(l.text.String(), maxStderr-1) // what has no room left is cut, for all that is known
}

// readFor reads until the first frame of a call has come, unless another goroutine reads.
// So a call reads itself as long as it waits for nothing but its process. Nobody reads while
// there are no calls.
func (p *process) readFor(x *execution) {
	lease, ok := p.reader.acquire()
	if !ok {
		return
	}
	p.mu.Lock()
	waits := p.executions[x.id] == x // else its outcome was read meanwhile
	p.mu.Unlock()
	if !waits {
		p.release()
		return
	}
	x.lease = lease
	p.reader.read(lease)
}

// release gives the lease back when no calls are left. A call that has come meanwhile has
// not got the lease, and would wait for ever.
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

// handle gives a frame to its call, which takes all that come up to its outcome. The call
// that reads passes the lease with its first frame: handling that holds up no other call.
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
	case <-p.killed: // it takes no more
	}
	switch {
	case left == 0:
		p.release()
	case reads:
		p.reader.pass(lease)
	}
	return nil
}

// find returns the call with an id, and how many calls are left. A call leaves with its
// outcome: after that nothing may come of it.
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

// unread ends the process when nothing that it sends can be read any more.
func (p *process) readFailed(err error) {
	why := exitUnknown
	if errors.Is(err, errFrame) {
		why = exitProtocol
	}
	p.kill(why)
	close(p.readDone)
}

// readOut waits until everything that an ended process has sent was read, and keeps the
// lease, so that nobody reads after that.
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

// abandon has the reader of a killed process stop before the process has ended: what it
// has sent last is lost, as if it had been killed before.
func (p *process) discardOutput() {
	p.mu.Lock()
	p.discarding = true
	p.mu.Unlock()
	p.stream.wake()
}
