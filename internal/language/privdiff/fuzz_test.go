package privdiff

import (
	"encoding/json"
	"testing"

	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/language/hclfile"
)

// FuzzSchemas compares any two schemas: a schema differs from itself in nothing,
// what is told one way is told the other way too, and power that goes comes back.
func FuzzSchemas(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"enum":["*",1]}},"additionalProperties":false}`, `{"properties":{"a":{}}}`)
	f.Add(`{"items":{"items":{"pattern":"x"}}}`, `{"items":[{"maxLength":1e400}]}`)
	f.Add(`{"required":["a",1],"properties":{"a.b":true,"":{}}}`, `true`)
	f.Fuzz(func(t *testing.T, old, new string) {
		if !json.Valid([]byte(old)) || !json.Valid([]byte(new)) {
			return
		}
		was, is := withInput(old), withInput(new)
		if told := Compare(was, was); len(told) > 0 {
			t.Errorf("%s differs from itself: %v", old, told)
		}
		there, back := Compare(was, is), Compare(is, was)
		if (len(there) == 0) != (len(back) == 0) {
			t.Errorf("%s and %s: %v there, %v back", old, new, there, back)
		}
		if Count(there, Removes) > 0 && Count(there, Adds) == 0 && Count(back, Adds) == 0 {
			t.Errorf("from %s to %s power goes, and none comes back", old, new)
		}
	})
}

// withInput returns a side of one tool whose input has a schema.
func withInput(schema string) Side {
	tool := hclfile.Tool{Name: "t", Input: json.RawMessage(schema), Call: hclfile.Call{Grant: grant.Set{}}}
	return Side{Config: &hclfile.Config{}, Files: []*hclfile.Definitions{{Tools: []hclfile.Tool{tool}}}}
}
