package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Report lists the facilities that confine a process, and those that the system lacks.
type Report []Facility

// Facility is a means to confine a process.
type Facility struct {
	// Name is the usual name, such as seccomp.
	Name string `json:"name"`
	// On reports whether the facility confines the process.
	On bool `json:"on"`
	// Detail is the version of a facility that is on, or the reason why it is off.
	Detail string `json:"detail,omitempty"`
}

// Complete reports whether nothing is missing.
func (r Report) Complete() bool {
	for _, f := range r {
		if !f.On {
			return false
		}
	}
	return len(r) > 0
}

// String returns one line, such as "rlimits, seccomp; without landlock: the
// kernel has none".
func (r Report) String() string {
	parts := []string{r.Confining()}
	for _, f := range r {
		if !f.On {
			parts = append(parts, "without "+f.missing())
		}
	}
	return strings.Join(parts, "; ")
}

// Confining names the facilities that confine the process, such as "rlimits,
// landlock 6"; "nothing" if none does.
func (r Report) Confining() string {
	var on []string
	for _, f := range r {
		if f.On {
			on = append(on, strings.TrimSpace(f.Name+" "+f.Detail))
		}
	}
	if len(on) == 0 {
		return "nothing"
	}
	return strings.Join(on, ", ")
}

// Missing names the facilities that do not confine the process, each with the reason,
// such as "landlock: the kernel has none".
func (r Report) Missing() string {
	var off []string
	for _, f := range r {
		if !f.On {
			off = append(off, f.missing())
		}
	}
	return strings.Join(off, "; ")
}

func (f Facility) missing() string { return f.Name + ": " + f.Detail }

// Report returns what confines a worker process; it holds for all of them. The error means that the
// process cannot work: every call would fail as if it had crashed its process. Report may be called
// once, before the first Run; later calls fail.
func (e *Executor) Report(ctx context.Context) (Report, error) {
	e.mu.Lock()
	p := e.first // may have exited, and then is not the spare
	if p == nil || e.closed {
		e.mu.Unlock()
		return nil, errors.New("get sandbox report: the first process has a call, has reported, or has exited")
	}
	e.spare = nil
	p.configure(e.options.Memory, e.cpuAllowance)
	e.mu.Unlock()
	defer context.AfterFunc(ctx, func() { p.kill(exitClosed) })()
	report, err := p.report()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		p.kill(exitClosed)
		return nil, fmt.Errorf("get sandbox report: %w", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.first = nil; !p.isKilled() {
		e.spare = p
	}
	return report, nil
}

// report gets the report of a process without calls.
func (p *process) report() (report Report, err error) {
	if _, ok := p.reader.acquire(); !ok {
		return nil, p.exitErr()
	}
	defer p.reader.release()
	if err := writeFrame(p.stream, frameReport, nil); err != nil {
		return nil, err
	}
	kind, content, err := readFrame(p.reader.in, maxName)
	switch {
	case err != nil:
		return nil, err
	case kind != frameReport:
		return nil, errFrame
	}
	if err := checkJSON(content); err != nil {
		return nil, err
	}
	err = json.Unmarshal(content, &report)
	return report, err
}
