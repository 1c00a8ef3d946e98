package upstream

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
)

// asker is a server of revision 2025-11-25 without a network that sends requests on its own
// stream. It records the answers; if deaf, it reads none.
type asker struct {
	asks io.Reader // the stream
	deaf bool

	mu      sync.Mutex
	answers []string
	open    int // answers not read
	most    int // maximum of open
}

func (a *asker) RoundTrip(r *http.Request) (*http.Response, error) {
	answer := func(status int, kind string, body io.Reader) (*http.Response, error) {
		return given(r, status, kind, body), nil
	}
	switch r.Method {
	case http.MethodGet:
		return answer(http.StatusOK, "text/event-stream", a.asks)
	case http.MethodDelete:
		return answer(http.StatusNoContent, "", http.NoBody)
	}
	m, text, err := sentBy(r)
	switch {
	case err != nil:
		return nil, err
	case m.method == "initialize":
		return answer(http.StatusOK, "application/json", strings.NewReader(
			`{"jsonrpc":"2.0","id":`+string(m.id)+`,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"asker","version":"1"}}}`))
	case m.id == nil:
		return answer(http.StatusAccepted, "", http.NoBody)
	case m.method != "":
		return answer(http.StatusOK, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":`+string(m.id)+`,"error":{"code":-32601,"message":"no"}}`))
	}
	a.take(r, text)
	if r.Context().Err() != nil {
		return nil, r.Context().Err()
	}
	return answer(http.StatusAccepted, "", http.NoBody)
}

// take reads an answer, or blocks until it is abandoned.
func (a *asker) take(r *http.Request, text []byte) {
	a.mu.Lock()
	a.answers = append(a.answers, string(text))
	a.open++
	a.most = max(a.most, a.open)
	a.mu.Unlock()
	if a.deaf {
		<-r.Context().Done()
	}
	a.mu.Lock()
	a.open--
	a.mu.Unlock()
}

// state returns the unread answers, their maximum, and all answers so far.
func (a *asker) state() (open, most int, answers []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.open, a.most, a.answers
}

// dialed connects to a server.
func dialed(t *testing.T, server http.RoundTripper, transport string) *Conn {
	t.Helper()
	l, err := Dial(t.Context(), Target{Name: "asker", URL: "http://asker.test/mcp", Transport: transport}, playedBy(server))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// endless repeats a request without end, each time with another id.
type endless struct {
	request string
	asked   int
	left    bytes.Buffer
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left.Len() == 0 {
		e.asked++
		fmt.Fprintf(&e.left, "data: {\"jsonrpc\":\"2.0\",\"id\":%d,%s}\n\n", e.asked, e.request)
	}
	return e.left.Read(p)
}

// demands are requests that go to no client.
var demands = []string{`"method":"ping"`, `"method":"elicitation/create","params":{"message":"Sure?"}`, `"method":"tasks/list"`}

func TestServerRequest_answersNotRead(t *testing.T) {
	for _, request := range demands {
		synctest.Test(t, func(t *testing.T) {
			stream := &endless{request: request}
			a := &asker{asks: stream, deaf: true}
			l := dialed(t, a, TransportStreamable)
			synctest.Wait()
			if open, _, _ := a.state(); open != maxServerRequests || stream.asked > maxServerRequests+2 || l.Err() != nil {
				t.Errorf("%s: %d of %d answers wait: %v", request, open, stream.asked, l.Err())
			}
			began := time.Now()
			<-l.Done()
			if !errors.Is(l.Err(), errAnswerNotRead) || time.Since(began) > sendTimeout {
				t.Errorf("%s: after %s it is given up for %v", request, time.Since(began), l.Err())
			}
			_ = l.Close()
			if open, most, _ := a.state(); most != maxServerRequests || open != 0 {
				t.Errorf("%s: %d answers waited at once, %d remain", request, most, open)
			}
		})
	}
}

// older is the server with revision 2024-11-05: it has a single stream.
type older struct {
	asker
	stream *io.PipeReader
	to     *io.PipeWriter
}

func (o *older) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet {
		go func() { _, _ = io.WriteString(o.to, "event: endpoint\ndata: /messages\n\n") }()
		return given(r, http.StatusOK, "text/event-stream", o.stream), nil
	}
	resp, err := o.asker.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	body, err := io.ReadAll(resp.Body)
	go func() {
		_, _ = fmt.Fprintf(o.to, "data: %s\n\n", body)
		if bytes.Contains(body, []byte("serverInfo")) {
			_, _ = io.Copy(o.to, o.asks)
		}
	}()
	resp.StatusCode, resp.Body = http.StatusAccepted, http.NoBody
	return resp, err
}

func TestServerRequest_answersNotReadOverSSE(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &older{asker: asker{asks: &endless{request: demands[0]}, deaf: true}}
		o.stream, o.to = io.Pipe()
		l := dialed(t, o, TransportSSE)
		<-l.Done()
		_ = l.Close()
		if open, most, _ := o.state(); !errors.Is(l.Err(), errAnswerNotRead) || most != maxServerRequests || open != 0 {
			t.Errorf("%d answers waited at once, %d remain; connection error %v", most, open, l.Err())
		}
	})
}

