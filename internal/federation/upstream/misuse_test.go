package upstream_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/federation/upstream"
)

// rudeness are invalid lines of a program, with part of the error. ID is the id of the request.
var rudeness = map[string]struct{ line, said string }{
	"a member twice":           {`{"jsonrpc":"2.0","id":ID,"id":7,"result":{}}`, "a message that is rejected: an object has two members of the same name"},
	"a member twice, deep":     {`{"jsonrpc":"2.0","id":ID,"result":{"content":[],"_meta":{"a":1,"\u0061":2}}}`, "a message that is rejected: an object has two members of the same name"},
	"deep nesting":             {`{"jsonrpc":"2.0","id":ID,"result":{"content":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}}`, "nested deeper than the limit of 64 levels"},
	"a long line":              {`{"jsonrpc":"2.0","id":ID,"result":{"content":[],"x":"` + strings.Repeat("x", 64<<10) + `"}}`, "the server sent a message longer than 65536 bytes"},
	"bytes that are no UTF-8":  {"{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"content\":[],\"x\":\"\xff\"}}", "the JSON text is not valid UTF-8"},
	"a number that is none":    {`{"jsonrpc":"2.0","id":ID,"result":{"content":[],"x":1e999}}`, "a number is outside the range of a 64-bit float"},
	"two messages":             {`{"jsonrpc":"2.0","id":ID,"result":{"content":[]}}{}`, "there is text after the JSON value"},
	"JSON that is no message":  {`{"jsonrpc":"2.0"}`, "invalid JSON-RPC message"},
	"a notification of no one": {`{"jsonrpc":"2.0","method":"notifications/x","method":"notifications/y"}`, "a message that is rejected: an object has two members of the same name"},
}

// rude is a server of an earlier revision that answers one method with one of these lines, both
// named by its arguments. It does not answer calls of its tool "waits".
func rude() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Name string }
		}
		switch err := json.Unmarshal(lines.Bytes(), &m); {
		case err != nil || m.ID == nil || m.Params.Name == "waits":
			continue
		case m.Method == os.Args[3]:
			fmt.Println(strings.ReplaceAll(rudeness[os.Args[2]].line, "ID", string(m.ID)))
		case m.Method == "initialize":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"rude","version":"1"}}}`+"\n", m.ID)
		case m.Method == "tools/list":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[]}}`+"\n", m.ID)
		default:
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`+"\n", m.ID)
		}
	}
}

// rudeAt returns the target of such a program.
func rudeAt(t *testing.T, name, method string) upstream.Target {
	t.Helper()
	p := program(t, "rude")
	p.Name, p.Command, p.MaxMessage = name, append(p.Command, name, method), 64<<10
	return p
}

func TestStdioServer_invalidLine(t *testing.T) {
	pool, listed := newPool(t)
	places := []upstream.Target{program(t, "attentive")}
	for name := range rudeness {
		places = append(places, rudeAt(t, name, upstream.MethodTool))
	}
	pool.SetTargets(places)
	if err := pool.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	begin := func(server, tool string) *upstream.Call {
		t.Helper()
		c, err := pool.Start(t.Context(), server, upstream.Request{Method: upstream.MethodTool, Name: tool}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	for name, rude := range rudeness {
		good, before := begin("attentive", "waits"), pool.State(name).Since
		waits := begin(name, "waits")
		for _, c := range []*upstream.Call{begin(name, "x"), waits} {
			if reply, err := c.Next(t.Context()); err == nil || !strings.Contains(err.Error(), rude.said) {
				t.Errorf("%s: a call ends with %s, %v", name, reply.Result, err)
			}
		}
		until(t, listed, func() bool { return pool.State(name).Since != before })
		if err := pool.State(name).Err; err != nil && !strings.Contains(err.Error(), rude.said) {
			t.Errorf("%s: dial: %v", name, err)
		}
		if _, err := begin("attentive", "begun").Next(t.Context()); err != nil || good.Ended() {
			t.Fatalf("%s fails calls of another server: %v", name, err)
		}
		good.Cancel(context.Canceled)
	}
}

func TestStdioServer_invalidGreeting(t *testing.T) {
	for name, rude := range rudeness {
		o, _ := options(t)
		l, err := upstream.Dial(t.Context(), rudeAt(t, name, "initialize"), o)
		if err == nil {
			t.Errorf("%s: it is reached: %v", name, l.Close())
		} else if !strings.Contains(err.Error(), rude.said) {
			t.Errorf("%s: dial: %v", name, err)
		}
	}
}

// unread is a server of an earlier revision that stops reading within a message longer than its
// buffer. It then sends as many requests as may be unanswered, and a notification.
func unread() {
	for lines := bufio.NewReaderSize(os.Stdin, 4<<10); ; {
		line, err := lines.ReadSlice('\n')
		if err != nil {
			break // bufio.ErrBufferFull
		}
		var m struct {
			ID     json.RawMessage
			Method string
		}
		switch err := json.Unmarshal(line, &m); {
		case err != nil || m.ID == nil:
		case m.Method == "initialize":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"unread","version":"1"}}}`+"\n", m.ID)
		default:
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`+"\n", m.ID)
		}
	}
	for n := range 64 {
		fmt.Printf(`{"jsonrpc":"2.0","id":"ping %d","method":"ping"}`+"\n", n)
	}
	fmt.Println(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	stay()
}

// The message that the program does not read fits in no pipe, and 64 answers wait behind it. An
// attempt to send each of them would take 10 seconds.
func TestStdioServer_unreadInput(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20)
	t.Run("dial", func(t *testing.T) {
		t.Parallel()
		ctx, cancel := context.WithCancelCause(t.Context())
		defer cancel(nil)
		o, _ := options(t)
		o.Version = long // part of the first message
		o.Changed = func(string, string) { cancel(errors.New("too late")) }
		_, err := upstream.Dial(ctx, program(t, "unread"), o)
		if err == nil || err.Error() != "too late" {
			t.Errorf("dial ends with %v", err)
		}
	})
	t.Run("close", func(t *testing.T) {
		t.Parallel()
		blocked := make(chan struct{})
		o, _ := options(t)
		o.Changed = func(string, string) { close(blocked) }
		l, err := upstream.Dial(t.Context(), program(t, "unread"), o)
		if err != nil {
			t.Fatal(err)
		}
		c := l.Start(t.Context(), upstream.Request{Method: upstream.MethodTool, Name: "x", Arguments: json.RawMessage(`{"long":"` + long + `"}`)}, nil)
		<-blocked
		_ = l.Close()
		if _, err := c.Next(t.Context()); !errors.Is(err, upstream.ErrClosed) {
			t.Errorf("the call ends with %v", err)
		}
	})
}
