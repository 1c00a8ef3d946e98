package upstream_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpd/mcpd/internal/federation/upstream"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// flood is a server of revision 2025-11-25 without a network.
type flood struct {
	// tools returns the response to a tools/list request: the media type and the text.
	tools func(id, cursor string) (kind, text string)
	// stream returns the content of the server's stream; nil means that it has none.
	stream func() io.Reader
}

func (f flood) RoundTrip(r *http.Request) (*http.Response, error) {
	stream := func(status int, kind string, body io.Reader) (*http.Response, error) {
		return &http.Response{
			StatusCode: status, Status: http.StatusText(status), Request: r, Header: http.Header{"Content-Type": {kind}}, Body: io.NopCloser(body),
		}, nil
	}
	answer := func(status int, kind, text string) (*http.Response, error) {
		return stream(status, kind, strings.NewReader(text))
	}
	if r.Method == http.MethodGet && f.stream != nil {
		return stream(http.StatusOK, "text/event-stream", f.stream())
	}
	if r.Method != http.MethodPost {
		return answer(http.StatusMethodNotAllowed, "", "")
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Cursor string }
	}
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&m); err != nil {
		return nil, err
	}
	switch m.Method {
	case "initialize":
		return answer(http.StatusOK, "application/json", fmt.Sprintf(
			`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"flood","version":"1"}}}`, m.ID))
	case "tools/list":
		kind, text := f.tools(string(m.ID), m.Params.Cursor)
		return answer(http.StatusOK, kind, text)
	case "notifications/initialized":
		return answer(http.StatusAccepted, "", "")
	}
	return answer(http.StatusBadRequest, "", "")
}

// at returns the target of the server, and the options to connect.
func (f flood) at(t *testing.T) (upstream.Target, upstream.Options) {
	o, _ := options(t)
	o.Transport = func(grant.HTTP) http.RoundTripper { return f }
	return upstream.Target{Name: "flood", URL: "http://flood.test/mcp"}, o
}

func TestList_tooLarge(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIPPED with -short: much text, and no more goroutines than a small list has")
	}
	const size = 3 << 20
	pages := 0
	target, o := flood{tools: func(id, _ string) (kind, text string) {
		pages++
		return "application/json", fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"t%d","inputSchema":{"type":"object"},"description":%q}],"nextCursor":"%d"}}`,
			id, pages, strings.Repeat("x", size), pages)
	}}.at(t)
	l, err := upstream.Dial(t.Context(), target, o)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, err = l.List(t.Context())
	if want := "tools/list: the lists of the server are longer than 16777216 bytes"; err == nil || err.Error() != want || pages != 6 {
		t.Errorf("after %d pages: %v; want %s", pages, err, want)
	}
}

func TestServer_endlessListChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var read atomic.Int32
		target, o := flood{tools: func(id, _ string) (kind, text string) {
			n := read.Add(1)
			return "text/event-stream", fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n"+
				"data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"tools\":[{\"name\":\"t%d\",\"inputSchema\":{\"type\":\"object\"}}]}}\n\n", id, n)
		}}.at(t)
		pool := upstream.NewPool(o, func() {}, func(string, string) {})
		pool.SetTargets([]upstream.Target{target})
		time.Sleep(time.Minute)
		if n := read.Load(); n < 5 || n > 20 {
			t.Errorf("its lists are read %d times in a minute", n)
		}
		pool.Close()
	})
}

// late is a reader that returns after a delay.
type late struct {
	after time.Duration
	io.Reader
}

func (l *late) Read(p []byte) (int, error) {
	time.Sleep(l.after)
	l.after = 0
	return l.Reader.Read(p)
}

func TestServer_reconnectWithLargeLists(t *testing.T) {
	const during = 50 * time.Second
	for size, bounds := range map[int][2]int{3_500_000: {3, 3}, 10: {6, 8}} {
		synctest.Test(t, func(t *testing.T) {
			var read atomic.Int32
			tools := fmt.Sprintf(`"result":{"tools":[{"name":"t","inputSchema":{"type":"object"},"description":%q}]}`, strings.Repeat("x", size))
			target, o := flood{
				tools: func(id, _ string) (kind, text string) {
					read.Add(1)
					return "application/json", `{"jsonrpc":"2.0","id":` + id + `,` + tools + `}`
				},
				stream: func() io.Reader { // which ends the connection
					return &late{time.Second, strings.NewReader("data: {\"a\":1,\"a\":1}\n\n")}
				},
			}.at(t)
			pool := upstream.NewPool(o, func() {}, func(string, string) {})
			pool.SetTargets([]upstream.Target{target})
			time.Sleep(during)
			if n := int(read.Load()); n < bounds[0] || n > bounds[1] {
				t.Errorf("lists of %d bytes are read %d times within %s", size, n, during)
			}
			pool.Close()
			time.Sleep(time.Second) // until nobody reads
		})
	}
}

func TestSSEFilter_retry(t *testing.T) {
	for _, retry := range []string{"1", "-5", "18446744073710"} { // the last one overflows in nanoseconds
		synctest.Test(t, func(t *testing.T) {
			var streams atomic.Int32
			server := flood{
				tools: func(id, _ string) (kind, text string) {
					return "application/json", `{"jsonrpc":"2.0","id":` + id + `,"result":{"tools":[]}}`
				},
				stream: func() io.Reader {
					return strings.NewReader(fmt.Sprintf("retry: %s\nid: %d\n\n", retry, streams.Add(1)))
				},
			}
			target, o := server.at(t)
			pool := upstream.NewPool(o, func() {}, func(string, string) {})
			pool.SetTargets([]upstream.Target{target})
			time.Sleep(time.Minute)
			if n := streams.Load(); n < 1 || n > 601 {
				t.Errorf("retry: %s: its stream is opened %d times in a minute", retry, n)
			}
			pool.Close()
		})
	}
}
