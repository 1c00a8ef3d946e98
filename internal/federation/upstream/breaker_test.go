package upstream_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/mcpd/mcpd/internal/federation/upstream"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// interceptor is a round tripper that can answer messages in place of a server.
type interceptor struct {
	next   http.RoundTripper
	answer func(out *http.Request, text []byte) (*http.Response, bool)
}

func (w *interceptor) RoundTrip(out *http.Request) (*http.Response, error) {
	if out.Body == nil {
		return w.next.RoundTrip(out)
	}
	text, err := io.ReadAll(out.Body)
	if err != nil {
		return nil, err
	}
	if resp, mine := w.answer(out, text); mine {
		if resp == nil {
			return nil, errors.New("nobody is there")
		}
		return resp, nil
	}
	sent := out.Clone(out.Context())
	sent.Body = io.NopCloser(bytes.NewReader(text))
	return w.next.RoundTrip(sent)
}

// over sends the messages of a connection through a way.
func over(t *testing.T, answer func(out *http.Request, text []byte) (*http.Response, bool)) upstream.Options {
	o, _ := options(t)
	next := o.Transport(grant.HTTP{})
	o.Transport = func(grant.HTTP) http.RoundTripper { return &interceptor{next, answer} }
	return o
}

// silent returns a way that answers no calls of the tool "waits" and no notifications about
// them. The channel receives when a call has arrived.
func silent(t *testing.T) (upstream.Options, <-chan struct{}) {
	reached := make(chan struct{}, 1)
	return over(t, func(out *http.Request, text []byte) (*http.Response, bool) {
		call := bytes.Contains(text, []byte(`"waits"`))
		if !call && !bytes.Contains(text, []byte("notifications/cancelled")) {
			return nil, false
		}
		if call {
			reached <- struct{}{}
			<-out.Context().Done()
		}
		return nil, true
	}), reached
}

// calls makes calls of a tool, and cancels each with a cause after it has arrived.
func calls(t *testing.T, l *upstream.Conn, n int, reached <-chan struct{}, cause error) {
	t.Helper()
	for range n {
		c := l.Start(t.Context(), upstream.Request{Method: upstream.MethodTool, Name: "waits"}, nil)
		if cause != nil {
			<-reached
			c.Cancel(cause)
		}
		if reply, err := c.Next(t.Context()); err == nil {
			t.Fatalf("the call ends with %+v", reply)
		}
	}
}

func isDead(l *upstream.Conn) bool {
	select {
	case <-l.Done():
		return true
	default:
		return false
	}
}

// dialOver connects to a lab over HTTP.
func dialOver(t *testing.T, o upstream.Options) *upstream.Conn {
	t.Helper()
	l, err := upstream.Dial(t.Context(), targetsByTransport(t)["stateless"], o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestCircuitBreaker_failures(t *testing.T) {
	o := over(t, func(_ *http.Request, text []byte) (*http.Response, bool) {
		if !bytes.Contains(text, []byte(`"waits"`)) {
			return nil, false
		}
		return &http.Response{StatusCode: http.StatusBadGateway, Status: "502 Bad Gateway", Header: http.Header{}, Body: http.NoBody}, true
	})
	l := dialOver(t, o)
	calls(t, l, 4, nil, nil)
	call(t, l, "fails", `{}`) // an error of the server is a response
	calls(t, l, 4, nil, nil)
	if isDead(l) {
		t.Fatalf("it is given up for %v", l.Err())
	}
	calls(t, l, 1, nil, nil)
	if !isDead(l) || !errors.Is(l.Err(), upstream.ErrCircuitOpen) {
		t.Errorf("after five failures the error is %v", l.Err())
	}
}

func TestCircuitBreaker_timeouts(t *testing.T) {
	o, reached := silent(t)
	l := dialOver(t, o)
	calls(t, l, 4, reached, context.DeadlineExceeded)
	call(t, l, "echo", `{}`)
	calls(t, l, 4, reached, context.DeadlineExceeded)
	if isDead(l) {
		t.Fatalf("it is given up for %v", l.Err())
	}
	calls(t, l, 1, reached, context.DeadlineExceeded)
	if !isDead(l) || !errors.Is(l.Err(), upstream.ErrCircuitOpen) {
		t.Errorf("after five timeouts the error is %v", l.Err())
	}
}

func TestCircuitBreaker_cancelledCalls(t *testing.T) {
	o, reached := silent(t)
	l := dialOver(t, o)
	calls(t, l, 20, reached, context.Canceled)
	call(t, l, "echo", `{}`)
}

// blockingBody is a response body with one word that then blocks. It signals that the word was read.
type blockingBody struct {
	word  string
	ended <-chan struct{}
	read  chan<- struct{}
}

func (b *blockingBody) Read(p []byte) (int, error) {
	if b.word != "" {
		n := copy(p, b.word)
		b.word = b.word[n:]
		return n, nil
	}
	b.read <- struct{}{}
	<-b.ended
	return 0, io.ErrUnexpectedEOF
}

func (b *blockingBody) Close() error { return nil }

func TestCircuitBreaker_slowTool(t *testing.T) {
	reached := make(chan struct{}, 1)
	l := dialOver(t, over(t, func(out *http.Request, text []byte) (*http.Response, bool) {
		if !bytes.Contains(text, []byte(`"waits"`)) {
			return nil, false
		}
		body := &blockingBody{": I am at it\n\n", out.Context().Done(), reached}
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body}, true
	}))
	calls(t, l, 20, reached, context.DeadlineExceeded)
	call(t, l, "echo", `{}`)
}

func TestCircuitBreaker_oversizedResults(t *testing.T) {
	for _, name := range []string{"a long answer", "deep nesting", "an event without an end"} {
		t.Run(name, func(t *testing.T) {
			target, end := broken(t, faults[name].answer)
			defer end()
			l, _ := dial(t, target)
			for range 6 {
				if _, err := l.Start(t.Context(), upstream.Request{Method: upstream.MethodTool, Name: "broken"}, nil).Next(t.Context()); err == nil {
					t.Fatal("it is an answer")
				}
			}
			call(t, l, "echo", `{}`)
		})
	}
}

func TestPool_callsWhileUnreachable(t *testing.T) {
	t.Parallel()
	target, end := broken(t, faults["a failure of the server"].answer)
	defer end()
	pool, listed := newPool(t)
	pool.SetTargets([]upstream.Target{target})
	until(t, listed, func() bool { return pool.State("broken").Listing != nil })
	r := upstream.Request{Method: upstream.MethodTool, Name: "broken"}
	for range 5 {
		c, err := pool.Start(t.Context(), "broken", r, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Next(t.Context()); err == nil {
			t.Fatal("it has answered")
		}
	}
	_, err := pool.Start(t.Context(), "broken", r, nil)
	if gone, ok := errors.AsType[*upstream.UnreachableError](err); !ok || gone.RetryAfter <= 0 || !errors.Is(err, upstream.ErrCircuitOpen) {
		t.Errorf("the sixth call ends with %v", err)
	}
	until(t, listed, func() bool {
		c, err := pool.Start(t.Context(), "broken", upstream.Request{Method: upstream.MethodTool, Name: "echo"}, nil)
		if err == nil {
			_, err = c.Next(t.Context())
		}
		return err == nil
	})
}
