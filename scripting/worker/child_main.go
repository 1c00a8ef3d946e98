package worker

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime/debug"
	"slices"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/process/osproc"
	"github.com/mcpd/mcpd/internal/process/sandbox"
	"github.com/mcpd/mcpd/scripting"
)

// The bounds of a process. What is reasonable stays a hundred times below them.
const (
	maxStack  = 64 << 20
	maxMemory = 512 << 20
	// gcPercent is how much a small heap may grow before the collector works at all.
	gcPercent = 800
	// mostMemory bounds what a process may be told that it may have.
	maxMemoryLimit = 1 << 40
	// maxProcessor is how much processor time one trial may take.
	maxTrialCPU = 2 * time.Second
	// farewell is how long what is under way may take when nobody is there any more.
	drainTimeout = time.Second
)

// errProcessor ends a process whose trial takes too long.
var errTrialCPU = errors.New("a trial takes more than its processor time")

// Main serves one [Pool] or [Executor] on in and out, until in ends or
// a limit is met. It confines the whole process for good, to what is open and
// to its bounds, and is meant to be all that the process does: when it returns,
// what it began may still run. It compiles with the transpiler, if there is one, what a
// [scripting.Source] needs one for.
func Main(in io.Reader, out io.Writer, transpiler ...scripting.Transpiler) error {
	var t scripting.Transpiler
	if len(transpiler) > 0 {
		t = transpiler[0]
	}
	return serve(in, out, t, sandbox.Options{Memory: maxMemory})
}

// serve is Main in a sandbox of one's choice.
func serve(in io.Reader, out io.Writer, t scripting.Transpiler, box sandbox.Options) error {
	debug.SetMaxStack(maxStack)
	lines := bufio.NewReaderSize(in, 64<<10)
	most, err := readBounds(lines)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	// The parent looks at what is resident. What is mapped is more, and bounds
	// a process where it cannot look.
	box.Memory, box.Processor = max(box.Memory, 2*most.memory), most.processor
	report, err := sandbox.Enter(box)
	if err != nil {
		return fmt.Errorf("confine the worker: %w", err)
	}
	debug.SetGCPercent(gcPercent)
	debug.SetMemoryLimit(int64(most.memory / 2))
	calls := newServer(out, t)
	defer calls.drain(drainTimeout)
	calls.reader.pipeReader = pipeReader{in: lines, limit: maxFrame, handle: func(turn uint64, kind byte, content []byte) error {
		switch kind {
		case frameReport:
			content, err := json.Marshal(report)
			if err != nil {
				return err
			}
			return writeFrame(out, frameReport, content)
		case frameTrial:
			return withCPULimit(maxTrialCPU, func() error { return compileTrial(lines, out, t, content) })
		}
		return calls.dispatch(turn, kind, content)
	}}
	if err := calls.reader.readAll(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("worker: %w", err)
	}
	return nil
}

// processBounds is what a process may have, which is what it is told first.
type processBounds struct {
	memory    uint64 // in bytes
	processor uint64 // seconds that it may spend before it is given more; 0 for no bound
}

func (b processBounds) append(dst []byte) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, b.memory), b.processor)
}

// readBounds reads what the process may have.
func readBounds(in io.Reader) (processBounds, error) {
	kind, content, err := readFrame(in, maxName)
	if err != nil {
		return processBounds{}, err
	}
	r := reader{rest: content}
	b := processBounds{memory: r.number(), processor: r.number()}
	if kind != frameBounds || r.bad || len(r.rest) > 0 || b.memory > maxMemoryLimit {
		return processBounds{}, errFrame
	}
	return b, nil
}

// within does something, and no longer waits for it when the process has spent
// the limit on it.
func withCPULimit(limit time.Duration, do func() error) error {
	limit += osproc.CPUTime()
	done := make(chan error, 1)
	go func() { done <- do() }()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
			if osproc.CPUTime() > limit {
				return errTrialCPU
			}
		}
	}
}

// try compiles one source and says that it survived, whatever the compiler
// found: the pool's side looks again, and tells its author. It reports [frameUntried] for a
// source that it cannot compile without a transpiler.
func compileTrial(in io.Reader, out io.Writer, transpiler scripting.Transpiler, content []byte) error {
	var t trial
	if err := json.Unmarshal(content, &t); err != nil {
		return fmt.Errorf("decode a trial: %w", err)
	}
	_, problems := scripting.Compile(scripting.Source{
		Name: t.Name, Kind: t.Kind, Language: t.Language, Text: diag.WholeFile(t.File, t.Body), Path: t.Path, Objects: t.Objects, Members: t.Members, Vars: t.Vars,
		Import:     func(name string) ([]byte, error) { return readImport(in, out, name) },
		Transpiler: transpiler,
	})
	if slices.ContainsFunc(problems, func(d diag.Diagnostic) bool { return d.Code == scripting.MissingExtension }) {
		return writeFrame(out, frameNoTranspiler, nil)
	}
	return writeFrame(out, frameTrialDone, nil)
}

func readImport(in io.Reader, out io.Writer, name string) ([]byte, error) {
	if err := writeFrame(out, frameImport, []byte(name)); err != nil {
		return nil, err
	}
	kind, content, err := readFrame(in, maxFrame)
	switch {
	case err != nil:
		return nil, err
	case kind == frameFile:
		return content, nil
	default:
		return nil, fs.ErrNotExist
	}
}
