package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/observe"
	"github.com/mcpd/mcpd/internal/ops/audit"
	"github.com/mcpd/mcpd/internal/ops/control"
	"github.com/mcpd/mcpd/internal/ops/tooltest"
	"github.com/mcpd/mcpd/scripting"
)

// try starts a call from the console.
func (o *runningServer) try(r control.Request) (any, error) {
	return withParams(r, func(of control.TryCall) (any, error) {
		kind, err := kindOf(of.ItemName)
		if err != nil {
			return nil, err
		}
		if kind == call.Templates {
			return nil, errors.New("a template cannot be called; name a URI that it matches, with the kind resource")
		}
		request := call.Request{Kind: kind, Name: of.Address, Can: call.Capabilities{Form: true, URL: true, Sample: true, Roots: true}}
		if request.Arguments, err = tryArguments(kind, of.Arguments); err != nil {
			return nil, err
		}
		if of.Record && !isRecordable(o.server, of.ItemName) {
			return nil, errors.New("only calls of tools that a file defines can be recorded")
		}
		// The user of the connection is known when the stream starts, and these errors do not depend on it.
		if _, err := callerAs(identity.Anonymous(), of.As); err != nil {
			return nil, err
		}
		return control.Stream{Result: struct{}{}, Serve: func(ctx context.Context, conn *control.Conn) {
			c := consoleCall{server: o.server, conn: conn, operator: operatorOf(ctx, o.attached(conn.UID))}
			if request.Caller, err = callerAs(c.operator, of.As); err == nil && of.Principal != nil {
				err = c.recordImpersonation(&request.Caller)
			}
			if err != nil {
				c.send(control.TryEvent{Error: err.Error()})
				return
			}
			if of.Record {
				c.recording, c.plain, c.names = new(tooltest.Recording), plainAs(request.Caller, of.As), &o.recorded
			}
			c.run(ctx, request)
		}}, nil
	})
}

// complete calls a completion as the operator.
func (o *runningServer) complete(ctx context.Context, of control.CompleteQuery) (any, error) {
	kind, err := kindOf(of.ItemName)
	if err != nil {
		return nil, err
	}
	request := call.Request{Kind: kind, Name: of.Address, Argument: of.Argument}
	if kind != call.Prompts && kind != call.Templates || of.Argument == "" {
		return nil, errors.New("only arguments of prompts and variables of templates have completions")
	}
	if of.Arguments == nil {
		of.Arguments = map[string]string{}
	}
	if request.Arguments, err = json.Marshal(map[string]any{"value": of.Value, "params": of.Arguments}); err == nil {
		err = engine.CheckArguments(request.Arguments)
	}
	if err != nil {
		return nil, err
	}
	if request.Caller, err = callerAs(operatorOf(ctx, o.operator()), control.As{}); err != nil {
		return nil, err
	}
	result := o.server.Execute(ctx, request)
	if result.Err != nil {
		return nil, fmt.Errorf("%s: %s", result.Err.Code, result.Err.Message)
	}
	var reply struct {
		Completion struct {
			Values  []string
			HasMore bool
		}
	}
	if err := json.Unmarshal(result.Reply, &reply); err != nil {
		return nil, errors.New("the completion has no values")
	}
	return control.CompleteResult{Values: append([]string{}, reply.Completion.Values...), More: reply.Completion.HasMore}, nil
}

// tryArguments checks the arguments of a call. null stands for none.
func tryArguments(kind call.Kind, arguments json.RawMessage) (json.RawMessage, error) {
	switch {
	case arguments == nil, bytes.Equal(arguments, []byte("null")):
		return nil, nil
	case kind == call.Resources, kind == call.Templates:
		return nil, errors.New("a resource takes no arguments: put the variables of a template into the URI")
	}
	return arguments, engine.CheckArguments(arguments)
}

// consoleCall is a call from the console. As a [call.Emitter] and an [observe.StepReceiver] it sends
// the events of the call to the client.
type consoleCall struct {
	server   *engine.Server
	conn     *control.Conn
	operator identity.Principal
	cancel   context.CancelCauseFunc // nil before the call starts
	// recording records the call; nil if the operator wants no test of it. plain is the caller of the
	// test, and names has its name.
	recording *tooltest.Recording
	plain     identity.Caller
	names     *testNames
}

