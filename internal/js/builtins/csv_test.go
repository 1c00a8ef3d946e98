package builtins

import (
	"strings"
	"testing"
)

// The fields of any text are read once.
func TestCSV_linearTime(t *testing.T) {
	for _, text := range []string{"\"", "\"\"", ",", "\n", "\r", "a", "\"a\"\"b\",\n"} {
		reader := newCSVReader(strings.Repeat(text, 1<<20/len(text)), ",")
		before := reader.at
		for reader.more() {
			if _, _, err := reader.field(); err != nil {
				break
			}
			if reader.at < before {
				t.Fatalf("%q: from %d back to %d", text, before, reader.at)
			}
			before = reader.at
		}
	}
}
