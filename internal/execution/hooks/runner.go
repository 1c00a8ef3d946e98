package hooks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/internal/base/observe"
	"github.com/mcpd/mcpd/internal/base/workqueue"
	"github.com/mcpd/mcpd/internal/host"
	"github.com/mcpd/mcpd/scripting"
)

// Options configure a [Runner].
type Options struct {
	Executor scripting.Executor
	Brokers  host.Brokers
	// Metrics counts the host calls of runs; it may be nil.
	Metrics observe.Metrics
	Now     func() time.Time
}

// Runner runs hooks and counts failures. It is safe for concurrent use.
type Runner struct {
	options Options
	pending workqueue.Calls

	failures, waits atomic.Uint64
}

// New returns a runner without hooks.
func New(o Options) *Runner { return &Runner{options: o} }

// Hook returns a hook that the runner can run.
func (r *Runner) Hook(d Spec) *Hook {
	h := &Hook{Spec: d}
	h.queue = workqueue.New(maxParallel, maxWaiting, func(run Run) { r.run(h, run) })
	return h
}

// Add queues a run of a hook. If the queue is full, Add waits, and runs of the hook are cut short
// until there is capacity.
func (r *Runner) Add(h *Hook, run Run) {
	r.pending.Begin()
	if h.queue.Add(run.OrderKey, len(run.Event)+runOverhead, run) {
		r.waits.Add(1)
	}
}

// RecordFailure logs and counts a failed run. The context belongs to the run.
func (r *Runner) RecordFailure(ctx context.Context, hook string, run Run, err error) {
	r.failures.Add(1)
	r.options.Brokers.Logger.LogAttrs(ctx, slog.LevelWarn, "hook failed", slog.String("hook", hook),
		slog.String("call_id", run.CallID), slog.String("request_id", run.RequestID), slog.String("error", err.Error()))
}

// Failures counts failed runs.
func (r *Runner) Failures() uint64 { return r.failures.Load() }

// Waits counts how often a call had to wait for a congested hook.
func (r *Runner) Waits() uint64 { return r.waits.Load() }

// Queued counts the runs that have not ended.
func (r *Runner) Queued() int { return int(r.pending.Running()) }

// Flush waits until all runs added before have ended. If ctx ends first, it returns the error of
// ctx.
func (r *Runner) Flush(ctx context.Context) error {
	r.pending.StartDrain()
	return r.pending.Drain(ctx)
}

// run runs a hook once and recovers panics. Its span belongs to the span of the call, which may
// have ended.
func (r *Runner) run(h *Hook, run Run) {
	defer r.pending.End()
	ctx, span := run.Origin.Start(context.Background(), "hook "+h.Name)
	defer span.End()
	defer func() {
		if cause := recover(); cause != nil {
			span.Fail(string(call.ExecutionError))
			r.RecordFailure(ctx, h.Name, run, fmt.Errorf("panic: %v", cause))
		}
	}()
	bounded, cut := context.WithCancelCause(ctx)
	bounded, cancel := context.WithTimeout(bounded, h.Timeout)
	defer cancel()
	defer h.limitWhenCongested(bounded, cut).Stop()
	outcome, err := r.options.Executor.Run(bounded, scripting.Call{
		Program: h.Program, Input: run.Event, Limits: h.Limits, Seed: scripting.NewSeed(), Start: r.options.Now(), Journal: scripting.NewJournal(), NoShedding: true, Owner: run.Owner,
	}, r.host(bounded, h, run, span))
	if err == nil && outcome.Failure != nil {
		outcome.Failure.Message = run.Hide.Hide(outcome.Failure.Message, r.options.Brokers.Secrets.Matcher())
		err = outcome.Failure
	}
	if err != nil {
		span.Fail(string(codeOf(bounded)))
		r.logFailure(bounded, h, run, err)
	}
}

// host returns the host of one run. It has no Caller, for any call: otherwise the author
// of a hook could use the tokens and values of every principal, and modules would trust it as the
// principal. The event contains the caller, and the log the request.
func (r *Runner) host(ctx context.Context, h *Hook, run Run, span observe.Span) *host.RunHost {
	c := &host.RunHost{
		Brokers: r.options.Brokers, SecretKeys: run.SecretKeys, CallerKind: "hook", Name: h.Name, ID: run.CallID, RequestID: run.RequestID,
		Sensitive: &run.Hide, Span: span, Metrics: r.options.Metrics,
	}
	c.Grant(h.Grants)
	c.Deadline, _ = ctx.Deadline()
	return c
}

// codeOf returns the error code of a failed run for its span.
func codeOf(ctx context.Context) call.Code {
	if ctx.Err() != nil {
		return call.Timeout
	}
	return call.ExecutionError
}

// logFailure logs a failed run. Of the runs that are cut short in one congestion, only the first is
// logged.
func (r *Runner) logFailure(ctx context.Context, h *Hook, run Run, err error) {
	var cut congestionError
	if !errors.As(context.Cause(ctx), &cut) {
		r.RecordFailure(ctx, h.Name, run, err)
		return
	}
	if last := h.lastLogged.Load(); last < uint64(cut) && h.lastLogged.CompareAndSwap(last, uint64(cut)) {
		r.RecordFailure(ctx, h.Name, run, cut)
		return
	}
	r.failures.Add(1)
}

// congestionError is the cause of a run that was cut short: the number of the congestion of the
// queue.
type congestionError uint64

func (congestionError) Error() string {
	return fmt.Sprintf("the hook queue is full, and calls wait for it: runs are limited to %s until half of the queued %d MiB have run; "+
		"further runs that are cut short are only counted", congestedTimeout, maxWaiting>>20)
}

// limitWhenCongested cancels a run that has taken [congestedTimeout] if the queue is congested
// then, or later. The timer must be stopped when the run ends.
func (h *Hook) limitWhenCongested(ctx context.Context, cut context.CancelCauseFunc) *time.Timer {
	return time.AfterFunc(congestedTimeout, func() {
		begun, number := h.queue.Crowding()
		select {
		case <-begun:
			cut(congestionError(number))
		case <-ctx.Done():
		}
	})
}
