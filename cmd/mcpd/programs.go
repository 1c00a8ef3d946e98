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
	if p.last != nil && !p.last.failed() {
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

// failed reports whether the attempt has.
func (a *attempt) failed() bool {
	select {
	case <-a.done:
		return a.err != nil
	default:
		return false
	}
}

// Workers tells how the processes are. See [scripting.Staffed].
func (p *programs) Workers() scripting.Workers {
	p.mu.Lock()
	a := p.last
	p.mu.Unlock()
	if a == nil {
		return scripting.Workers{}
	}
	select {
	case <-a.done:
	default:
		return scripting.Workers{}
	}
	if staffed, ok := a.executor.(scripting.Staffed); ok {
		return staffed.Workers()
	}
	return scripting.Workers{}
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
