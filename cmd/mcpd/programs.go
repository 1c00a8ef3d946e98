package main

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"github.com/mcpd/mcpd/scripting"
	"github.com/mcpd/mcpd/scripting/worker"
)

// programs runs the programs of agents in processes of their own, for a server whose bodies
// run in its own: it trusts its files, and no agent. Nothing of that is begun before the
// first program comes.
type programs struct {
	// fixed at creation
	env    env
	logger *slog.Logger

	// guarded by mu
	mu     sync.Mutex
	last   *attempt // or nil
	closed bool
}

// newPrograms returns what runs programs beside an executor of bodies of this kind; nil where
// that one does.
func newPrograms(e env, kind string, logger *slog.Logger) scripting.Executor {
	if kind != executorInline {
		return nil
	}
	return &programs{env: e, logger: logger}
}

// attempt is one to have processes for programs. What it came to is known once done is closed.
type attempt struct {
	done     chan struct{}
	executor scripting.Executor
	err      error
}

// errProgramsClosed is of a program that comes behind the end of the server.
var errProgramsClosed = errors.New("no program is run any more")

// Run runs a program. See [scripting.Executor].
func (p *programs) Run(ctx context.Context, c scripting.Call, h scripting.Host) (scripting.Outcome, error) {
	a, err := p.begin()
	if err != nil {
		return scripting.Outcome{}, err
	}
	select {
	case <-a.done:
	case <-ctx.Done():
		return scripting.Outcome{}, ctx.Err()
	}
	if a.err != nil {
		return scripting.Outcome{}, a.err
	}
	return a.executor.Run(ctx, c, h)
}

// begin returns the attempt that all programs wait for; a new one where the last has failed.
func (p *programs) begin() (*attempt, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errProgramsClosed
	}
	if p.last != nil && (!p.last.over() || p.last.err == nil) {
		return p.last, nil
	}
	a := &attempt{done: make(chan struct{})}
	p.last = a
	go func() {
		defer close(a.done)
		var report worker.Report
		if a.executor, report, a.err = apart(p.env, worker.Options{Logger: p.logger}); a.err == nil {
			tellConfinement("programs of agents", report, p.logger)
		}
	}()
	return a, nil
}

// over reports whether it is known what the attempt came to.
func (a *attempt) over() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// Workers tells how the processes are. See [scripting.Staffed].
func (p *programs) Workers() scripting.Workers {
	p.mu.Lock()
	a := p.last
	p.mu.Unlock()
	if a == nil || !a.over() {
		return scripting.Workers{}
	}
	staffed, ok := a.executor.(scripting.Staffed)
	if !ok {
		return scripting.Workers{}
	}
	return staffed.Workers()
}

// Close ends the processes. See [scripting.Executor].
func (p *programs) Close() error {
	p.mu.Lock()
	p.closed = true
	a := p.last
	p.mu.Unlock()
	if a == nil {
		return nil
	}
	if <-a.done; a.err != nil {
		return nil // it was told to the programs
	}
	return a.executor.Close()
}
