package worker

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/mcpd/mcpd/scripting"
)

// errWire is the error for malformed content of a frame. It repeats none of the content.
var errWire = errors.New("malformed content of a frame")

// wire writes frames. It is safe for concurrent use.
type wire struct {
	mu    sync.Mutex
	out   io.Writer
	frame []byte // buffer for one frame
}

// maxBuffer is the maximum size of a frame buffer that is kept.
const maxBuffer = 64 << 10

// send sends one frame. fill appends its content.
func (w *wire) send(kind byte, fill func(dst []byte) []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	frame := fill(append(w.frame[:0], kind, 0, 0, 0, 0))
	if cap(frame) <= maxBuffer {
		w.frame = frame
	}
	binary.BigEndian.PutUint32(frame[1:], uint32(len(frame)-5))
	_, err := w.out.Write(frame)
	return err
}

// writer and reader encode numbers as varints, and texts with a length prefix.
type writer struct{ out []byte }

func (w *writer) number(n uint64) { w.out = binary.AppendUvarint(w.out, n) }

func (w *writer) text(text []byte) {
	w.number(uint64(len(text)))
	w.out = append(w.out, text...)
}

type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) number() uint64 {
	n, size := binary.Uvarint(r.rest)
	if size <= 0 {
		r.bad, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

// text returns a text, which is a slice of the input.
func (r *reader) text() []byte {
	n := r.number()
	if n > uint64(len(r.rest)) {
		r.bad, r.rest = true, nil
		return nil
	}
	text := r.rest[:n:n]
	r.rest = r.rest[n:]
	return text
}

// array returns the hash of a program, or a seed.
func (r *reader) array() (h [32]byte) {
	if len(r.rest) < len(h) {
		r.bad, r.rest = true, nil
		return h
	}
	copy(h[:], r.rest)
	r.rest = r.rest[len(h):]
	return h
}

// callFrame is the encoding of a call.
type callFrame struct {
	id        uint64
	program   [32]byte
	remaining time.Duration // time until the deadline; 0 for none
	call      scripting.Call
	journal   []byte // nil for a new call
}

func (f *callFrame) append(dst []byte) []byte {
	w := writer{dst}
	w.number(f.id)
	w.out = append(w.out, f.program[:]...)
	w.number(uint64(f.remaining))
	w.out = append(w.out, f.call.Seed[:]...)
	w.number(uint64(f.call.Start.UnixNano()))
	l := f.call.Limits
	for _, limit := range [...]int{l.Output, l.Depth, l.CallStack, l.HostCalls, l.Stdout, l.JournalBytes} {
		w.number(uint64(max(limit, 0)))
	}
	w.text(f.journal)
	w.text(f.call.Input)
	w.text(f.call.Agent)
	w.text(f.call.Info)
	return w.out
}

func readCall(content []byte) (f callFrame, err error) {
	r := reader{rest: content}
	f.id, f.program = r.number(), r.array()
	f.remaining = time.Duration(r.number())
	f.call.Seed = r.array()
	f.call.Start = time.Unix(0, int64(r.number()))
	l := &f.call.Limits
	for _, limit := range [...]*int{&l.Output, &l.Depth, &l.CallStack, &l.HostCalls, &l.Stdout, &l.JournalBytes} {
		n := r.number()
		*limit = int(n)
		r.bad = r.bad || n > math.MaxInt
	}
	f.journal = r.text()
	f.call.Input, f.call.Agent, f.call.Info = r.text(), r.text(), r.text()
	if r.bad || len(r.rest) > 0 {
		return callFrame{}, errWire
	}
	return f, nil
}

// hostFrame is the encoding of a host call or a notification.
type hostFrame struct {
	seq           int
	op            string
	tail, payload []byte
}

func (f *hostFrame) append(dst []byte) []byte {
	w := writer{dst}
	w.number(uint64(f.seq))
	w.text([]byte(f.op))
	w.text(f.tail)
	w.out = append(w.out, f.payload...)
	return w.out
}

func readHost(content []byte) (f hostFrame, err error) {
	r := reader{rest: content}
	seq := r.number()
	f.seq, f.op, f.tail, f.payload = int(seq), string(r.text()), r.text(), r.rest
	if r.bad || seq > 1<<31 {
		return hostFrame{}, errWire
	}
	return f, nil
}

// outcomeFrame is the result of a run: an outcome, or an error of the executor.
type outcomeFrame struct {
	tail    []byte
	fault   string // error of the executor; empty if there is an outcome
	outcome []byte
}

func (f *outcomeFrame) append(dst []byte) []byte {
	w := writer{dst}
	w.text(f.tail)
	w.text([]byte(f.fault))
	w.out = append(w.out, f.outcome...)
	return w.out
}

func readOutcome(content []byte) (f outcomeFrame, err error) {
	r := reader{rest: content}
	f.tail, f.fault, f.outcome = r.text(), string(r.text()), r.rest
	if r.bad {
		return outcomeFrame{}, errWire
	}
	return f, nil
}

const (
	// maxFrame limits one frame to a process: a call with its journal.
	maxFrame = 96 << 20
	// maxChildFrame limits one frame from a process: a result with its content.
	maxChildFrame = 24 << 20
)

// maxName limits the name of a file that a process requests.
const maxName = 4 << 10

// The kinds of frames. The first frame to a process has its limits. Then there are two modes.
//
// In a trial, the process receives a source, requests imported files one by one, and reports that
// it has survived.
//
// In calls, the process receives, in any order, programs, one-shot programs for the next call,
// calls, programs to drop, responses to host calls, and cancellations. It sends host calls,
// cancellations of host calls, and outcomes.
//
// It answers an empty report frame with its [Report].
const (
	frameBounds byte = 'm'
	frameReport byte = 'r'

	frameTrial        byte = 't'
	frameImport       byte = 'i'
	frameFile         byte = 'f'
	frameNoFile       byte = 'n'
	frameTrialDone    byte = 's'
	frameNoTranspiler byte = 'u' // the source needs a transpiler, and the process has none

	frameProgram    byte = 'p'
	frameOneShot    byte = 'q'
	frameForget     byte = 'g'
	frameCall       byte = 'c'
	frameResponse   byte = 'a'
	frameCancel     byte = 'x'
	frameHostCall   byte = 'h'
	frameHostCancel byte = 'd'
	frameOutcome    byte = 'o'
)

// errFrame is the error for a violation of the protocol.
var errFrame = errors.New("unexpected frame")

// trial is the encoding of a source, without what only positions need.
type trial struct {
	Name     string             `json:"name"`
	Kind     scripting.Kind     `json:"kind"`
	Language scripting.Language `json:"language"`
	File     string             `json:"file"`
	Body     string             `json:"body"`
	Path     string             `json:"path"`
	Objects  []scripting.Object `json:"objects"`
	Members  []scripting.Member `json:"members,omitempty"`
	Vars     json.RawMessage    `json:"vars,omitempty"`
}

func encodeTrial(src scripting.Source) ([]byte, error) {
	content, err := json.Marshal(trial{
		Name: src.Name, Kind: src.Kind, Language: src.Language, File: src.Text.File(), Body: src.Text.Body(),
		Path: src.Path, Objects: src.Objects, Members: src.Members, Vars: src.Vars,
	})
	if err != nil {
		return nil, fmt.Errorf("encode trial: %w", err)
	}
	return content, nil
}

// writeFrame writes one frame: its kind, its length in four bytes, and its content.
func writeFrame(w io.Writer, kind byte, content []byte) error {
	frame := make([]byte, 5, 5+len(content))
	frame[0] = kind
	binary.BigEndian.PutUint32(frame[1:], uint32(len(content)))
	_, err := w.Write(append(frame, content...))
	return err
}

// readFrame reads one frame of at most limit bytes.
func readFrame(r io.Reader, limit int) (kind byte, content []byte, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	length := binary.BigEndian.Uint32(head[1:])
	if int64(length) > int64(limit) {
		return 0, nil, fmt.Errorf("%w: it has %d bytes", errFrame, length)
	}
	content, err = readAll(r, int(length))
	return head[0], content, err
}

// readAll reads length bytes. It allocates as bytes arrive, so that a false length does not
// allocate memory.
func readAll(r io.Reader, length int) ([]byte, error) {
	content := make([]byte, min(length, maxBuffer))
	_, err := io.ReadFull(r, content)
	for err == nil && len(content) < length {
		read := len(content)
		content = append(content, make([]byte, min(length-read, read))...)
		_, err = io.ReadFull(r, content[read:])
	}
	return content, err
}

// stream connects this process with a child. Reads block in the system: with the network poller,
// more threads are needed, and waking a goroutine costs more than most calls.
type stream interface {
	io.ReadWriteCloser
	// wake makes a blocked read from an exited process return, with EOF or with garbage, for a
	// while. Other processes may hold the stream open: unconfined children of the process.
	wake()
}

// pipes is a stream of two files, one for each direction.
type pipes struct{ in, out *os.File }

// connect returns the stream to a process that has not started, and the ends of the process, which
// the caller closes after the start.
func connect(cmd *exec.Cmd) (ours stream, theirs []io.Closer, err error) {
	stdin, in, err := inboundPipe()
	if err != nil {
		return nil, nil, err
	}
	out, stdout, err := outboundPipe()
	if err != nil {
		return nil, nil, errors.Join(err, stdin.Close(), in.Close())
	}
	cmd.Stdin, cmd.Stdout = stdin, stdout
	return pipes{in, out}, []io.Closer{stdin, stdout}, nil
}

func (p pipes) Read(b []byte) (int, error)  { return p.out.Read(b) }
func (p pipes) Write(b []byte) (int, error) { return p.in.Write(b) }

func (p pipes) Close() error { return errors.Join(p.in.Close(), p.out.Close()) }

// pipeReader reads the frames of a pipe, at either end. The goroutine that has the lease reads and
// handles frames. Waking another goroutine would wake a thread, which costs more than most calls.
// Before the goroutine waits for something else, it passes the lease to a new goroutine.
type pipeReader struct {
	// fixed at creation
	in    *bufio.Reader
	limit int // maximum size of a frame, in bytes
	// handle handles a frame. It may pass or release the lease.
	handle func(lease uint64, kind byte, content []byte) error
	// failed is called once, when reading or handling has failed. After that no goroutine reads.
	failed func(error)

	mu    sync.Mutex
	lease uint64 // number of the last lease
	held  bool   // a goroutine has the lease
}

// acquire takes the lease if it is free.
func (r *pipeReader) acquire() (lease uint64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held {
		return 0, false
	}
	r.held = true
	r.lease++
	return r.lease, true
}

// read reads frames while its caller has the lease. After a failure the lease stays taken.
func (r *pipeReader) read(lease uint64) {
	for r.has(lease) {
		kind, content, err := readFrame(r.in, r.limit)
		if err == nil {
			err = r.handle(lease, kind, content)
		}
		if err != nil {
			r.failed(err)
			return
		}
	}
}

func (r *pipeReader) has(lease uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.held && r.lease == lease
}

// pass passes the lease to a new goroutine that reads, unless it was passed already.
func (r *pipeReader) pass(lease uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held && r.lease == lease {
		r.lease++
		go r.read(r.lease)
	}
}

// release returns the lease. The caller has it.
func (r *pipeReader) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = false
}
