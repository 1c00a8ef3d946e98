package worker

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"sync"
	"time"

	"github.com/mcpd/mcpd/scripting"
)

// errWire says that the content of a frame is malformed. It repeats none of it.
var errWire = errors.New("the content of a frame is malformed")

// wire writes frames, from any goroutine.
type wire struct {
	mu    sync.Mutex
	out   io.Writer
	frame []byte // the room for one
}

// maxRoom is how large a frame may be whose room is kept for the next.
const maxRoom = 64 << 10

// send sends one frame, of which fill appends the content.
func (w *wire) send(kind byte, fill func(dst []byte) []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	frame := fill(append(w.frame[:0], kind, 0, 0, 0, 0))
	if cap(frame) <= maxRoom {
		w.frame = frame
	}
	binary.BigEndian.PutUint32(frame[1:], uint32(len(frame)-5))
	_, err := w.out.Write(frame)
	return err
}

// writer and reader have numbers as varints, and texts with their length in front.
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

// text returns a text, which is a part of what is read.
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

// fixed returns the hash of a program, or a seed.
func (r *reader) fixed() (h [32]byte) {
	if len(r.rest) < len(h) {
		r.bad, r.rest = true, nil
		return h
	}
	copy(h[:], r.rest)
	r.rest = r.rest[len(h):]
	return h
}

// callFrame is a call as it crosses to a process.
type callFrame struct {
	id      uint64
	program [32]byte
	left    time.Duration // of its time; 0 stands for no bound
	call    scripting.Call
	journal []byte // nil for one that begins
}

func (f *callFrame) append(dst []byte) []byte {
	w := writer{dst}
	w.number(f.id)
	w.out = append(w.out, f.program[:]...)
	w.number(uint64(f.left))
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
	f.id, f.program = r.number(), r.fixed()
	f.left = time.Duration(r.number())
	f.call.Seed = r.fixed()
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

// hostFrame is a host call or a message on its way to the host.
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

// outcomeFrame is how a run ended: with an outcome, or as the executor failed.
type outcomeFrame struct {
	tail    []byte
	fault   string // why there is no outcome; empty when there is one
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