func TestConn_closeWithAnswersNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &asker{asks: &endless{request: demands[0]}, deaf: true}
		l := dialed(t, a, TransportStreamable)
		synctest.Wait()
		began := time.Now()
		_ = l.Close()
		open, _, _ := a.state()
		if took := time.Since(began); took != 0 || open != 0 {
			t.Errorf("it takes %s, and %d answers are left", took, open)
		}
	})
}

func TestServerRequest_answersRead(t *testing.T) {
	for _, request := range demands {
		synctest.Test(t, func(t *testing.T) {
			silence, end := io.Pipe()
			a := &asker{asks: io.MultiReader(io.LimitReader(&endless{request: request}, 30_000), silence)}
			l := dialed(t, a, TransportStreamable)
			synctest.Wait()
			open, _, answers := a.state()
			if len(answers) < 4*maxServerRequests || open != 0 || len(l.filter.requests) != 0 || len(l.filter.slots) != 0 || l.Err() != nil {
				t.Errorf("%s: %d answers, %d unsent: %v", request, len(answers), len(l.filter.requests), l.Err())
			}
			_ = end.Close()
			_ = l.Close()
		})
	}
}

func TestServerRequest_placeholder(t *testing.T) {
	const nobody, method = `"message":"input requests are not allowed"`, `"code":-32601`
	long := strings.Repeat("A", 100<<10)
	for name, row := range map[string]struct{ request, want string }{
		"ping":                  {`"method":"ping"`, `"result":{}`},
		"ping with bad params":  {`"method":"ping","params":{"_meta":5,"x":"` + long + `"}`, `"result":{}`},
		"elicitation":           {`"method":"elicitation/create","params":{"message":"` + long + `"}`, nobody},
		"elicitation, bad":      {`"method":"elicitation/create","params":{"message":5,"x":"` + long + `"}`, nobody},
		"elicitation, bad meta": {`"method":"elicitation/create","params":{"_meta":[],"x":"` + long + `"}`, nobody},
		"sample, bad":           {`"method":"sampling/createMessage","params":["` + long + `"]`, nobody},
		"roots":                 {`"method":"roots/list","params":{"_meta":{"mcpd/asked":"7"}}`, nobody},
		"no method of clients":  {`"method":"` + long + `","params":{"x":1}`, method},
		"a method of servers":   {`"method":"completion/complete","params":{}`, method},
		"a notification":        {`"method":"notifications/cancelled","params":{"requestId":"` + long + `"}`, method},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := &asker{asks: strings.NewReader("data: {\"jsonrpc\":\"2.0\",\"id\":\"a\"," + row.request + "}\n\n")}
			l := dialed(t, a, TransportStreamable)
			synctest.Wait()
			if _, _, answers := a.state(); len(answers) != 1 || !strings.Contains(answers[0], row.want) || len(answers[0]) > 200 {
				t.Errorf("%s is answered with %d: %.300q", name, len(answers), answers)
			}
			_ = l.Close()
		})
	}
}

// kept returns the size of the requests that the filter stores.
func kept(w *messageFilter) (n int) {
	for _, d := range w.requests {
		n += len(d.params)
	}
	return n
}

