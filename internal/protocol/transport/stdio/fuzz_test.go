package stdio_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/mcp/mcptest"
	"github.com/mcpd/mcpd/internal/protocol/transport/stdio"
)

// FuzzLines sends one line and then a ping. Whatever the line is, it gets the
// reply that encoding/json says it deserves, and the ping gets its own.
func FuzzLines(f *testing.F) {
	const limit = 4 << 10
	for _, text := range mcptest.Hostile() {
		f.Add([]byte(text))
		f.Add([]byte(text + "\r"))
	}
	f.Add(bytes.Repeat([]byte(" "), limit+1))
	f.Add(bytes.Repeat([]byte("x"), 70<<10)) // more than is read at once
	f.Fuzz(func(t *testing.T, line []byte) {
		if bytes.IndexByte(line, '\n') >= 0 {
			return // these are several lines
		}
		s := mcp.New(mcptest.New(mcptest.Tools()[0]), mcp.Options{Limits: jsonguard.Limits{Bytes: limit}})
		defer func() { _ = s.Drain(context.Background()) }()
		var out bytes.Buffer
		in := string(line) + "\n" + `{"jsonrpc":"2.0","id":"last","method":"ping"}` + "\n"
		if err := stdio.Serve(t.Context(), s, peer(), strings.NewReader(in), &out, grace); err != nil {
			t.Fatal(err)
		}
		replies, ok := mcptest.Replies(strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n"))
		if !ok {
			t.Fatalf("the server wrote %q", out.String())
		}
		line = bytes.TrimSuffix(line, []byte("\r"))
		var want []mcptest.Expected
		if len(line) > limit || len(bytes.TrimSpace(line)) > 0 {
			passes := jsonguard.Check(line, jsonguard.Limits{Bytes: limit}) == nil
			if e := mcptest.Expect(line, passes); e.Reply && !e.Odd {
				want = append(want, e)
			}
		}
		want = append(want, mcptest.Expected{Reply: true, ID: `"last"`, Ping: true})
		for _, e := range want {
			i := 0
			for i < len(replies) && !e.Fits(replies[i]) {
				i++
			}
			if i == len(replies) {
				t.Fatalf("nothing fits %+v in %q", e, out.String())
			}
			replies = append(replies[:i], replies[i+1:]...)
		}
		if len(replies) > 0 {
			t.Fatalf("the server also said %+v", replies)
		}
	})
}
