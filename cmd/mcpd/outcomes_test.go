package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpd/mcpd/call"
)

// outcomeAct makes one call and its further legs.
type outcomeAct struct {
	weight int
	do     func(*outcomeScene, *rand.Rand)
}

// simply calls a tool with fixed arguments.
func simply(weight int, tool, arguments string) outcomeAct {
	return outcomeAct{weight, func(s *outcomeScene, _ *rand.Rand) { s.call(context.Background(), tool, arguments, nil) }}
}

// reads calls an item other than a tool.
func reads(weight int, r call.Request) outcomeAct {
	r.Caller = anybody()
	return outcomeAct{weight, func(s *outcomeScene, _ *rand.Rand) { s.execute(context.Background(), r) }}
}

var outcomeActs = []outcomeAct{
	simply(200, "adds", `{"n":1}`), simply(20, "adds", `{"n":"x"}`), simply(20, "adds", `{"n":99}`), simply(20, "nothing", `{}`),
	simply(20, "denied", `{}`), simply(20, "hidden", `{}`), simply(20, "limited", `{}`), simply(20, "leaks", `{}`), simply(40, "throws", `{}`),
	simply(20, "unfit", `{}`), simply(20, "much", `{}`), simply(20, "circle", `{}`), simply(10, "waits", `{}`), simply(8, "endless", `{}`),
	simply(20, "pauses", `{}`), simply(20, "kept", `{"n":1}`), simply(20, "panics", `{}`), simply(10, "exits", `{}`), simply(8, "deaf", `{}`),
	simply(20, "comes", `{}`), simply(20, strings.Repeat("n", 1000), `{}`),
	reads(20, call.Request{Kind: call.Resources, Name: "x://text"}), reads(20, call.Request{Kind: call.Resources, Name: "x://fails"}),
	reads(20, call.Request{Kind: call.Resources, Name: "x://row/17"}), reads(10, call.Request{Kind: call.Resources, Name: "x://nowhere"}),
	reads(10, call.Request{Kind: call.Prompts, Name: "plan", Arguments: json.RawMessage(`{"day":"monday"}`)}),
	reads(10, call.Request{Kind: call.Prompts, Name: "plan", Argument: "day", Arguments: json.RawMessage(`{"value":"m"}`)}),
	reads(10, call.Request{Kind: call.Templates, Name: "x://row/{id}", Argument: "id", Arguments: json.RawMessage(`{"value":"1"}`)}),
	reads(10, call.Request{Kind: call.Templates, Name: "x://row/{id}", Argument: "else", Arguments: json.RawMessage(`{"value":"1"}`)}),
	reads(10, call.Request{Name: "adds", Arguments: json.RawMessage(`{"n":1}`), ArgumentsErr: &call.Error{Code: call.InvalidInput, Message: "the gate refuses it"}}),
	{60, func(s *outcomeScene, r *rand.Rand) {
		s.call(context.Background(), "tree", fmt.Sprintf(`{"seed":%d}`, r.IntN(1e6)), nil)
	}},
	{40, func(s *outcomeScene, r *rand.Rand) { // the client cancels, or sets a deadline
		tools := []string{"pauses", "{}", "tree", fmt.Sprintf(`{"seed":%d}`, r.IntN(1e6)), "endless", "{}", "adds", `{"n":1}`, "deaf", "{}"}
		tool := 2 * r.IntN(len(tools)/2)
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		after := time.Duration(r.IntN(15)) * time.Millisecond
		if r.IntN(2) == 0 {
			ctx, cancel = context.WithTimeout(ctx, after)
			defer cancel()
		} else {
			defer time.AfterFunc(after, cancel).Stop()
		}
		s.call(ctx, tools[tool], tools[tool+1], nil)
	}},
	{10, func(s *outcomeScene, _ *rand.Rand) { s.leave(context.Background()) }},
	{60, func(s *outcomeScene, r *rand.Rand) { s.converse(r, []string{"asks", "approved"}[r.IntN(2)]) }},
	{20, (*outcomeScene).task},
	{10, (*outcomeScene).cancelTask},
	{8, (*outcomeScene).killInFlight},
}

