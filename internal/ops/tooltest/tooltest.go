// Package tooltest compares the outcome of a call with the expectations of a test
// block. It runs nothing itself.
package tooltest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/execution/suspend"
	"github.com/mcpd/mcpd/internal/host"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// Outcome is the outcome of a call.
type Outcome struct {
	// Code is one of the five error codes, or empty on success.
	Code, Message string
	// DeniedBy is the name of the policy that denied the call.
	DeniedBy string
	// Cause is what the author of the tool may know in addition to the message: the
	// stack of an exception, or the failure of a policy. It may be nil.
	Cause error
	// Value and Content are the result of a tool, and Reply is the result of any other
	// item.
	Value, Content, Reply json.RawMessage
}

// OutcomeOf returns the outcome of a call with a result.
func OutcomeOf(result call.Result) Outcome {
	if err := result.Err; err != nil {
		return Outcome{Code: string(err.Code), Message: err.Message, DeniedBy: err.DeniedBy, Cause: err.Cause}
	}
	return Outcome{Value: result.Value, Content: result.Content, Reply: result.Reply}
}

// Judge returns the unmet expectations of a test, in words for its author. The test
// passed if there are none.
func Judge(want *definition.Expect, got Outcome, mocks *host.Mocks) []string {
	j := &judge{want: want, got: got}
	if got.Code != "" {
		j.failure()
	} else {
		j.success()
	}
	if calls := mocks.Calls(); want.Calls != nil && !slices.Equal(want.Calls, calls) {
		j.fail("the host calls were [%s], want [%s]", strings.Join(calls, ", "), strings.Join(want.Calls, ", "))
	}
	for _, missing := range mocks.Missing() {
		j.fail("a host call had no mock; add\n%s", missing)
	}
	return j.failures
}

// Notes returns probable mistakes in a test: mocks that were not used.
func Notes(mocks *host.Mocks) []string {
	var notes []string
	for _, m := range mocks.Unused() {
		notes = append(notes, fmt.Sprintf("the mock %q %q was not used", m.Object, m.Request))
	}
	return notes
}

type judge struct {
	want     *definition.Expect
	got      Outcome
	failures []string
}

func (j *judge) fail(format string, args ...any) {
	j.failures = append(j.failures, fmt.Sprintf(format, args...))
}

func (j *judge) failure() {
	if j.want.Error == "" && j.want.DeniedBy == "" {
		j.fail("the call failed with %s: %s%s", j.got.Code, j.got.Message, j.got.why())
		return
	}
	if j.want.Error != "" && j.want.Error != j.got.Code {
		j.fail("the error is %s (%s), want %s", j.got.Code, j.got.Message, j.want.Error)
	}
	if j.want.DeniedBy != "" && j.want.DeniedBy != j.got.DeniedBy {
		j.fail("the call was denied by policy %q, want %q", j.got.DeniedBy, j.want.DeniedBy)
	}
	if j.want.MessageMatches == "" {
		return
	}
	pattern, err := regexp.Compile(j.want.MessageMatches)
	switch {
	case err != nil:
		j.fail("message_matches is not a valid pattern: %v", err)
	case !pattern.MatchString(j.got.Message):
		j.fail("the message %q does not match %q", j.got.Message, j.want.MessageMatches)
	}
}

// why returns what the message lacks: the policy, the cause, or only the stack if the
// cause repeats the message.
func (o Outcome) why() string {
	why := ""
	if o.DeniedBy != "" {
		why = fmt.Sprintf("\n(policy %q)", o.DeniedBy)
	}
	if o.Cause == nil {
		return why
	}
	cause := o.Cause.Error()
	if at := strings.Index(cause, "\n    at "); at >= 0 {
		return why + strings.ReplaceAll(cause[at:], "\n    ", "\n")
	}
	if cause == o.Message {
		return why
	}
	return why + "\n" + cause
}

func (j *judge) success() {
	if j.want.Error != "" || j.want.DeniedBy != "" {
		j.fail("the call succeeded with %s%s, want an error", j.got.Value, j.got.Reply)
		return
	}
	if j.got.Reply != nil {
		j.reply()
		return
	}
	if j.want.Output != nil && !sameJSON(j.want.Output, j.got.Value) {
		j.fail("the output is\n%s\nwant\n%s", indent(j.got.Value), indent(j.want.Output))
	}
	if text := textOf(j.got.Content); j.want.Text != nil && *j.want.Text != text {
		j.fail("the text is %q, want %q", text, *j.want.Text)
	}
}

// textOf joins the text blocks of a result.
func textOf(content json.RawMessage) string {
	var blocks []struct{ Type, Text string }
	if json.Unmarshal(content, &blocks) != nil {
		return ""
	}
	var texts []string
	for _, block := range blocks {
		if block.Type == "text" {
			texts = append(texts, block.Text)
		}
	}
	return strings.Join(texts, "\n")
}

func sameJSON(a, b json.RawMessage) bool {
	var left, right any
	return json.Unmarshal(a, &left) == nil && json.Unmarshal(b, &right) == nil && reflect.DeepEqual(left, right)
}

func indent(value json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, value, "  ", "  ") != nil {
		return string(value)
	}
	return "  " + b.String()
}