// recordedTry is a call from the console that is recorded.
type recordedTry struct {
	consoleCall
	*tooltest.Recording
}

// isRecordable reports whether a file defines a tool.
func isRecordable(s *engine.Server, of control.ItemName) bool {
	e := s.Inside().Catalog().Entry(call.Tools, of.Address)
	return of.Kind == "tool" && e != nil && e.Upstream == "" && e.Where.File != ""
}

// plainAs returns the caller of a test: what the operator chose, without the name of the operator and
// without the console.
func plainAs(c identity.Caller, as control.As) identity.Caller {
	plain := plainCaller()
	if as.Principal != nil {
		plain.Principal = c.Principal
	}
	if as.Principal != nil || as.Agent != nil {
		plain.Agent = c.Agent
	}
	return plain
}

// recordImpersonation records that the operator makes a call as another principal. The user of the
// socket owns the files that decide who may call what, so that user may be any principal, but not
// without a record. A caller of the listener needs impersonate: see [pageBackend.authorize]. The request
// id connects the event with the records of the call.
func (c consoleCall) recordImpersonation(caller *identity.Caller) error {
	p := &caller.Principal
	caller.Agent.RequestID = cmp.Or(caller.Agent.RequestID, rand.Text())
	if err := recordOperator(c.server, c.operator, "console.impersonated", map[string]string{
		"principal": p.ID, "kind": string(p.Kind), "issuer": p.Issuer, "request_id": caller.Agent.RequestID,
	}); err != nil {
		return errors.New("the server cannot write its audit log, so it makes no calls for other principals")
	}
	return nil
}

// recordOperator writes an event with the operator to the audit log, if there is one, and returns its
// error.
func recordOperator(s *engine.Server, operator identity.Principal, name string, attributes map[string]string) error {
	if log := s.Inside().AuditLog(); log != nil {
		attributes["operator"], attributes["operator_kind"], attributes["operator_issuer"] = operator.ID, string(operator.Kind), operator.Issuer
		return log.Event(audit.Event{Name: name, Attributes: attributes})
	}
	return nil
}

// run makes the call and asks the client its questions, until it has a result or the client closes
// its end. It returns when nothing uses the connection.
func (c consoleCall) run(ctx context.Context, request call.Request) {
	ctx, c.cancel = context.WithCancelCause(ctx)
	answers, asking, closed := make(chan control.TryAnswer), new(atomic.Bool), make(chan struct{})
	go func() {
		defer close(closed)
		c.cancel(c.receive(ctx, asking, answers))
	}()
	defer func() {
		c.cancel(nil)
		_ = c.conn.SetReadDeadline(time.Now())
		<-closed
	}()
	request.Emit, request.Debug, request.Cancelled = c, true, cancelledBy
	if c.recording != nil {
		request.Emit = recordedTry{c, c.recording}
	}
	began := time.Now()
	for {
		result := c.server.Execute(ctx, request)
		var invalid *answerError
		if errors.As(context.Cause(ctx), &invalid) {
			c.send(control.TryEvent{Error: invalid.Error()})
			return
		}
		if result.Ask == nil {
			row := tryResultOf(result, time.Since(began))
			c.addTest(ctx, row, request, result)
			c.send(control.TryEvent{Result: row})
			return
		}
		asking.Store(true)
		c.send(control.TryEvent{Ask: questionsOf(result.Ask)})
		a, err := answerWithin(ctx, answers, result.Ask.Wait)
		if err != nil {
			c.send(control.TryEvent{Error: err.Error()})
			return
		}
		if c.recording != nil {
			c.recording.Answers(result.Ask.Requests, a.Responses)
		}
		request.Resume = &call.Resume{State: result.Ask.State, Responses: a.Responses}
	}
}

// recordPatience is the time to find a test of a recorded call, which runs the call several times.
const recordPatience = time.Minute

