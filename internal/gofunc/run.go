// Package gofunc runs the Go function behind a tool so that nothing it does
// costs more than its own call: its panic is recovered, and one that ignores its
// deadline is abandoned.
package gofunc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mcpd/mcpd/scripting"
)

// Run runs fn in a goroutine of its own until it returns or ctx is done, and
// tells what came of it in the terms of a script. An error of the second kind
// is that of ctx: the function then runs on, and nobody waits for it.
func Run(ctx context.Context, fn func(context.Context) (any, error)) (scripting.Outcome, error) {
	ended := make(chan scripting.Outcome, 1)
	go func() { ended <- call(ctx, fn) }()
	select {
	case outcome := <-ended:
		return outcome, nil
	case <-ctx.Done():
		return scripting.Outcome{}, ctx.Err()
	}
}

func call(ctx context.Context, fn func(context.Context) (any, error)) (outcome scripting.Outcome) {
	defer func() {
		if cause := recover(); cause != nil {
			outcome = failed(scripting.HostPanic, fmt.Errorf("panic: %v", cause))
		}
	}()
	out, err := fn(ctx)
	switch {
	case err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return failed(scripting.Timeout, err)
	case err != nil && ctx.Err() != nil:
		return failed(scripting.Canceled, err)
	case err != nil:
		return failed(scripting.Thrown, err)
	}
	encoded, err := json.Marshal(out)
	if err != nil {
		return failed(scripting.HostPanic, fmt.Errorf("encode result: %w", err))
	}
	return scripting.Outcome{Result: &scripting.Result{Kind: scripting.Value, JSON: encoded}}
}

func failed(kind scripting.FailureKind, err error) scripting.Outcome {
	return scripting.Outcome{Failure: &scripting.Failure{Kind: kind, Message: err.Error()}}
}
