package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// stormTools are called by one client in a storm; other clients call add.
const stormTools = `
tool "add" {
  timeout = "%s"
  input "a" { type = number }
  input "b" { type = number }
  run = <<JS
    return { sum: input.a + input.b };
  JS
}
tool "large" {
  timeout = "5s"
  run     = <<JS
    return "x".repeat(4e6);
  JS
}
tool "rows" {
  timeout = "5s"
  run     = <<JS
    const rows = [];
    for (let i = 0; i < 40000; i++) rows.push({ id: i, name: "n" + i, text: "the text of a row in a table that is long " + i });
    return rows;
  JS
}
tool "hungry" {
  timeout = "1s"
  run     = <<JS
    const kept = [];
    for (;;) kept.push(new Uint8Array(1e8).fill(1));
  JS
}
tool "doubling" {
  timeout = "1s"
  run     = <<JS
    let a = [1];
    for (;;) a = a.concat(a);
  JS
}
tool "sum" {
  timeout = "%s"
  input "n" { type = integer }
  run = <<JS
    let sum = 0;
    for (let i = 0; i < input.n; i++) sum = (sum * 31 + i) %% 1000003;
    return { sum };
  JS
}
`

// client is a client that the server can identify.
type client struct {
	*daemon
	header http.Header
	http   *http.Client
}

// call calls a tool over REST, and returns the error response, if any.
func (c *client) call(ctx context.Context, tool, arguments string) (refusal string, err error) {
	request, err := c.request(http.MethodPost, "/mcp/execute", fmt.Appendf(nil, `{"tool":%q,"arguments":%s}`, tool, arguments), c.header)
	if err != nil {
		return "", err
	}
	response, err := c.http.Do(request.WithContext(ctx))
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode == http.StatusOK {
		return "", err
	}
	return fmt.Sprintf("%d %.200s", response.StatusCode, body), nil
}

// from returns an HTTP client that calls from an address.
func from(address string) *http.Client {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	return &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, MaxIdleConnsPerHost: 64}}
}

// twoClients is a server with two clients.
type twoClients struct{ attacker, other client }

// serveTwoClients starts a server that identifies clients by key or only by address.
func serveTwoClients(t *testing.T, keys bool) twoClients {
	t.Helper()
	dir := t.TempDir()
	config := "server {\n  name = \"storm\"\n  version = \"1.0.0\"\n}\n"
	if keys {
		config += "auth \"api_key\" \"people\" {}\n"
	}
	timeout := "2s" // on a slow machine, calls without a wait must not time out
	if os.Getenv("MCPD_LONG") != "" {
		timeout = "1s"
	}
	write(t, filepath.Join(dir, "mcpd.hcl"), config)
	write(t, filepath.Join(dir, "tools.d", "storm.hcl"), fmt.Sprintf(stormTools, timeout, timeout))
	program, err := exec.LookPath("mcpd")
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "XDG_STATE_HOME="+dir)
	header := func(name string) http.Header {
		if !keys {
			return nil
		}
		code, key, said := inProcess(t, dir, env, "key", "new", name)
		if code != 0 {
			t.Fatal(said)
		}
		return http.Header{"Authorization": {"Bearer " + strings.TrimSpace(key)}}
	}
	attacker, other := header("attacker"), header("other")
	d, err := startDaemon(program, dir, env, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.kill)
	s := twoClients{client{d, attacker, from("127.0.0.1")}, client{d, other, from("127.0.0.1")}}
	if !keys {
		s.attacker.http = from("127.0.0.2")
	}
	return s
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// flood keeps 32 connections of the attacker busy until stop is called, which cancels
// their calls. answered is closed after this number of responses.
func (s twoClients) flood(calls [][2]string, answers int64) (answered <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	var begun, ended atomic.Int64
	enough := make(chan struct{})
	for range 32 {
		all.Go(func() {
			for ctx.Err() == nil {
				c := calls[begun.Add(1)%int64(len(calls))]
				_, _ = s.attacker.call(ctx, c[0], c[1]) // the result does not matter
				if ended.Add(1) == answers {
					close(enough)
				}
			}
		})
	}
	return enough, func() {
		cancel()
		all.Wait()
	}
}

// 32 connections of one client make calls that exhaust memory, time or bandwidth, while
// four connections of another client make fast calls.
func TestStorm_costsOthersNoCalls(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: this system has no second loopback address")
	}
	for _, test := range []struct {
		name  string
		keys  bool
		calls [][2]string
		tool  string
		args  string
		raced bool // runs with the race detector and -short, too
	}{
		{"memory bombs", true, [][2]string{{"hungry", "{}"}, {"doubling", "{}"}}, "add", `{"a":1,"b":2}`, false},
		{"large results", true, [][2]string{{"large", "{}"}, {"rows", "{}"}}, "add", `{"a":1,"b":2}`, false},
		{"large results of an address", false, [][2]string{{"large", "{}"}, {"rows", "{}"}}, "add", `{"a":1,"b":2}`, false},
		{"endless calls of the same tool", true, [][2]string{{"sum", `{"n":1000000000}`}}, "sum", `{"n":100}`, false},
		{"long calls of the same tool", false, [][2]string{{"sum", `{"n":200000}`}}, "sum", `{"n":100}`, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if slower > 1 && testing.Short() && !test.raced {
				t.Skip("SKIPPED with -short: one row runs with the race detector")
			}
			s := serveTwoClients(t, test.keys)
			answers, calls := int64(10), 25
			if os.Getenv("MCPD_LONG") != "" {
				answers, calls = 40, 100
			}
			answered, stop := s.flood(test.calls, answers)
			defer stop()
			var mu sync.Mutex
			refused, took := map[string]int{}, []time.Duration(nil)
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					for n, over := 0, false; n < calls/slower || !over; n++ {
						began := time.Now()
						refusal, err := s.other.call(t.Context(), test.tool, test.args)
						mu.Lock()
						took = append(took, time.Since(began))
						if err != nil {
							t.Error(err)
						} else if refusal != "" {
							refused[refusal]++
						}
						mu.Unlock()
						select {
						case <-answered:
							over = true
						default:
						}
					}
				})
			}
			all.Wait()
			bad := 0
			for _, n := range refused {
				bad += n
			}
			slices.Sort(took)
			p99 := took[len(took)*99/100]
			t.Logf("of %d calls %d failed; 99%% took no more than %v", len(took), bad, p99)
			if bad*100 > len(took) {
				t.Errorf("of %d calls %d failed: %v", len(took), bad, refused)
			}
			if os.Getenv("MCPD_LONG") != "" && p99 > 500*time.Millisecond {
				t.Error("calls of the other client take too long")
			}
		})
	}
}
