package conformance_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"sync"
	"testing"
)

// streams is a client of Streamable HTTP: one request per message, and one
// stream per response.
type streams struct {
	*wire
	site *site
	era  era
	life context.Context

	mu      sync.Mutex
	session string
	version string
	calls   map[string]context.CancelFunc
	reading sync.WaitGroup
}

func dialStreamable(t *testing.T, s *site, e era) *wire {
	life, end := context.WithCancel(context.WithoutCancel(t.Context()))
	c := &streams{wire: &wire{inbox: newInbox()}, site: s, era: e, life: life, calls: map[string]context.CancelFunc{}}
	c.send, c.end = c.post, c.delete
	c.drop = func(id string) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.calls[id]()
	}
	c.hang = sync.OnceFunc(func() {
		end()
		c.reading.Wait()
		close(c.inbox)
	})
	return c.wire
}

// post sends a message. Its response is read concurrently.
func (c *streams) post(text []byte) error {
	var m message
	if err := json.Unmarshal(text, &m); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(c.life)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.site.url+"/mcp", bytes.NewReader(text))
	if err != nil {
		cancel()
		return err
	}
	c.mu.Lock()
	c.calls[string(m.ID)] = cancel
	c.describe(r.Header, m)
	c.mu.Unlock()
	if m.Method != "" && m.ID != nil {
		c.reading.Go(func() { defer cancel(); c.answer(r) })
		return nil
	}
	defer cancel()
	response, err := c.site.client.Do(r)
	if err != nil {
		return err
	}
	if err := taken(response); err != nil || m.Method != "notifications/initialized" {
		return err
	}
	return c.listen()
}

// describe sets the headers for the era of the client.
func (c *streams) describe(h http.Header, m message) {
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json, text/event-stream")
	if c.era == legacy {
		if c.session != "" {
			h.Set("Mcp-Session-Id", c.session)
			h.Set("Mcp-Protocol-Version", c.version)
		}
		return
	}
	var output struct {
		Name, URI, TaskID string
		Meta              map[string]any `json:"_meta"`
	}
	// The server must reject invalid params.
	_ = json.Unmarshal(m.Params, &output)
	version, _ := output.Meta[metaVersion].(string)
	h.Set("Mcp-Protocol-Version", cmp.Or(version, string(modern)))
	h.Set("Mcp-Method", m.Method)
	if name := cmp.Or(output.Name, output.URI, output.TaskID); name != "" {
		h.Set("Mcp-Name", name)
	}
}

// answer reads the response to a request.
func (c *streams) answer(r *http.Request) {
	response, err := c.site.client.Do(r)
	if err != nil {
		return
	}
	defer response.Body.Close()
	if kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); kind == "text/event-stream" {
		c.take(response.Body)
		return
	}
	text, err := io.ReadAll(response.Body)
	if err != nil || len(text) == 0 {
		return // cancelled before the response
	}
	c.opened(response.Header.Get("Mcp-Session-Id"), text)
	c.inbox <- text
}

// opened stores the session of the response to initialize.
func (c *streams) opened(session string, text []byte) {
	var m struct {
		Result struct{ ProtocolVersion string }
	}
	if session == "" || json.Unmarshal(text, &m) != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.session, c.version = session, m.Result.ProtocolVersion
}

// take reads all events of a stream.
func (c *streams) take(stream io.Reader) {
	next := events(stream)
	for text, err := next(); err == nil; text, err = next() {
		c.inbox <- text
	}
}

// onSession sends a request about the session itself.
func (c *streams) onSession(method string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(c.life, method, c.site.url+"/mcp", nil)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	c.describe(r.Header, message{})
	c.mu.Unlock()
	response, err := c.site.client.Do(r)
	if err != nil {
		return nil, err
	}
	if response.StatusCode >= http.StatusMultipleChoices {
		response.Body.Close()
		return nil, fmt.Errorf("%s: %s", method, response.Status)
	}
	return response, nil
}

// delete ends the session.
func (c *streams) delete() error {
	response, err := c.onSession(http.MethodDelete)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// listen opens the stream of the session.
func (c *streams) listen() error {
	response, err := c.onSession(http.MethodGet)
	if err != nil {
		return err
	}
	c.reading.Go(func() {
		defer response.Body.Close()
		c.take(response.Body)
	})
	return nil
}
