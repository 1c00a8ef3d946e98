package console

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpd/mcpd/internal/ops/control"
)

// pageCalls is the number of calls in a page.
const pageCalls = 100

// callQueryOf returns the calls that a request selects.
func callQueryOf(r *http.Request) control.CallQuery {
	query := r.URL.Query()
	return control.CallQuery{Name: strings.TrimSpace(query.Get("name")), Principal: strings.TrimSpace(query.Get("principal")), Outcome: query.Get("outcome")}
}

// outcomes are the outcomes of the filter.
var outcomes = []string{"ok", "input_required", "rehearsed", "POLICY_DENIED", "INVALID_INPUT", "TOOL_NOT_FOUND", "EXECUTION_ERROR", "TIMEOUT"}

// callsBody is the data of the page of calls.
type callsBody struct {
	control.CallQuery
	Outcomes []string
	History  bool // the calls of the audit log, not the live ones
	Calls    []numbered
	Feed     string // why live calls are missing
	Problem  string // why there is no history
	Live     string // the address of the events
	Older    string // a link
	Switch   string // the address of the other view
}

// calls lists the latest calls, or the calls in the audit log.
func (c *Console) calls(w http.ResponseWriter, r *http.Request) {
	q := callQueryOf(r)
	b := callsBody{CallQuery: q, Outcomes: outcomes, History: r.URL.Query().Get("view") == "history"}
	if b.History {
		past := q
		past.Before, _ = strconv.ParseUint(r.URL.Query().Get("before"), 10, 64)
		past.Limit = pageCalls
		var row control.AuditResult
		if err := c.do(r, control.Audit, past, &row); err != nil {
			row.Problem = err.Error()
		}
		for _, call := range row.Calls {
			b.Calls = append(b.Calls, numbered{0, call})
		}
		if n := len(row.Calls); row.More && n > 0 {
			b.Older = link("/calls", "view", "history", "name", q.Name, "principal", q.Principal, "outcome", q.Outcome, "before", strconv.FormatUint(row.Calls[n-1].Seq, 10))
		}
		b.Problem, b.Switch = row.Problem, link("/calls", "name", q.Name, "principal", q.Principal, "outcome", q.Outcome)
	} else {
		c.feed.start(r.Context())
		latest, problem, _ := c.feed.after(0)
		var last uint64
		if n := len(latest); n > 0 {
			last = latest[n-1].N
		}
		latest = slices.DeleteFunc(latest, func(n numbered) bool { return !q.Matches(&n.Call) })
		slices.Reverse(latest)
		b.Calls, b.Feed = latest[:min(len(latest), pageCalls)], problem
		b.Live = link("/calls/events", "name", q.Name, "principal", q.Principal, "outcome", q.Outcome, "after", strconv.FormatUint(last, 10))
		b.Switch = link("/calls", "view", "history", "name", q.Name, "principal", q.Principal, "outcome", q.Outcome)
	}
	c.show(w, r, http.StatusOK, "calls", "Calls", "/calls", b)
}

// callEvents sends the rows of calls as they end: "call" has a row, and "feed" says whether the
// server sends calls.
func (c *Console) callEvents(w http.ResponseWriter, r *http.Request) {
	q := callQueryOf(r)
	last, _ := strconv.ParseUint(r.URL.Query().Get("after"), 10, 64)
	c.feed.start(r.Context())
	c.stream(w, r, func(e *events) error {
		for {
			latest, problem, changed := c.feed.after(last)
			for _, call := range latest {
				last = call.N
				if !q.Matches(&call.Call) {
					continue
				}
				row, err := c.callRow(call)
				if err == nil {
					err = e.send("call", row)
				}
				if err != nil {
					return err
				}
			}
			state, err := c.render("calls", "feedstate", problem)
			if err == nil {
				err = e.sendChanged("feed", string(state))
			}
			if err != nil {
				return err
			}
			for _, wait := range []<-chan struct{}{changed, after(eventPause)} {
				select {
				case <-wait:
				case <-e.ctx.Done():
					return context.Cause(e.ctx)
				}
			}
		}
	})
}

// maxRows bounds the rows that streams share.
const maxRows = 500

// callRow returns the row of a call. All streams share it: a page may have many.
func (c *Console) callRow(call numbered) (string, error) {
	c.mu.Lock()
	row, ok := c.rows[call.N]
	c.mu.Unlock()
	if ok {
		return row, nil
	}
	text, err := c.render("calls", "callrow", call)
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rows == nil || len(c.rows) >= maxRows {
		c.rows = map[uint64]string{}
	}
	c.rows[call.N] = string(text)
	return c.rows[call.N], nil
}

// callBody is the data of the page of a call.
type callBody struct {
	control.Call
	Tree     []callStep // the calls of the same root, in the order of their start
	Policies []control.Policy
}

// callStep is a call in the timeline of its root.
type callStep struct {
	control.Call
	Step stepView
}

// callSteps returns a timeline of calls.
func callSteps(calls []control.Call) []callStep {
	slices.SortStableFunc(calls, func(a, b control.Call) int { return cmp.Or(a.Time.Compare(b.Time), a.Depth-b.Depth) })
	steps := make([]control.TryStep, len(calls))
	for i, call := range calls {
		steps[i] = control.TryStep{Name: call.Name, Depth: call.Depth, Began: call.Time, DurationMS: call.DurationMS}
	}
	all := make([]callStep, len(calls))
	for i, step := range timeline(steps) {
		all[i] = callStep{calls[i], step}
	}
	return all
}

// callPage shows a call of the feed or of the audit log.
func (c *Console) callPage(w http.ResponseWriter, r *http.Request) {
	c.feed.start(r.Context())
	id := r.PathValue("id")
	found, tree := c.feed.find(id)
	if found == nil {
		var row control.AuditResult
		err := c.do(r, control.Audit, control.CallQuery{CallID: id, Limit: 1}, &row)
		switch {
		case err != nil:
			c.fail(w, r, "/calls", err)
			return
		case len(row.Calls) == 0:
			c.problem(w, r, http.StatusNotFound, "/calls", "This call is not known", row.Problem)
			return
		}
		found = &row.Calls[0]
	}
	var item control.ItemResult // none for one that no longer exists, and for a URI of a template
	_ = c.do(r, control.Item, control.ItemName{Kind: found.Kind, Address: found.Name}, &item)
	c.show(w, r, http.StatusOK, "call", "Call of "+cut(found.Name, maxName), "/calls", callBody{*found, callSteps(tree), item.Policies})
}
