package console

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpd/mcpd/internal/ops/control"
)

// pageCalls is the number of calls in a page.
const pageCalls = 100

// callFilter selects calls. Empty fields match any call.
type callFilter struct{ Name, Principal, Outcome string }

func callFilterOf(r *http.Request) callFilter {
	query := r.URL.Query()
	return callFilter{strings.TrimSpace(query.Get("name")), strings.TrimSpace(query.Get("principal")), query.Get("outcome")}
}

// matches reports whether a call fits the filter.
func (f callFilter) matches(c control.Call) bool {
	return (f.Name == "" || f.Name == c.Name) && (f.Principal == "" || f.Principal == c.Principal) && (f.Outcome == "" || f.Outcome == c.Outcome)
}

// outcomes are the outcomes of the filter.
var outcomes = []string{"ok", "input_required", "rehearsed", "POLICY_DENIED", "INVALID_INPUT", "TOOL_NOT_FOUND", "EXECUTION_ERROR", "TIMEOUT"}

// callsBody is the data of the page of calls.
type callsBody struct {
	callFilter
	Outcomes []string
	History  bool // the calls of the audit log, not the live ones
	Calls    []numbered
	Feed     string // why live calls are missing
	Problem  string // why there is no history
	Live     string // the address of the events
	Older    string // a link
	Switch   string // the address of the other view
}

// calls lists the latest calls, or those of the audit log.
func (c *Console) calls(w http.ResponseWriter, r *http.Request) {
	f := callFilterOf(r)
	b := callsBody{callFilter: f, Outcomes: outcomes, History: r.URL.Query().Get("view") == "history"}
	if b.History {
		before, _ := strconv.ParseUint(r.URL.Query().Get("before"), 10, 64)
		var row control.AuditResult
		if err := c.do(r, control.Audit, control.CallQuery{Name: f.Name, Principal: f.Principal, Outcome: f.Outcome, Before: before, Limit: pageCalls}, &row); err != nil {
			row.Problem = err.Error()
		}
		for _, call := range row.Calls {
			b.Calls = append(b.Calls, numbered{0, call})
		}
		if n := len(row.Calls); row.More && n > 0 {
			b.Older = link("/calls", "view", "history", "name", f.Name, "principal", f.Principal, "outcome", f.Outcome, "before", strconv.FormatUint(row.Calls[n-1].Seq, 10))
		}
		b.Problem, b.Switch = row.Problem, link("/calls", "name", f.Name, "principal", f.Principal, "outcome", f.Outcome)
	} else {
		c.feed.start(r.Context())
		latest, problem, _ := c.feed.after(0)
		var last uint64
		if n := len(latest); n > 0 {
			last = latest[n-1].N
		}
		latest = slices.DeleteFunc(latest, func(n numbered) bool { return !f.matches(n.Call) })
		slices.Reverse(latest)
		b.Calls, b.Feed = latest[:min(len(latest), pageCalls)], problem
		b.Live = link("/calls/events", "name", f.Name, "principal", f.Principal, "outcome", f.Outcome, "after", strconv.FormatUint(last, 10))
		b.Switch = link("/calls", "view", "history", "name", f.Name, "principal", f.Principal, "outcome", f.Outcome)
	}
	c.show(w, r, http.StatusOK, "calls", "Calls", "/calls", b)
}

// callEvents sends the rows of calls as they end: "call" has a row, and "feed" says whether the
// server sends calls.
func (c *Console) callEvents(w http.ResponseWriter, r *http.Request) {
	f := callFilterOf(r)
	after, _ := strconv.ParseUint(r.URL.Query().Get("after"), 10, 64)
	c.feed.start(r.Context())
	c.stream(w, r, func(e *events) error {
		for {
			latest, problem, changed := c.feed.after(after)
			for _, call := range latest {
				after = call.N
				if !f.matches(call.Call) {
					continue
				}
				row, err := c.render("calls", "callrow", call)
				if err == nil {
					err = e.send("call", string(row))
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
			select {
			case <-changed:
			case <-e.ctx.Done():
				return context.Cause(e.ctx)
			}
		}
	})
}

// callBody is the data of the page of a call.
type callBody struct {
	control.Call
	Tree []control.Call // the calls of the same root, by depth
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
	c.show(w, r, http.StatusOK, "call", "Call of "+cut(found.Name, maxName), "/calls", callBody{*found, tree})
}
