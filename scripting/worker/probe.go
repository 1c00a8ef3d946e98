package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"github.com/mcpd/mcpd/internal/sandbox"
)

// Report says what confines a process, and what the system lacks for it.
type Report = sandbox.Report

// Probe starts the program at path with argv, the name of the program first,
// asks it what confines it, and ends it. What it says holds for all processes
// of that program on this machine.
func Probe(ctx context.Context, path string, argv ...string) (Report, error) {
	var reaping sync.WaitGroup
	defer reaping.Wait()
	w, err := start(path, argv, &reaping)
	if err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	defer w.kill()
	defer context.AfterFunc(ctx, w.kill)()
	report, err := w.report()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("ask a worker what confines it: %w", err)
	}
	return report, nil
}

// report asks a process what confines it.
func (w *process) report() (report Report, err error) {
	if err := writeFrame(w.in, frameReport, nil); err != nil {
		return nil, err
	}
	kind, content, err := readFrame(w.out, maxName)
	switch {
	case err != nil:
		return nil, err
	case kind != frameReport:
		return nil, errFrame
	}
	if err := gated(content); err != nil {
		return nil, err
	}
	err = json.Unmarshal(content, &report)
	return report, err
}

// sendReport answers that question.
func sendReport(out io.Writer, report Report) error {
	content, err := json.Marshal(report)
	if err != nil {
		return err
	}
	return writeFrame(out, frameReport, content)
}
