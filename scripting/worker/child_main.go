package worker

import (
	"bufio"
	"context"
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

// Limits of a process. Reasonable scripts stay a hundred times below them.
const (
	maxStack  = 64 << 20
	maxMemory = 512 << 20
	// gcPercent is how much a small heap may grow before the garbage collector runs.
	gcPercent = 800
	// maxMemoryLimit limits the memory limit that a process accepts.
	maxMemoryLimit = 1 << 40
	// maxTrialCPU is the maximum processor time of one trial.
	maxTrialCPU = 2 * time.Second
	// drainTimeout is how long running calls may take after the parent has exited.
	drainTimeout = time.Second
)

// errTrialCPU ends a process with a trial that takes too long.
var errTrialCPU = errors.New("trial exceeded its processor time")

// Main serves one [Pool] or [Executor] on in and out, until in ends or a limit is exceeded. It
// confines the whole process permanently, to its open files and its limits. A process should do
// nothing else: goroutines may still run when Main returns. Main compiles TypeScript and imports
// with the transpiler, if there is one.
func Main(in io.Reader, out io.Writer, transpiler ...scripting.Transpiler) error {
	var t scripting.Transpiler
	if len(transpiler) > 0 {
		t = transpiler[0]
	}
	return serve(in, out, t, sandbox.Options{Memory: maxMemory})
}

// serve is Main with a given sandbox.
func serve(in io.Reader, out io.Writer, t scripting.Transpiler, box sandbox.Options) error {
	debug.SetMaxStack(maxStack)
	lines := bufio.NewReaderSize(in, 64<<10)
	program := osproc.FindProgram() // the sandbox denies access to it
	spare := time.AfterFunc(osproc.TrimInterval, program.Unmap)
	most, err := readBounds(lines)
	spare.Stop()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("worker: %w", err)
	}
	// The parent checks resident memory. Mapped memory is larger; its limit confines the process
	// where the parent cannot check.
	box.Memory, box.CPUSeconds = max(box.Memory, 2*most.memory), most.processor
	report, err := sandbox.Enter(box)
	if err != nil {
		return fmt.Errorf("confine the worker: %w", err)
	}
	debug.SetGCPercent(gcPercent)
	debug.SetMemoryLimit(int64(most.memory / 2))
	calls := newServer(out, t)
	defer calls.drain(drainTimeout)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go osproc.TrimIdle(ctx, calls.begun.Load)
	go osproc.UnmapIdle(ctx, calls.begun.Load, program.Unmap)
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

// processBounds are the limits of a process, which it receives first.
type processBounds struct {
	memory    uint64 // in bytes
	processor uint64 // seconds until the limit is raised; 0 for no limit
}

func (b processBounds) append(dst []byte) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, b.memory), b.processor)
}

// readBounds reads the limits of the process.
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

// withCPULimit runs do. It returns errTrialCPU when the process has spent limit on it.
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

// compileTrial compiles one source and reports that the process survived, whatever the compiler
// found: the pool compiles the source again and reports to the author. It sends [frameNoTranspiler]
// for a source that needs a transpiler if there is none.
func compileTrial(in io.Reader, out io.Writer, transpiler scripting.Transpiler, content []byte) error {
	var t trial
	if err := json.Unmarshal(content, &t); err != nil {
		return fmt.Errorf("decode trial: %w", err)
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