// addTest adds the test of a recorded call to its result.
func (c consoleCall) addTest(ctx context.Context, row *control.TryResult, request call.Request, result call.Result) {
	if c.recording == nil {
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, recordPatience, fmt.Errorf("its test takes longer than %s", recordPatience))
	defer cancel()
	recorded := recordedCall{c.recording, request, result, c.plain, c.names}
	test, err := recorded.test(ctx, c.server)
	if err != nil {
		row.TestProblem = err.Error()
		return
	}
	row.Test, row.TestNotes = test.block, test.notes
}

// answerWithin returns the next answer of the client, or an error if there is none in time.
func answerWithin(ctx context.Context, answers <-chan control.TryAnswer, wait time.Duration) (control.TryAnswer, error) {
	timeout := time.NewTimer(wait)
	defer timeout.Stop()
	select {
	case <-ctx.Done():
		return control.TryAnswer{}, context.Cause(ctx)
	case <-timeout.C:
		return control.TryAnswer{}, fmt.Errorf("no answer within %s", wait)
	case a := <-answers:
		return a, nil
	}
}

// errClosedByClient is the cause of the cancellation when the client has closed its end.
var errClosedByClient = errors.New("the console closed the connection")

// cancelledBy returns who cancelled a call from the console.
func cancelledBy(cause error) call.Cancellation {
	if errors.Is(cause, errClosedByClient) {
		return call.Cancellation{By: call.CancelledByConnection}
	}
	return call.Cancellation{By: call.CancelledByServer}
}

// answerError is the error of a line of the client that answers nothing.
type answerError struct{ error }

// receive passes on the answers of the client until its input ends, and returns why it ended.
func (c consoleCall) receive(ctx context.Context, asking *atomic.Bool, answers chan<- control.TryAnswer) error {
	for {
		var a control.TryAnswer
		switch err := c.conn.Receive(&a); {
		case errors.Is(err, control.ErrLine):
			return &answerError{err}
		case errors.Is(err, io.EOF):
			return errClosedByClient
		case err != nil:
			return fmt.Errorf("%w: %w", errClosedByClient, err)
		case !asking.CompareAndSwap(true, false): // an answer to a question that was not asked approves nothing
			return &answerError{errors.New("an answer came before a question")}
		}
		select {
		case answers <- a:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// send sends an event to the client. If that fails, it cancels the call.
func (c consoleCall) send(event control.TryEvent) {
	event.At = time.Now().UTC()
	if err := c.conn.Send(event); err != nil && c.cancel != nil {
		c.cancel(fmt.Errorf("%w: %w", errClosedByClient, err))
	}
}

// Progress sends the progress of the call.
func (c consoleCall) Progress(done float64, total *float64, message string) {
	c.send(control.TryEvent{Progress: &control.TryProgress{Done: done, Total: total, Message: message}})
}

// Log sends a log record of the script.
func (c consoleCall) Log(level, message string, fields json.RawMessage) {
	c.send(control.TryEvent{Log: &control.TryLog{Level: level, Message: message, Fields: fields}})
}

// Step sends a step of the call that has ended.
func (c consoleCall) Step(s observe.Step) {
	c.send(control.TryEvent{Step: &control.TryStep{Name: s.Name, Began: s.Began.UTC(), DurationMS: milliseconds(s.Took), Failed: s.Failed, Depth: s.Depth}})
}

// CloseStream does nothing: the client cannot reconnect.
func (c consoleCall) CloseStream() {}

func questionsOf(ask *call.Ask) []control.TryQuestion {
	questions := make([]control.TryQuestion, len(ask.Requests))
	for i, r := range ask.Requests {
		questions[i] = control.TryQuestion(r)
	}
	return questions
}

// tryResultOf returns the outcome of a call. The operator gets the place where a script failed.
func tryResultOf(r call.Result, took time.Duration) *control.TryResult {
	row := &control.TryResult{CallID: r.CallID, Revision: r.Revision, DurationMS: milliseconds(took)}
	switch err := r.Err; {
	case err != nil:
		row.Code, row.Message, row.Details = string(err.Code), err.Message, err.DetailsJSON()
		row.Trace = scripting.FormatStack(scripting.StackOf(err), "")
	case r.Reply != nil:
		row.Reply = r.Reply
	default:
		row.Value = r.Value
		if r.Rich {
			row.Content = r.Content
		}
	}
	return row
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