// Caller returns the caller of a test, in its own session. It is anonymous by default.
func Caller(test *definition.Test) identity.Caller {
	caller := identity.Caller{
		Principal: identity.Anonymous(),
		Agent:     identity.Agent{AgentID: identity.AnonymousAgent},
		Source:    identity.Source{Listener: "local", Session: "test"},
	}
	if p := test.Principal; p != nil {
		principal := &caller.Principal
		principal.ID, principal.Kind, principal.Issuer = p.ID, identity.Kind(p.Kind), p.Issuer
		principal.Scopes, principal.Groups = append(principal.Scopes, p.Scopes...), append(principal.Groups, p.Groups...)
		var claims map[string]any
		if json.Unmarshal(p.Claims, &claims) == nil && claims != nil {
			principal.Claims = claims
		}
	}
	if a := test.Agent; a != nil {
		caller.Agent.AgentID, caller.Agent.Model, caller.Agent.Metadata, caller.Agent.Verified = a.ID, a.Model, a.Metadata, a.Verified
	}
	if from := test.Source; from != nil {
		caller.Source.Listener, caller.Source.IP = cmp.Or(from.Listener, caller.Source.Listener), from.IP
	}
	return caller
}

// Arguments returns the arguments of the call of a test. For a completion these are the
// typed text as "value" and the other arguments as "params".
func Arguments(test *definition.Test) json.RawMessage {
	if test.Complete == "" {
		return test.Input
	}
	var params map[string]string
	_ = json.Unmarshal(test.Input, &params) // it holds only strings
	typed := params[test.Complete]
	delete(params, test.Complete)
	// Plain data always encodes.
	encoded, _ := json.Marshal(map[string]any{"value": typed, "params": params})
	return encoded
}

// Answers returns the mocked responses by request key. ok is false if one is missing.
func Answers(mocks *host.Mocks, asked []call.AskRequest) (answers map[string]json.RawMessage, ok bool) {
	answers, ok = make(map[string]json.RawMessage, len(asked)), true
	for _, r := range asked {
		example := ""
		if r.Key == suspend.ApprovalKey {
			example = `json = { action = "accept" } # or "decline"`
		}
		answer, known := mocks.AnswerInput(r.Key, r.Method, example)
		answers[r.Key], ok = answer, ok && known
	}
	return answers, ok
}

// Mocks returns the mocks of a test.
func Mocks(test *definition.Test) *host.Mocks {
	known := make([]host.Mock, len(test.Mocks))
	for i, m := range test.Mocks {
		known[i] = host.Mock{Object: m.Object, Request: m.Request, Status: m.Status, Headers: m.Headers, Body: m.Body, Error: m.Error}
	}
	return host.NewMocks(known)
}

// replied is the part of a resource or prompt result that tests check.
type replied struct {
	Contents []struct {
		MIMEType   string `json:"mimeType"`
		Text, Blob string
	}
	Messages   []message
	Completion struct{ Values []string }
}

// message is a message of a prompt.
type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

func (j *judge) reply() {
	var got replied
	if err := json.Unmarshal(j.got.Reply, &got); err != nil {
		j.fail("the result is not valid: %v", err)
		return
	}
	if text := got.text(); j.want.Text != nil && *j.want.Text != text {
		j.fail("the text is %q, want %q", text, *j.want.Text)
	}
	if want, values := j.want.Values, got.Completion.Values; want != nil && !slices.Equal(want, values) {
		j.fail("the values are %q, want %q", values, want)
	}
	if want := j.want.MIMEType; want != "" {
		for _, c := range got.Contents {
			if c.MIMEType != want {
				j.fail("the type is %q, want %q", c.MIMEType, want)
			}
		}
	}
	if j.want.Messages == nil {
		return
	}
	// decoded JSON always encodes
	messages, _ := json.Marshal(got.Messages)
	if !sameJSON(j.want.Messages, messages) {
		j.fail("the messages are\n%s\nwant\n%s", indent(messages), indent(j.want.Messages))
	}
}

// text joins the texts of a resource or of the messages of a prompt.
func (r *replied) text() string {
	var texts []string
	for _, c := range r.Contents {
		texts = append(texts, c.Text)
	}
	for _, m := range r.Messages {
		var block struct{ Type, Text string }
		if json.Unmarshal(m.Content, &block) == nil && block.Type == "text" {
			texts = append(texts, block.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// AtOnce returns how many tests run at once: as many as the process has processors, but one while
// the process serves calls, whose scripts need the other processors.
func AtOnce(serving bool) int {
	if serving {
		return 1
	}
	return runtime.GOMAXPROCS(0)
}

// Parallel calls run for each number below n, at most limit at once, and waits for all. If a run
// panics, Parallel panics after the others, in the goroutine of its caller.
func Parallel(n, limit int, run func(i int)) {
	var next atomic.Int64
	var busy sync.WaitGroup
	panics := make(chan string, limit)
	for range min(n, limit) {
		busy.Go(func() {
			defer func() {
				if cause := recover(); cause != nil {
					panics <- fmt.Sprintf("%v\n%s", cause, debug.Stack())
				}
			}()
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				run(int(i))
			}
		})
	}
	busy.Wait()
	select {
	case cause := <-panics:
		panic(cause)
	default:
	}
}
