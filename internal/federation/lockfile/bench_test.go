package lockfile_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/mcpd/mcpd/internal/federation/lockfile"
)

// entries returns n entries of typical size.
func entries(n int) []json.RawMessage {
	var list []json.RawMessage
	for i := range n {
		list = append(list, json.RawMessage(fmt.Sprintf(`{"name":"tool_%d","description":"Looks up the customer %d by id. Use it before any refund.\n\nReturns null where there is none.",`+
			`"inputSchema":{"type":"object","properties":{"id":{"type":"string","description":"The id, such as C-1042."},"limit":{"type":"integer","minimum":1,"maximum":100,"default":10},"fields":{"type":"array","items":{"type":"string","enum":["name","email","status"]}}},"required":["id"],"additionalProperties":false},`+
			`"annotations":{"readOnlyHint":true,"openWorldHint":false}}`, i, i)))
	}
	return list
}

func tools(b *testing.B, entries []json.RawMessage) []lockfile.Tool {
	var list []lockfile.Tool
	for _, entry := range entries {
		t, err := lockfile.ParseTool("github", entry)
		if err != nil {
			b.Fatal(err)
		}
		list = append(list, t)
	}
	return list
}

// BenchmarkParseTool parses 1,000 entries.
func BenchmarkParseTool(b *testing.B) {
	listed := entries(1000)
	b.ReportAllocs()
	for b.Loop() {
		tools(b, listed)
	}
}

// BenchmarkCheck checks 1,000 tools with one change.
func BenchmarkCheck(b *testing.B) {
	listed := tools(b, entries(1000))
	lock := new(lockfile.Lock).WithTools("github", listed...)
	listed[500] = tool(b, `{"name":"tool_500"}`)
	b.ReportAllocs()
	for b.Loop() {
		if v := lock.Check("github", listed, lockfile.Strict); len(v.Changes) != 1 {
			b.Fatal(v.Changes)
		}
	}
}

// BenchmarkEncode encodes 2,000 tools.
func BenchmarkEncode(b *testing.B) {
	lock := new(lockfile.Lock).WithTools("github", tools(b, entries(2000))...)
	b.SetBytes(int64(len(lock.Encode())))
	b.ReportAllocs()
	for b.Loop() {
		lock.Encode()
	}
}

// BenchmarkParse parses a file with 1,000 tools.
func BenchmarkParse(b *testing.B) {
	file := new(lockfile.Lock).WithTools("github", tools(b, entries(1000))...).Encode()
	b.SetBytes(int64(len(file)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := lockfile.Parse(file); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkDiff shows a tool with one changed sentence.
func BenchmarkDiff(b *testing.B) {
	old := tools(b, entries(1))[0]
	c := lockfile.Change{Kind: lockfile.Changed, Upstream: "github", Name: old.Name(), Old: old, New: tool(b, `{"name":"tool_0","description":"Looks up."}`)}
	b.ReportAllocs()
	for b.Loop() {
		c.Diff()
	}
}
