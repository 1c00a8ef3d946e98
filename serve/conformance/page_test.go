package conformance_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/mcpd/mcpd/engine"
)

// TestListsComeInPages has more tools than one page holds, on every transport.
// The suite has no scenario for that.
func TestListsComeInPages(t *testing.T) {
	const tools, page = 1100, 1000
	var text strings.Builder
	for i := range tools {
		fmt.Fprintf(&text, "tool \"tool_%04d\" {\n  run = \"return 1;\"\n}\n", i)
	}
	s := open(t, engine.Options{Name: "test", Tools: fstest.MapFS{"t.hcl": {Data: []byte(text.String()), Mode: 0o644}}})
	for _, l := range lines {
		t.Run(l.name+" "+string(l.era), func(t *testing.T) {
			v := arrive(t, &copies{site: s}, l)
			names := map[string]bool{}
			for tool, err := range v.session(nil).Tools(v.ctx, nil) {
				if err != nil {
					t.Fatal(err)
				}
				if names[tool.Name] {
					t.Errorf("%s is listed twice", tool.Name)
				}
				names[tool.Name] = true
			}
			if len(names) != tools {
				t.Errorf("%d of %d tools are listed", len(names), tools)
			}
			c := v.connect()
			first := c.get("tools/list", nil)
			last := c.get("tools/list", object{"cursor": first["nextCursor"]})
			if n, m := len(first["tools"].([]any)), len(last["tools"].([]any)); n != page || m != tools-page {
				t.Errorf("the pages hold %d and %d tools", n, m)
			}
			v.lacks(last, "nextCursor")
		})
	}
}
