package console

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/mcpd/mcpd/internal/ops/control"
)

// status is what the console reads of the response to [control.Status].
type status struct {
	Status        string         `json:"status"`
	Synchronized  bool           `json:"synchronized"`
	RestartNeeded bool           `json:"restart_needed"`
	Problems      []problem      `json:"problems"`
	Revision      string         `json:"revision"`
	Since         time.Time      `json:"since"`
	Serves        serves         `json:"serves"`
	Loads         loads          `json:"loads"`
	Calls         callCounts     `json:"calls"`
	Scripts       scripts        `json:"bodies"`
	Upstreams     []upstream     `json:"upstreams"`
	Sessions      map[string]int `json:"sessions"`
	Listeners     []string       `json:"listeners"`
	Version       string         `json:"version"`
	PID           int            `json:"pid"`
	Started       time.Time      `json:"started"`
	State         *stateReach    `json:"state"`
}

// Healthy reports whether nothing is wrong.
func (s status) Healthy() bool { return s.Status == "healthy" }

type (
	// problem is a diagnostic.
	problem struct {
		Severity string `json:"severity"`
	}
	// serves counts what the server serves.
	serves struct {
		Tools, Resources, Templates, Prompts, Policies, Limits, Hooks int
	}
	loads struct {
		Total, Failed uint64
	}
	callCounts struct {
		Running       int
		Ended, Failed uint64
	}
	// scripts describes the processes of scripts.
	scripts struct {
		Executor                    string
		Processes, Calls, Computing int
		Lost                        uint64
	}
	// stateReach describes the state database.
	stateReach struct {
		Database string
		Away     bool
		Error    string
	}
	// upstream describes an upstream server.
	upstream struct {
		Name        string     `json:"name"`
		Up          bool       `json:"up"`
		Idle        bool       `json:"idle"`
		Error       string     `json:"error"`
		Since       *time.Time `json:"since"`
		Again       *time.Time `json:"again"`
		Revision    string     `json:"revision"`
		Offered     int        `json:"offered"`
		Excluded    int        `json:"left"`
		LeftOut     []string   `json:"left_out"`
		Quarantined []string   `json:"quarantined"`
		LockError   string     `json:"unkept"`
	}
)

// overviewBody is the data of the overview.
type overviewBody struct {
	Status      status
	Diagnostics string
	Errors      int // the number of diagnostics that are errors
	Warnings    int
	Summary     summary
	Feed        string // why the feed is not current
}

// overviewOf asks the server for the data of the overview.
func (c *Console) overviewOf(r *http.Request) (overviewBody, error) {
	c.feed.start(r.Context())
	var b overviewBody
	var err error
	if b.Diagnostics, err = c.ask(r, control.Request{Action: control.Status}, &b.Status); err != nil {
		return b, err
	}
	for _, p := range b.Status.Problems {
		if p.Severity == "error" {
			b.Errors++
		} else {
			b.Warnings++
		}
	}
	maps.DeleteFunc(b.Status.Sessions, func(_ string, n int) bool { return n == 0 })
	b.Summary = c.feed.summary()
	_, b.Feed, _ = c.feed.after(0)
	return b, nil
}

// overview shows what the server serves and what is broken.
func (c *Console) overview(w http.ResponseWriter, r *http.Request) {
	body, err := c.overviewOf(r)
	if err != nil {
		c.fail(w, r, "/", err)
		return
	}
	c.show(w, r, http.StatusOK, "overview", "Overview", "/", body)
}

// overviewEvents keeps an overview current: "health", "problems", "summary" and "status" have the
// content of its parts, and "series" the data of its charts.
func (c *Console) overviewEvents(w http.ResponseWriter, r *http.Request) {
	c.poll(w, r, func(e *events) error { return c.sendOverview(e, r) })
}

// sendOverview sends the parts of an overview that have changed.
func (c *Console) sendOverview(e *events, r *http.Request) error {
	body, err := c.overviewOf(r)
	if err != nil {
		content, err := c.render("overview", "unreachable", err.Error())
		return cmp.Or(err, e.sendChanged("health", string(content)))
	}
	for _, part := range []string{"health", "problems", "summary", "status"} {
		if err := c.sendRendered(e, "overview", part, body); err != nil {
			return err
		}
	}
	data, err := body.Summary.JSON()
	if err != nil {
		return err
	}
	return e.sendChanged("series", data)
}

// reload makes the server load all files.
func (c *Console) reload(w http.ResponseWriter, r *http.Request) {
	var row struct {
		OK bool `json:"ok"`
	}
	_, err := c.ask(r, control.Request{Action: control.Reload}, &row)
	switch {
	case err != nil:
		c.fail(w, r, "/", err)
	case row.OK:
		c.redirect(w, r, "/?done=reload")
	default:
		c.redirect(w, r, "/?done=broken")
	}
}

// upstreamsBody is the data of the page of upstream servers.
type upstreamsBody struct {
	Upstreams []upstream
	Pins      []control.PinRow
	PinsError string // why there are no pins
}

// upstreamsOf asks the server for the data of the page. Servers that cannot be reached come first.
func (c *Console) upstreamsOf(r *http.Request) (upstreamsBody, error) {
	var s status
	if _, err := c.ask(r, control.Request{Action: control.Status}, &s); err != nil {
		return upstreamsBody{}, err
	}
	body := upstreamsBody{Upstreams: s.Upstreams}
	if err := c.do(r, control.Pins, nil, &body.Pins); err != nil {
		body.PinsError = err.Error()
	}
	slices.SortStableFunc(body.Upstreams, func(a, b upstream) int {
		return min(len(b.Error), 1) - min(len(a.Error), 1)
	})
	return body, nil
}

// upstreams shows the upstream servers, and their tools that were not accepted as they are.
func (c *Console) upstreams(w http.ResponseWriter, r *http.Request) {
	body, err := c.upstreamsOf(r)
	if err != nil {
		c.fail(w, r, "/upstreams", err)
		return
	}
	c.show(w, r, http.StatusOK, "upstreams", "Upstreams", "/upstreams", body)
}

// upstreamEvents keeps the page of upstream servers current: "upstreams" has its content.
func (c *Console) upstreamEvents(w http.ResponseWriter, r *http.Request) {
	c.poll(w, r, func(e *events) error {
		body, err := c.upstreamsOf(r)
		if err != nil {
			return nil // the page keeps what it shows; the overview says that the server is away
		}
		return c.sendRendered(e, "upstreams", "upstreams", body)
	})
}
