package main

import (
	"context"
	"sync"

	"github.com/mcpd/mcpd/scripting"
	"github.com/mcpd/mcpd/scripting/worker"
)

// programs runs the programs of agents in processes of their own, for a server whose bodies
// run in its own: it trusts its files, and no agent. Nothing of that is begun before the
// first program comes.
type programs struct {
	// fixed at creation
	env     env
	options worker.Options

	// guarded by mu
	mu    sync.Mutex
	begun scripting.Executor // or nil
}

// Run runs a program. See [scripting.Executor].
func (p *programs) Run(ctx context.Context, c scripting.Call, h scripting.Host) (scripting.Outcome, error) {
	x, err := p.executor()
	if err != nil {
		return scripting.Outcome{}, err
	}
	return x.Run(ctx, c, h)
}

// executor returns what has the processes. Where there can be none, each program learns so
// anew.
func (p *programs) executor() (scripting.Executor, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.begun != nil {
		return p.begun, nil
	}
	x, _, err := apart(p.env, p.options)
	if err != nil {
		return nil, err
	}
	p.begun = x
	return x, nil
}

// Close ends the processes. See [scripting.Executor].
func (p *programs) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.begun == nil {
		return nil
	}
	return p.begun.Close()
}
