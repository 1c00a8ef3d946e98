package console

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpd/mcpd/internal/ops/control"
)

// Bounds of the calls that the console makes and keeps.
const (
	maxRuns      = 32
	maxActive    = 8
	maxRunEvents = 500
	maxRunBytes  = 8 << 20
	maxHeld      = 64 << 20 // bytes of all calls, when one starts
	// eventPause joins the events of a call that are close together into one update.
	eventPause = 100 * time.Millisecond
)

// run is a call that the console makes. It ends with its result, with a cancellation, or with the
// console; browsers that leave do not end it.
type run struct {
	// fixed at creation
	id     string
	item   control.ItemName // of the page; a call names a URI of a template
	call   control.TryCall
	as     asForm
	form   form
	began  time.Time
	stream Stream
	cancel context.CancelFunc

	// guarded by mu
	mu       sync.Mutex
	events   []control.TryEvent
	bytes    int
	dropped  int // events that are not kept
	progress *control.TryProgress
	ask      []control.TryQuestion // open questions
	sending  bool                  // an answer to them is sent
	asked    int                   // the number of asks so far
	askError string
	result   *control.TryResult
	problem  string // why there is no result
	changed  chan struct{}
}

// try calls an item, or shows the form of its item again with a change that a button makes.
func (c *Console) try(w http.ResponseWriter, r *http.Request) {
	row, ok := c.itemOf(w, r, itemName(r))
	if !ok {
		return
	}
	as := asFormOf(r.PostForm)
	arguments, f, ready := readArguments(row, r.PostForm)
	if !ready {
		c.showItem(w, r, row, f, as, nil)
		return
	}
	caller, ok := as.caller()
	if !ok {
		c.showItem(w, r, row, f, as, nil)
		return
	}
	call := control.TryCall{ItemName: row.ItemName, Arguments: arguments, As: caller, Record: r.PostForm.Has("record")}
	switch row.Kind {
	case "template": // it is read by the URI of its variables
		uri, err := f.expand(row.Address)
		if err != nil {
			f.Error = "The URI cannot be built: " + err.Error() + "."
			c.showItem(w, r, row, f, as, nil)
			return
		}
		call.ItemName, call.Arguments = control.ItemName{Kind: "resource", Address: uri}, nil
	case "resource":
		call.Arguments = nil
	}
	run, err := c.startRun(r, row.ItemName, call, f, as)
	if isForbidden(err) {
		c.fail(w, r, "/items", err)
		return
	}
	if err != nil {
		c.problem(w, r, http.StatusServiceUnavailable, "/items", "The call was not made", err.Error())
		return
	}
	c.redirect(w, r, "/runs/"+run.id+"#try")
}

// startRun starts a call for the page of an item.
func (c *Console) startRun(r *http.Request, item control.ItemName, call control.TryCall, f form, as asForm) (*run, error) {
	if err := c.makeRoom(); err != nil {
		return nil, err
	}
	defer func() {
		c.mu.Lock()
		c.starting--
		c.mu.Unlock()
	}()
	request, err := control.NewRequest(control.Try, call)
	if err != nil {
		return nil, err
	}
	ctx, cancel := withEnd(r.Context(), c.ctx)
	stream, err := c.backend.Open(ctx, request)
	if err != nil {
		cancel()
		return nil, err
	}
	run := &run{id: rand.Text(), item: item, call: call, as: as, form: f, began: c.options.Now(), stream: stream, cancel: cancel, changed: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil {
		cancel()
		return nil, errors.Join(errors.New("the console is closed"), stream.Close())
	}
	c.runs = append(c.runs, run)
	c.busy.Go(func() { run.receive(ctx) })
	return run, nil
}

// makeRoom counts a call that starts. It drops the oldest calls that have ended if there are too many,
// or if they have too large results. It fails if too many run.
func (c *Console) makeRoom() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	active, held := c.starting, 0
	for _, run := range c.runs {
		if !run.ended() {
			active++
		}
		held += run.held()
	}
	if active >= maxActive {
		return fmt.Errorf("%d calls of the console run; wait for one, or cancel it", active)
	}
	for len(c.runs) >= maxRuns || held > maxHeld {
		oldest := slices.IndexFunc(c.runs, (*run).ended)
		if oldest < 0 {
			break
		}
		held -= c.runs[oldest].held()
		c.runs = slices.Delete(c.runs, oldest, oldest+1)
	}
	c.starting++
	return nil
}