func TestServerRequest_maxInputRequests(t *testing.T) {
	const size = 1000
	for method, may := range map[string]InputPolicy{methodElicit: {Elicit: true}, methodSample: {Sample: true}, methodRoots: {Roots: true}} {
		for _, allowed := range []bool{true, false} {
			most := maxInputRequests
			if !allowed {
				may, most = InputPolicy{}, 0
			}
			w := newMessageFilter(jsonguard.Limits{Bytes: 4 << 10, Depth: maxDepth, Tokens: maxTokens}, may, func(string, string) {})
			c := newCall(1, Request{Method: MethodTool}, nil, func(error) {})
			_ = w.open(c)
			for n := range maxInputRequests + 20 {
				text := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{"message":5,"x":%q}}`, n, method, strings.Repeat("A", size))
				seen, err := w.incoming([]byte(text), &stream{})
				if _, refused := w.takeRequest(fmt.Sprint(n)); err != nil || len(seen) > 200 || (refused == nil) != (n < most) {
					t.Errorf("%s %d: the client library sees %d bytes, %v; %v", method, n, len(seen), err, refused)
				}
			}
			if kept(w) != 0 || c.unsentAnswers != most {
				t.Errorf("%s: %d bytes of requests stored, %d open", method, kept(w), c.unsentAnswers)
			}
		}
	}
}

func TestServerRequest_callEnds(t *testing.T) {
	w, c := running()
	ask := func(id string) {
		if _, err := w.incoming([]byte(`{"jsonrpc":"2.0","id":`+id+`,"method":"elicitation/create","params":{"message":"Sure?"}}`), &stream{call: c}); err != nil {
			t.Fatal(err)
		}
	}
	ask(`"a"`)
	if kept(w) == 0 {
		t.Fatal("no state is stored for a request")
	}
	w.close(c)
	if d, err := w.takeRequest(`"a"`); kept(w) != 0 || d.call != nil || c.unsentAnswers != 0 || !errors.Is(err, errNoClient) {
		t.Errorf("%d bytes stored, call %v, request answered with %v", kept(w), d.call, err)
	}
	ask(`"a"`) // an id is free once its answer has been sent
	if len(w.slots) != 0 {
		t.Error("a request with a duplicate id is counted")
	}
	_, sent := w.outgoing([]byte(`{"jsonrpc":"2.0","id":"a","error":{}}`))
	ask(`"a"`) // no longer the id of the call
	if d, err := w.takeRequest(`"a"`); d.call != nil || !errors.Is(err, errNoClient) {
		t.Errorf("the ended call gets an input request: %v", err)
	}
	if sent(); c.unsentAnswers != 0 || len(w.requests) != 1 || len(w.slots) != 1 {
		t.Errorf("%d and %d unsent answers, %d requests", c.unsentAnswers, len(w.slots), len(w.requests))
	}
}

func TestIDOf(t *testing.T) {
	for id, want := range map[string]string{
		`1`: "seen", `"a"`: "seen", `9007199254740993`: "seen", `1e300`: "seen", `-1.5`: "seen", `null`: "dropped",
		`true`: "refused", `{}`: "refused", `[1]`: "refused", `"` + strings.Repeat("a", maxID) + `"`: "refused",
	} {
		w, _ := running()
		seen, err := w.incoming([]byte(`{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`), &stream{})
		got := "seen"
		if seen == nil {
			got = "dropped"
		}
		if errors.Is(err, errNotJSONRPC) {
			got = "refused"
		}
		if got != want {
			t.Errorf("a request with the id %.20s is %s", id, got)
		}
	}
}

func TestServerRequest_mark(t *testing.T) {
	for _, id := range []string{`"\u007f"`, "\"\x7f\"", "\"\U000E0001\"", "\"\u2028\"", `"<&>\\\""`, `"\ud800"`, `7`} {
		w, _ := running()
		seen, err := w.incoming([]byte(`{"jsonrpc":"2.0","id":`+id+`,"method":"elicitation/create","params":{}}`), &stream{})
		if err != nil {
			t.Fatal(err)
		}
		m, err := parse(seen)
		var mark string
		if err == nil {
			err = json.Unmarshal([]byte(tokenOf(m.params, "_meta", requestMarkKey)), &mark)
		}
		if err != nil || mark != id {
			t.Errorf("the mark of %q is %q: %v", id, mark, err)
		}
	}
}

func TestServerRequest_duplicateID(t *testing.T) {
	w, _ := running()
	var all []string
	for _, id := range []string{`7`, `7.0`, `"7"`, `7`} {
		seen, err := w.incoming([]byte(`{"jsonrpc":"2.0","id":`+id+`,"method":"ping"}`), &stream{})
		all = append(all, fmt.Sprint(len(seen) > 0, err))
	}
	if !slices.Equal(all, []string{"true <nil>", "false <nil>", "true <nil>", "false <nil>"}) || len(w.slots) != 2 {
		t.Errorf("they are seen: %q", all)
	}
}

func TestParse_nullID(t *testing.T) {
	var changed []string
	w := newMessageFilter(fuzzed, InputPolicy{}, func(method, uri string) { changed = append(changed, cmp.Or(uri, method)) })
	for _, text := range []string{`"method":"notifications/tools/list_changed"`, `"method":"notifications/resources/updated","params":{"uri":"lab://note"}`} {
		if seen, err := w.incoming(json.RawMessage(`{"jsonrpc":"2.0","id":null,`+text+`}`), &stream{}); seen != nil || err != nil {
			t.Errorf("the client library sees %q, %v", seen, err)
		}
	}
	if !slices.Equal(changed, []string{"notifications/tools/list_changed", "lab://note"}) {
		t.Errorf("it reports %q", changed)
	}
}
