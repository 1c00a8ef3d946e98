package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"testing"
	"testing/fstest"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/codemode"
	"github.com/mcpd/mcpd/extensions/federation"
	"github.com/mcpd/mcpd/serve"
)

// behindVerb makes this program an upstream server over its standard streams.
const behindVerb = "behind"

// serveBehind serves the Go tool that adds.
func serveBehind() error {
	ctx := context.Background()
	s, err := adding(ctx)
	if err != nil {
		return err
	}
	return errors.Join(serve.New(s, serve.Options{}).Stdio(ctx, os.Stdin, os.Stdout), s.Close(ctx))
}

// placesBehind returns the places of such a server, as in upstream blocks.
func placesBehind(tb testing.TB) map[string]string {
	tb.Helper()
	program, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	web := httptest.NewServer(handlerOf(tb, native(tb)))
	tb.Cleanup(web.Close)
	return map[string]string{
		"stdio": fmt.Sprintf("command = [%q, %q]", program, behindVerb),
		"http":  fmt.Sprintf("url = %q", web.URL+"/mcp"),
	}
}

// BenchmarkUpstreamCall measures the round trip of a call to an upstream tool. Over
// HTTP the upstream server is in this process, so its allocations count too.
func BenchmarkUpstreamCall(b *testing.B) {
	for way, place := range placesBehind(b) {
		b.Run(way, func(b *testing.B) {
			s := load(b, engine.Options{Extensions: []engine.Extension{federation.New()}, Files: engine.Files{Config: file("mcpd.hcl", "upstream \"behind\" {\n  "+place+"\n}\n")}})
			request := addRequest
			request.Name = "behind_add"
			b.ReportAllocs()
			for b.Loop() {
				if r := s.Execute(b.Context(), request); r.Err != nil {
					b.Fatal(r.Err)
				}
			}
		})
	}
}

// BenchmarkRunCode runs agent code that calls a file tool twice, in both executors.
func BenchmarkRunCode(b *testing.B) {
	request := addRequest
	request.Name = "run_code"
	request.Arguments, _ = json.Marshal(map[string]string{
		"code": "const { sum } = await add({ a: 2, b: 3 });\nconst all = await add({ a: sum, b: 4 });\nconsole.log(all.sum);\nall",
	})
	for name, x := range executors(b) {
		// Closing the server closes the executor, and a benchmark may run several
		// times.
		s := load(b, engine.Options{Extensions: []engine.Extension{codemode.New()}, Files: engine.Files{Tools: file("add.hcl", twoArguments), Config: file("mcpd.hcl", "codeact {}\n")}, Scripts: engine.Scripts{Programs: x}})
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if r := s.Execute(b.Context(), request); r.Err != nil {
					b.Fatal(r.Err)
				}
			}
		})
	}
}

// file returns a directory with one file.
func file(name, text string) fstest.MapFS {
	return fstest.MapFS{name: {Data: []byte(text), Mode: 0o644}}
}