// runOf returns the call that a request names. It writes the response if there is none.
func (c *Console) runOf(w http.ResponseWriter, r *http.Request) *run {
	c.mu.Lock()
	i := slices.IndexFunc(c.runs, func(run *run) bool { return run.id == r.PathValue("id") })
	var found *run
	if i >= 0 {
		found = c.runs[i]
	}
	c.mu.Unlock()
	if found == nil {
		c.problem(w, r, http.StatusNotFound, "/items", "This call is not known any more", fmt.Sprintf("The console keeps its last %d calls. The page of calls has all of them.", maxRuns))
	}
	return found
}

// receive reads the events of the call until it ends.
func (r *run) receive(ctx context.Context) {
	defer r.cancel()
	defer r.stream.Close()
	defer context.AfterFunc(ctx, func() { _ = r.stream.Close() })()
	for {
		var e control.TryEvent
		err := r.stream.Receive(&e)
		if err != nil && ctx.Err() != nil {
			err = errors.New("the call was cancelled")
		} else if err != nil {
			err = fmt.Errorf("the server ended the call without a result: %w", err)
		}
		if r.add(e, err) {
			return
		}
	}
}

// add adds an event, or the error that ends the call. It reports whether the call has ended.
func (r *run) add(e control.TryEvent, err error) (ended bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.notify()
	switch {
	case err != nil:
		r.problem, r.ask = err.Error(), nil
		return true
	case e.Result != nil:
		r.result, r.ask = e.Result, nil
		return true
	case e.Ask != nil:
		r.ask, r.askError = e.Ask, ""
		r.asked++
		return false
	case e.Progress != nil:
		r.progress = e.Progress
		return false
	}
	size := 200
	if e.Log != nil {
		size += len(e.Log.Message) + len(e.Log.Fields)
	}
	if r.bytes += size; len(r.events) >= maxRunEvents || r.bytes > maxRunBytes {
		r.dropped++
		return false
	}
	r.events = append(r.events, e)
	return false
}

// notify wakes all waiters; mu is held.
func (r *run) notify() {
	close(r.changed)
	r.changed = make(chan struct{})
}

// ended reports whether the call has ended.
func (r *run) ended() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.result != nil || r.problem != ""
}

// held returns the bytes that the events and the result of the call have.
func (r *run) held() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := r.bytes
	if r.result != nil {
		n += len(r.result.Value) + len(r.result.Content) + len(r.result.Reply) + len(r.result.Details) + len(r.result.Trace)
	}
	return n
}

// runView is the data of a call in a page.
type runView struct {
	ID       string
	CSRF     string
	Item     control.ItemName
	As       string
	Began    time.Time
	Ended    bool
	Progress *control.TryProgress
	Logs     []control.TryEvent
	Steps    []stepView
	Dropped  int
	Ask      []questionView
	Asked    int
	AskError string
	Result   *resultView
	Problem  string
}

// stepView is a step with its bar, in thousandths of the call.
type stepView struct {
	control.TryStep
	Start    float64 // milliseconds after the call began
	X, Width int
}

// view returns the data of the call.
func (r *run) view(csrf string) runView {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := runView{
		ID: r.id, CSRF: csrf, Item: r.call.ItemName, As: "the operator", Began: r.began, Ended: r.result != nil || r.problem != "",
		Progress: r.progress, Dropped: r.dropped, Asked: r.asked, AskError: r.askError, Problem: r.problem,
	}
	if p := r.call.As.Principal; p != nil {
		v.As = string(p.Kind) + " " + p.ID
	}
	var steps []control.TryStep
	for _, e := range r.events {
		if e.Step != nil {
			steps = append(steps, *e.Step)
		} else if e.Log != nil {
			v.Logs = append(v.Logs, e)
		}
	}
	v.Steps = timeline(steps)
	for i, q := range r.ask {
		v.Ask = append(v.Ask, newQuestion(i, q, r.asked))
	}
	if r.result != nil {
		shown := newResult(*r.result)
		shown.TestPath, shown.TestFile = "/runs/"+r.id+"/test", testFile(r.call.Address, shown.Test)
		v.Result = &shown
	}
	return v
}

