package scripting

import (
	"strings"
	"testing"
	"time"

	"github.com/mcpd/mcpd/internal/cputime"
	"github.com/mcpd/mcpd/internal/yaml"
)

// textSizes returns the sizes of texts to read: the largest is a text that takes many times
// its budget if it takes quadratic time. The long run goes to the bound.
func textSizes(bound int) []int {
	switch {
	case long():
		return []int{1 << 12, 1 << 16, bound}
	case testing.Short():
		return []int{1 << 12}
	}
	return []int{1 << 12, bound / 8}
}

// textBudget returns the processor time that no text of a size may take: it tells blow-ups
// from noise.
func textBudget(size int) time.Duration {
	return max(200*time.Millisecond, 4*time.Second*time.Duration(size)>>20) * slowdown
}

// No text costs more processor time than its size explains.
func TestNoYAMLStallsItsReader(t *testing.T) {
	sizes := textSizes(yaml.MaxText)
	for _, unit := range []string{
		"[", "{", "- ", "a: ", "? ", "[a, ", "{a: ", "#\n", "# a\n- b\n", "&a ", "*a ", "!!str ", "'", "\"", "\\", "|\n ", ">\n\n", "---\n", "...\n", "%YAML 1.2\n",
		"\n", " ", "\t", "- - - - a\n", "a: b\n", "- a\n", "\"a\": ", "[[],", "{},", "a\n ", "a\n\n", "<<: ", "!", "\u2028", "\ufeff",
		"? a\n", ": a\n", "-\n", " -\n  -\n",
	} {
		for _, size := range sizes {
			text := strings.Repeat(unit, size/len(unit))
			began := cputime.Used()
			_, _ = yaml.Parse(text, func() error { return nil })
			if took := cputime.Used() - began; took > textBudget(size) {
				t.Errorf("%q × %d took %v", unit, size/len(unit), took)
				break
			}
		}
	}
}
