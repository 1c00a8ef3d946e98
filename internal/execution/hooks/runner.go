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

type Options struct {
	Executor scripting.Executor
	Brokers  host.Brokers
	// Metrics count the host calls of runs; nil for nothing.
	Metrics observe.Metrics
	Now     func() time.Time
}

// Runner runs hooks and keeps account of them. It is safe for concurrent use.
type Runner struct {
	options Options
	pending workqueue.Calls

	failures, waits atomic.Uint64
}

func New(o Options) *Runner { return &Runner{options: o} }

func (r *Runner) Hook(d Spec) *Hook {
	h := &Hook{Spec: d}
	h.queue = workqueue.New(maxParallel, maxWaiting, func(run Run) { r.run(h, run) })
	return h
}

// Add queues a run of a hook. While the queue is full it waits, and the runs
// of the hook are cut short, so that there is room soon.
func (r *Runner) Add(h *Hook, run Run) {
	r.pending.Begin()
	if h.queue.Add(run.OrderKey, len(run.Event)+runOverhead, run) {
		r.waits.Add(1)
	}
}

// Failed logs and counts a run that failed. The context is that of the run.
func (r *Runner) RecordFailure(ctx context.Context, hook string, run Run, err error) {
	r.failures.Add(1)
	r.options.Brokers.Logger.LogAttrs(ctx, slog.LevelWarn, "a hook failed", slog.String("hook", hook),
		slog.String("call_id", run.CallID), slog.String("request_id", run.RequestID), slog.String("error", err.Error()))
}

func (r *Runner) Failures() uint64 { return r.failures.Load() }

// Waits counts the times that a call had to wait for a hook that lags behind.
func (r *Runner) Waits() uint64 { return r.waits.Load() }

func (r *Runner) Queued() int { return int(r.pending.Running()) }

// Flush waits until all that was added before has run, or until ctx is done;
// then it returns the error of ctx.
func (r *Runner) Flush(ctx context.Context) error {
	r.pending.StartDrain()
	return r.pending.Drain(ctx)
}

// run runs a hook once; what panics below it costs that run alone. It is a part of the
// span of its call, which may be over.
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

// host is the host of one run. There is no Caller: a hook runs for nobody, whoever made the
// call. With one, whoever writes a hook would have the tokens and the values of every
// principal whose calls it is told of, and modules would take it for them. The event says
// who called, and the request is named in the log.
func (r *Runner) host(ctx context.Context, h *Hook, run Run, span observe.Span) *host.RunHost {
	c := &host.RunHost{
		Brokers: r.options.Brokers, SecretKeys: run.SecretKeys, CallerKind: "hook", Name: h.Name, ID: run.CallID, RequestID: run.RequestID,
		Sensitive: &run.Hide, Span: span, Metrics: r.options.Metrics,
	}
	c.Grant(h.Grants)
	c.Deadline, _ = ctx.Deadline()
	return c
}

// codeOf returns the code of a run that failed, in its span: that of a call which ends so.
func codeOf(ctx context.Context) call.Code {
	if ctx.Err() != nil {
		return call.Timeout
	}
	return call.ExecutionError
}

// ended tells of a run that failed. Of those that were cut short in one
// crowding, only the first is logged.
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

// crowded is why a run was cut short: the number of the crowding of the
// hook's queue that it was in.
type congestionError uint64

func (congestionError) Error() string {
	return fmt.Sprintf("the hook lags so far behind its calls that they wait for it: its runs are cut to %s until half of the %d MiB that wait have run; "+
		"those cut after this one are counted only", congestedTimeout, maxWaiting>>20)
}

// hurry cuts the run of ctx short when it has taken [hurried] and the queue is
// crowded, or gets so before ctx is done. The timer is for a run that ends soon.
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
