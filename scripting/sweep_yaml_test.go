package scripting

import (
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/cputime"
	"github.com/mcpd/mcpd/internal/yaml"
)

// No text costs more processor time than its size explains: the budget tells
// blow-ups from noise.
func TestNoYAMLStallsItsReader(t *testing.T) {
	largest := yaml.MaxText
	if testing.Short() {
		largest = 1 << 16
	}
	for _, unit := range []string{
		"[", "{", "- ", "a: ", "? ", "[a, ", "{a: ", "#\n", "# a\n- b\n", "&a ", "*a ", "!!str ", "'", "\"", "\\", "|\n ", ">\n\n", "---\n", "...\n", "%YAML 1.2\n",
		"\n", " ", "\t", "- - - - a\n", "a: b\n", "- a\n", "\"a\": ", "[[],", "{},", "a\n ", "a\n\n", "<<: ", "!", "\u2028", "\ufeff",
		"? a\n", ": a\n", "-\n", " -\n  -\n",
	} {
		for _, size := range []int{1 << 12, 1 << 16, yaml.MaxText} {
			if size > largest {
				break
			}
			text := strings.Repeat(unit, size/len(unit))
			began := cputime.Used()
			_, _ = yaml.Parse(text, func() error { return nil })
			if took := cputime.Used() - began; took > 4*time.Second*slowdown {
				t.Errorf("%q × %d took %v", unit, size/len(unit), took)
				break
			}
		}
	}
}
