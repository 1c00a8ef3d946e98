package bench

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/process/osproc"
	"github.com/mcpd/mcpd/serve"
)

// pair is the same call in two forms: served by mcpd and by the bare handler.
type pair struct {
	name       string
	most       float64 // maximum cost of mcpd relative to the bare handler
	mcpd, bare func(testing.TB) (call func())
}

func pairs() []pair {
	return []pair{
		{"http", 1, nativeOverHTTP, bareOverHTTP},
		{"stdio", 1, nativeOverStdio, bareOverStdio},
	}
}

func nativeOverHTTP(tb testing.TB) func() { return overHTTP(tb, handlerOf(tb, native(tb))) }

func bareOverHTTP(tb testing.TB) func() { return overHTTP(tb, http.HandlerFunc(bareHTTP)) }

func nativeOverStdio(tb testing.TB) func() {
	front := serve.New(native(tb), serve.Options{})
	tb.Cleanup(func() { _ = front.Shutdown(context.Background()) })
	return overStdio(tb, func(in io.Reader, out io.Writer) error { return front.Stdio(context.Background(), in, out) })
}

func bareOverStdio(tb testing.TB) func() { return overStdio(tb, bareStdio) }

// batch is the number of calls per measurement.
const batch = 200

// cost returns the processor time of a call in nanoseconds over one batch.
func cost(call func()) float64 {
	before := osproc.CPUTime()
	for range batch {
		call()
	}
	return float64(osproc.CPUTime()-before) / batch
}

// costs holds the measured costs of a pair, batch by batch.
type costs struct{ mcpd, bare, ratio []float64 }

// add measures one batch of each. They alternate, so other load on the machine affects
// both equally.
func (c *costs) add(mcpd, bare func()) {
	var m, b float64
	if len(c.ratio)%2 == 0 {
		m, b = cost(mcpd), cost(bare)
	} else {
		b, m = cost(bare), cost(mcpd)
	}
	c.mcpd, c.bare, c.ratio = append(c.mcpd, m), append(c.bare, b), append(c.ratio, m/b)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// BenchmarkNative compares a modern call of a Go tool with the bare handler. It
// compares processor time, including that of a minimal client. One op is one batch of
// each.
func BenchmarkNative(b *testing.B) {
	for _, p := range pairs() {
		b.Run(p.name, func(b *testing.B) {
			mcpd, bare := p.mcpd(b), p.bare(b)
			var c costs
			for b.Loop() {
				c.add(mcpd, bare)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(c.mcpd), "cpu-ns/op")
			b.ReportMetric(median(c.bare), "bare-cpu-ns/op")
			b.ReportMetric(median(c.ratio), "ratio")
		})
	}
}

// TestGoTool_cost checks the same comparison.
func TestGoTool_cost(t *testing.T) {
	if os.Getenv("MCPD_LONG") == "" {
		t.Skip("SKIPPED: set MCPD_LONG")
	}
	for _, p := range pairs() {
		t.Run(p.name, func(t *testing.T) {
			mcpd, bare := p.mcpd(t), p.bare(t)
			var c costs
			for range 401 {
				c.add(mcpd, bare)
			}
			t.Logf("%.0f ns, %.0f ns bare, ratio %.2f", median(c.mcpd), median(c.bare), median(c.ratio))
			if ratio := median(c.ratio); ratio > p.most {
				t.Errorf("a call costs %.2f times the processor time of a bare handler, want at most %.1f", ratio, p.most)
			}
		})
	}
}

// handlerOf returns the handler of a server.
func handlerOf(tb testing.TB, s *engine.Server) http.Handler {
	tb.Helper()
	front := serve.New(s, serve.Options{})
	h, err := front.Handler()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = front.Shutdown(context.Background()) })
	return h
}

// body is a call of the tool.
var body = modern("tools/call", `"name":"add","arguments":{"a":1,"b":2},`)

// overHTTP returns a function that makes a call on a persistent connection.
func overHTTP(tb testing.TB, h http.Handler) func() {
	tb.Helper()
	web := httptest.NewServer(h)
	tb.Cleanup(web.Close)
	return callAt(tb, web.Listener.Addr().String())
}

// callAt returns a function that makes a call to an address on a persistent connection.
func callAt(tb testing.TB, address string) func() {
	tb.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	request := fmt.Appendf(nil, "POST /mcp HTTP/1.1\r\nHost: %s\r\nUser-Agent: bench\r\nContent-Length: %d\r\nContent-Type: application/json\r\n"+
		"Accept: application/json, text/event-stream\r\nMcp-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: add\r\n\r\n%s",
		address, len(body), body)
	answers := bufio.NewReader(conn)
	return func() {
		if _, err := conn.Write(request); err != nil {
			tb.Fatal(err)
		}
		if err := skipAnswer(answers); err != nil {
			tb.Fatal(err)
		}
	}
}

// skipAnswer reads a response with as little work as possible.
func skipAnswer(r *bufio.Reader) error {
	line, err := r.ReadSlice('\n')
	if err != nil || !bytes.HasPrefix(line, []byte("HTTP/1.1 200 ")) {
		return fmt.Errorf("%q: %w", line, err)
	}
	length := 0
	for {
		if line, err = r.ReadSlice('\n'); err != nil {
			return err
		}
		if digits, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(digits))); err != nil {
				return err
			}
		}
		if len(line) == len("\r\n") {
			_, err = r.Discard(length)
			return err
		}
	}
}

// overStdio returns a function that makes a call over the pipes of a server.
func overStdio(tb testing.TB, serve func(in io.Reader, out io.Writer) error) func() {
	tb.Helper()
	in, toServer := pipe(tb)
	fromServer, out := pipe(tb)
	ended := make(chan error)
	go func() { ended <- serve(in, out) }()
	tb.Cleanup(func() {
		_ = toServer.Close()
		if err := <-ended; err != nil {
			tb.Error(err)
		}
	})
	line, answers := []byte(body+"\n"), bufio.NewReader(fromServer)
	return func() {
		if _, err := toServer.Write(line); err != nil {
			tb.Fatal(err)
		}
		answer, err := answers.ReadSlice('\n')
		if err != nil || !bytes.Contains(answer, []byte(`"sum":3`)) {
			tb.Fatalf("%q: %v", answer, err)
		}
	}
}

func pipe(tb testing.TB) (r, w *os.File) {
	tb.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _, _ = r.Close(), w.Close() })
	return r, w
}
