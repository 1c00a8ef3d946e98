package upstream_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpd/mcpd/internal/federation/upstream"
)

// attempts is a log that records failed connects, and the delay after each.
type attempts struct {
	slog.Handler

	mu     sync.Mutex
	times  []time.Time
	pauses []time.Duration
}

func (a *attempts) Enabled(context.Context, slog.Level) bool { return true }

func (a *attempts) Handle(_ context.Context, r slog.Record) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	r.Attrs(func(attr slog.Attr) bool {
		if attr.Key == "again_in" {
			a.times, a.pauses = append(a.times, r.Time), append(a.pauses, attr.Value.Duration())
		}
		return true
	})
	return nil
}

// Time in a synctest bubble stands still while a program runs.
func TestStdioServer_restartBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &attempts{}
		pool := upstream.NewPool(upstream.Options{Version: "test", Logger: slog.New(log)}, func() {}, nil)
		pool.SetTargets([]upstream.Target{program(t, "crash")})
		time.Sleep(5 * time.Minute)
		state := pool.State("crash")
		pool.Close()
		if want := "the program has ended: exit status 3"; state.Err == nil || state.Err.Error() != want {
			t.Errorf("it is not reached as %v, want %s", state.Err, want)
		}
		const longest = time.Minute
		wait := 500 * time.Millisecond
		for n, pause := range log.pauses {
			if pause < wait/2 || pause > wait {
				t.Errorf("delay after failure %d is %s, want %s to %s", n+1, pause, wait/2, wait)
			}
			if n > 0 && log.times[n].Sub(log.times[n-1]) != log.pauses[n-1] {
				t.Errorf("restarted after %s, want %s", log.times[n].Sub(log.times[n-1]), log.pauses[n-1])
			}
			wait = min(2*wait, longest)
		}
		if n := len(log.pauses); n < 8 {
			t.Errorf("started %d times within 5 minutes", n)
		}
	})
}

// mortal is a server of an earlier revision that exits when its tool is called, unless a file
// says that it already has.
func mortal() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal(lines.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		result := `"error":{"code":-32601,"message":"no"}`
		switch m.Method {
		case "initialize":
			result = `"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"mortal","version":"1"}}`
		case "tools/list":
			result = `"result":{"tools":[{"name":"x","inputSchema":{"type":"object"}}]}`
		case "tools/call":
			if os.Mkdir(os.Args[2], 0o700) == nil {
				syscall.Exit(4)
			}
			result = `"result":{"content":[],"structuredContent":{"lives":2}}`
		}
		fmt.Printf("{\"jsonrpc\":\"2.0\",\"id\":%s,%s}\n", m.ID, result)
	}
}

func TestStdioServer_restart(t *testing.T) {
	target := program(t, "mortal")
	target.Command = append(target.Command, filepath.Join(t.TempDir(), "has ended"))
	synctest.Test(t, func(t *testing.T) {
		listed := make(chan struct{}, 100)
		pool := upstream.NewPool(upstream.Options{Version: "test", Logger: slog.New(slog.DiscardHandler)}, func() { listed <- struct{}{} }, nil)
		defer pool.Close()
		pool.SetTargets([]upstream.Target{target})
		offered := func() bool { return pool.State("mortal").Listing != nil }
		until(t, listed, offered)
		call := func() (upstream.Reply, error) {
			c, err := pool.Start(t.Context(), "mortal", upstream.Request{Method: upstream.MethodTool, Name: "x"}, nil)
			if err != nil {
				return upstream.Reply{}, err
			}
			return c.Next(t.Context())
		}
		began := time.Now()
		if reply, err := call(); !errors.Is(err, upstream.ErrProcessExited) || err.Error() != "the program has ended: exit status 4" {
			t.Errorf("the call that it ends at ends with %s, %v", reply.Result, err)
		}
		until(t, listed, func() bool { return !offered() })
		if _, err := call(); !errors.Is(err, upstream.ErrProcessExited) {
			t.Errorf("a call while disconnected ends with %v", err)
		}
		until(t, listed, offered)
		if reply, err := call(); err != nil || string(reply.Result) != `{"content":[],"structuredContent":{"lives":2}}` {
			t.Errorf("the next call ends with %s, %v", reply.Result, err)
		}
		if took := time.Since(began); took < 250*time.Millisecond || took > 500*time.Millisecond {
			t.Errorf("reconnected after %s", took)
		}
	})
}

func TestStdioServer_exitError(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"crash": "the program has ended: exit status 3", "late": "the program has ended: exit status 4; its last words: its last word",
		"dies": "the program has ended: exit status 137 (killed)", "shuts": "the program has closed its output",
		"wordy":   "the program has ended: exit status 3; its last words: config missing: [secret:key] \ufffd[31m" + strings.Repeat("é", 82) + "…",
		"reasons": "the program has closed its output; its last words: out of paper",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, log := options(t)
			o.Redact = strings.NewReplacer("hunter2", "[secret:key]").Replace
			_, err := upstream.Dial(t.Context(), program(t, name), o)
			if err == nil || err.Error() != want {
				t.Errorf("%v, want %s", err, want)
			}
			if name == "late" && !strings.Contains(log.String(), "its last word") {
				t.Errorf("the log is %s", log)
			}
		})
	}
}

func TestStdioServer_maxDepth(t *testing.T) {
	for depth, want := range map[int]string{0: "behind 1", upstream.MaxDepth - 1: "behind 4", upstream.MaxDepth: ""} {
		o, log := options(t)
		o.Environment = func() ([]string, int) { return nil, depth }
		_, err := upstream.Dial(t.Context(), program(t, "deep"), o)
		if deep := err != nil && strings.HasPrefix(err.Error(), "this server is the upstream of 4 servers"); err == nil || deep != (want == "") {
			t.Errorf("behind %d servers: %v", depth, err)
		}
		if !strings.Contains(log.String(), want) || want == "" && log.String() != "" {
			t.Errorf("behind %d servers the log is %s", depth, log)
		}
	}
}

func TestStdioServer_startTimeout(t *testing.T) {
	t.Parallel()
	o, log := options(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	go func() {
		for !strings.Contains(log.String(), "waiting for the database") && ctx.Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		cancel(errors.New("too late"))
	}()
	_, err := upstream.Dial(ctx, program(t, "stuck"), o)
	if want := "too late; its last words: waiting for the database"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
