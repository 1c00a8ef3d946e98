package crossref

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/cputime"
	"github.com/mcpd/mcpd/internal/hclfile"
)

func TestWhatStandsBetweenQuotesMayBeDefinedInWhatIsUnread(t *testing.T) {
	u := unread{texts: []string{`tool "a" {`, `x "b"c"" y "open`}}
	for name, want := range map[string]bool{"a": true, "b": true, "c": true, "": true, " y ": true, "open": false, "x ": false, "tool": false} {
		if got := u.quotes(name); got != want {
			t.Errorf("%q: %t", name, got)
		}
	}
	for _, word := range []string{"tool", "tool"} {
		if !u.holds(word) || u.holds("policy") {
			t.Errorf("%q is not held, or policy is", word)
		}
	}
}

// TestManyNamesBesideMuchThatIsUnread measures the time of the processor.
func TestManyNamesBesideMuchThatIsUnread(t *testing.T) {
	if os.Getenv("MCPD_LONG") == "" {
		t.Skip("set MCPD_LONG")
	}
	var names []hclfile.Name
	for i := range 4000 {
		names = append(names, hclfile.Name{Text: fmt.Sprintf("tool_%d", i)}, hclfile.Name{Text: fmt.Sprintf("tool_%d*", i)})
	}
	policy := hclfile.Policy{Targets: hclfile.Targets{Tools: names, Resources: names}}
	text := strings.Repeat(`"tool_x" "tool_y" `, 50_000)
	before := cputime.Used()
	problems := Check(&hclfile.Config{}, []*hclfile.Definitions{{Policies: []hclfile.Policy{policy}}}, nil, text)
	if took := cputime.Used() - before; took > 100*time.Millisecond || len(problems) == 0 {
		t.Errorf("%d diagnostics took %v", len(problems), took)
	}
}