// converse makes a call with input requests. The client answers, declines, answers an
// unknown request, answers twice, or disconnects.
func (s *outcomeScene) converse(r *rand.Rand, tool string) {
	result := s.call(context.Background(), tool, `{}`, nil)
	for range 4 {
		if result.Ask == nil {
			return
		}
		resume := &call.Resume{State: result.Ask.State, Responses: map[string]json.RawMessage{}}
		for _, asked := range result.Ask.Requests {
			resume.Responses[asked.Key] = json.RawMessage([]string{`{"action":"accept","content":{"ok":true}}`, `{"action":"decline"}`, `7`}[r.IntN(10)/4])
		}
		switch r.IntN(8) {
		case 0:
			return
		case 1:
			resume.Responses = nil
		case 2:
			resume.State += "x"
		case 3:
			var twice sync.WaitGroup
			twice.Go(func() { s.call(context.Background(), tool, `{}`, resume) })
			defer twice.Wait()
		}
		result = s.call(context.Background(), tool, `{}`, resume)
	}
}

// everyOutcome lists the required outcomes, by the last events of calls.
var everyOutcome = map[string]func(call.Event) bool{
	"a result":               func(e call.Event) bool { return e.Phase == call.End && e.Kind == "tool" && e.Outcome == "" },
	"the result of another":  func(e call.Event) bool { return e.Cached },
	"a resource":             func(e call.Event) bool { return e.Phase == call.End && e.Kind == "resource" },
	"a prompt":               func(e call.Event) bool { return e.Phase == call.End && e.Kind == "prompt" },
	"a completion":           func(e call.Event) bool { return e.Phase == call.End && e.Kind == "completion" },
	"a question":             func(e call.Event) bool { return e.Outcome == "input_required" },
	"the end of a later leg": func(e call.Event) bool { return e.Phase == call.End && e.Leg > 1 },
	"a task":                 func(e call.Event) bool { return e.Phase == call.End && e.Tool == "job" },
	"a cancelled task": func(e call.Event) bool {
		return e.Err != nil && e.Tool == "long" && strings.Contains(e.Err.Message, "was canceled")
	},
	"a task that is cut": func(e call.Event) bool {
		return e.Err != nil && e.Tool == "lasts" && strings.Contains(e.Err.Message, "was canceled")
	},
	"a result of a call whose process was killed": func(e call.Event) bool { return e.Phase == call.End && e.Tool == "survives" },
	"a nested call":            func(e call.Event) bool { return e.Phase == call.End && e.Depth > 0 },
	"a nested call that fails": func(e call.Event) bool { return e.Phase == call.Failed && e.Depth > 0 },
	"INVALID_INPUT":            failsWith(call.InvalidInput, "do not fit"),
	"arguments that are none":  failsWith(call.InvalidInput, "gate"),
	"TOOL_NOT_FOUND":           failsWith(call.ToolNotFound, "nothing"),
	"a denial that is hidden":  failsWith(call.ToolNotFound, "hidden"),
	"POLICY_DENIED":            failsWith(call.PolicyDenied, "too large"),
	"a denied result":          failsWith(call.PolicyDenied, "it is secret"),
	"a denied approval":        failsWith(call.PolicyDenied, "did not approve"),
	"a limit":                  func(e call.Event) bool { return e.Err != nil && e.Err.Limited },
	"TIMEOUT":                  failsWith(call.Timeout, "timeout of 20ms"),
	"the client's deadline":    failsWith(call.Timeout, "the caller's deadline"),
	"a cancellation":           failsWith(call.ExecutionError, "was canceled"),
	"a failure of the script":  failsWith(call.ExecutionError, "polite"),
	"a panic":                  failsWith(call.ExecutionError, "inside the server"),
	"a result that is unfit":   failsWith(call.ExecutionError, "output schema"),
	"a result that is large":   failsWith(call.ExecutionError, "1024 bytes"),
	"overload":                 failsWith(call.ExecutionError, "is overloaded"),
	"shutdown":                 failsWith(call.ExecutionError, "is shutting down"),
	"a call that is cut": func(e call.Event) bool {
		return e.Err != nil && e.Tool == "stalls" && strings.Contains(e.Err.Message, "was canceled")
	},
}

