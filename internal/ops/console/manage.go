package console

import (
	"net/http"
	"slices"

	"github.com/mcpd/mcpd/internal/ops/control"
)

// upstreamsBody is the data of the page of upstream servers.
type upstreamsBody struct {
	Upstreams []control.UpstreamState
	Pins      []control.Pin
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
	slices.SortStableFunc(body.Upstreams, func(a, b control.UpstreamState) int {
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

// maxAccess is the number of rows of each list of the page.
const maxAccess = 200

// accessBody is the data of the page of access.
type accessBody struct {
	Keys                               []control.Key
	Tokens                             []control.Token
	Tasks                              []control.Task
	KeysError, TokensError, TasksError string
	MoreKeys, MoreTokens, MoreTasks    int
}

// access lists API keys, stored tokens and tasks.
func (c *Console) access(w http.ResponseWriter, r *http.Request) {
	var b accessBody
	if err := c.do(r, control.Keys, nil, &b.Keys); err != nil {
		b.KeysError = err.Error()
	}
	var stored control.TokensResult
	if _, err := c.ask(r, control.Request{Action: control.Tokens}, &stored); err != nil {
		b.TokensError = err.Error()
	}
	b.Tokens = stored.Tokens
	if err := c.do(r, control.Tasks, nil, &b.Tasks); err != nil {
		b.TasksError = err.Error()
	}
	b.Keys, b.MoreKeys = atMost(b.Keys, maxAccess)
	b.Tokens, b.MoreTokens = atMost(b.Tokens, maxAccess)
	b.Tasks, b.MoreTasks = atMost(b.Tasks, maxAccess)
	c.show(w, r, http.StatusOK, "access", "Access", "/access", b)
}

// atMost returns the first n elements of a list, and the number of others.
func atMost[T any](all []T, n int) ([]T, int) {
	n = min(n, len(all))
	return all[:n], len(all) - n
}