// timeline returns steps in the order of their start.
func timeline(steps []control.TryStep) []stepView {
	if len(steps) == 0 {
		return nil
	}
	slices.SortStableFunc(steps, func(a, b control.TryStep) int {
		if order := a.Began.Compare(b.Began); order != 0 {
			return order
		}
		return a.Depth - b.Depth
	})
	first, total := steps[0].Began, 0.001
	start := func(s control.TryStep) float64 { return float64(s.Began.Sub(first)) / float64(time.Millisecond) }
	for _, s := range steps {
		total = max(total, start(s)+s.DurationMS)
	}
	views := make([]stepView, len(steps))
	for i, s := range steps {
		s.Depth = max(0, min(s.Depth, 8))
		views[i] = stepView{s, start(s), int(start(s) / total * 1000), max(4, int(s.DurationMS/total*1000))}
	}
	return views
}

// runPage shows a call with the form of its item.
func (c *Console) runPage(w http.ResponseWriter, r *http.Request) {
	run := c.runOf(w, r)
	if run == nil {
		return
	}
	if row, ok := c.itemOf(w, r, run.item); ok {
		c.showItem(w, r, row, run.form, run.as, run)
	}
}

// runEvents keeps a call in a page current: "timeline", "ask" and "result" have the content of its
// parts, and "done" is the last event.
func (c *Console) runEvents(w http.ResponseWriter, r *http.Request) {
	run := c.runOf(w, r)
	if run == nil {
		return
	}
	csrf := c.sessionOf(r).csrf
	c.stream(w, r, func(e *events) error {
		for {
			run.mu.Lock()
			changed := run.changed
			run.mu.Unlock()
			v := run.view(csrf)
			for _, part := range []string{"timeline", "ask", "result"} {
				if err := c.sendRendered(e, "item", part, v); err != nil {
					return err
				}
			}
			if v.Ended {
				return errors.Join(e.send("done", ""), errDone)
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

// after returns a channel that is closed after a duration.
func after(d time.Duration) <-chan struct{} {
	c := make(chan struct{})
	time.AfterFunc(d, func() { close(c) })
	return c
}

// testNumber matches the number at the end of the name of a test.
var testNumber = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^test "[^"]* ([0-9]{1,9})" \{$`) })

// testFile returns the name of the file for a test of a tool, with the number of the test, so that it is
// another one for each test. As it is part of a header, it has only letters, digits, _ and - of the name
// of the tool.
func testFile(tool, test string) string {
	safe := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, tool)
	safe = safe[:min(len(safe), 64)] + "_test"
	if number := testNumber().FindStringSubmatch(test); number != nil {
		safe += "_" + number[1]
	}
	return safe + ".hcl"
}

// downloadTest sends the test of a recorded call as a file.
func (c *Console) downloadTest(w http.ResponseWriter, r *http.Request) {
	run := c.runOf(w, r)
	if run == nil {
		return
	}
	run.mu.Lock()
	result := run.result
	run.mu.Unlock()
	if result == nil || result.Test == "" {
		c.problem(w, r, http.StatusNotFound, "/items", "This call has no test", "Only a recorded call has a test, when it has ended.")
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="`+testFile(run.call.Address, result.Test)+`"`)
	_, _ = io.WriteString(w, result.Test) // a browser that is gone needs no file
}

// cancelRun cancels a call.
func (c *Console) cancelRun(w http.ResponseWriter, r *http.Request) {
	if run := c.runOf(w, r); run != nil {
		run.cancel()
		c.redirect(w, r, "/runs/"+run.id+"#try")
	}
}

// answerRun sends the answers of a form to the questions of a call.
func (c *Console) answerRun(w http.ResponseWriter, r *http.Request) {
	run := c.runOf(w, r)
	if run == nil {
		return
	}
	run.mu.Lock()
	questions, asked := run.ask, run.asked
	// Else it was answered, in another window perhaps. A second answer would cancel the call.
	open := len(questions) > 0 && !run.sending && r.PostForm.Get("asked") == fmt.Sprint(asked)
	run.sending = run.sending || open
	run.mu.Unlock()
	if open {
		answer, problem := answerOf(questions, r.PostForm)
		if problem == "" {
			if err := run.stream.Send(answer); err != nil {
				problem = err.Error()
			}
		}
		run.mu.Lock()
		run.sending = false
		if run.asked == asked {
			if run.askError = problem; problem == "" {
				run.ask = nil
			}
			run.notify()
		}
		run.mu.Unlock()
	}
	c.redirect(w, r, "/runs/"+run.id+"#try")
}