func failsWith(code call.Code, message string) func(call.Event) bool {
	return func(e call.Event) bool {
		return e.Err != nil && e.Err.Code == code && strings.Contains(e.Err.Message, message)
	}
}

// Random calls with every outcome run while worker processes are killed, files change
// and the server shuts down. Every hook must receive the start and then the end of each
// call, once each. With MCPD_LONG there are 100,000 calls.
func TestHooks_startAndEndOfEachCall(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: this system has no /proc")
	}
	lives := uint64(2)
	switch {
	case os.Getenv("MCPD_LONG") != "":
		lives = 170
	case testing.Short():
		lives = 1
	}
	seen := map[string]int{}
	for seed := range lives {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { liveThroughOutcomes(t, seed, seen) })
	}
	for _, outcome := range slices.Sorted(maps.Keys(everyOutcome)) {
		if t.Logf("%6d times %s", seen[outcome], outcome); seen[outcome] == 0 && lives > 1 && !t.Failed() {
			t.Errorf("no call ended with %s", outcome)
		}
	}
}

// outcomesOfALife is the number of calls to one server; drainsAt is the index of the
// first rejected one.
const (
	outcomesOfALife = 600
	drainsAt        = 560
)

// liveThroughOutcomes makes calls of a server until it shuts down.
func liveThroughOutcomes(t *testing.T, seed uint64, seen map[string]int) {
	s := newOutcomeScene(t, seed%2 == 1)
	var made atomic.Int64
	var clients sync.WaitGroup
	for client := range uint64(16) {
		clients.Go(func() {
			r := rand.New(rand.NewPCG(seed, client))
			for n := made.Add(1); n <= outcomesOfALife; n = made.Add(1) {
				s.step(r, int(n))
			}
		})
	}
	clients.Wait()
	status := s.shutDown()
	s.ledger.check(t, status, seen)
	s.checkAudit(t)
	if len(s.kept) < 3 {
		t.Errorf("only arguments of %v were captured", s.kept)
	}
	if s.killed.Load() == 0 || status.HookWaits == 0 {
		t.Errorf("%d processes killed, %d waits for hooks", s.killed.Load(), status.HookWaits)
	}
	t.Logf("%d calls, %d tasks, %d processes killed, %d waits for hooks; %s", status.Calls, s.tasks.Load(), s.killed.Load(), status.HookWaits, s.ledger)
}

// crowd makes more concurrent calls than the limit.
func (s *outcomeScene) crowd() {
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { s.call(context.Background(), "pauses", `{}`, nil) })
	}
	all.Wait()
}

// step makes one call, and the concurrent actions.
func (s *outcomeScene) step(r *rand.Rand, n int) {
	switch {
	case n == drainsAt:
		s.drain()
	case n%50 == 0:
		s.kill(r)
	case n%300 == 0:
		s.reload(r)
	case n%300 == 150:
		s.crowd()
	case n > drainsAt-200 && n <= drainsAt-120:
		s.call(context.Background(), "big", `{"text":"`+strings.Repeat("x", 256<<10)+`"}`, nil)
		return
	}
	total := 0
	for _, act := range outcomeActs {
		total += act.weight
	}
	pick := r.IntN(total)
	for _, act := range outcomeActs {
		if pick -= act.weight; pick < 0 {
			act.do(s, r)
			return
		}
	}
}
