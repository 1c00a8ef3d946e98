package truncate_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcpd/mcpd/internal/base/truncate"
)

func TestText_marksCut(t *testing.T) {
	for _, before := range []int{0, 1, truncate.Least - 12, truncate.Least - 11, truncate.Least - 10, truncate.Least - 1, truncate.Least, truncate.Least + 1} {
		for _, character := range []string{"", "é", "—", "😀"} {
			for _, limit := range []int{0, truncate.Least, truncate.Least + 7} {
				text := strings.Repeat("x", before) + strings.Repeat(character, 20)
				got := truncate.Text(text, limit)
				begins, ends, cut := truncate.Next(got, 0)
				if limit = max(limit, truncate.Least); len(text) <= limit {
					if got != text || cut {
						t.Errorf("%d bytes become %d of %d, cut: %v", len(text), len(got), limit, cut)
					}
					continue
				}
				if !cut || ends != len(got) || len(got) > limit || len(got) < limit-utf8.UTFMax+1 || !strings.HasPrefix(text, got[:begins]) || !utf8.ValidString(got) {
					t.Errorf("%d bytes become %d of %d, with %d of the text: %v", len(text), len(got), limit, begins, cut)
				}
			}
		}
	}
}

// The mark is ignored in a short text, and before the minimum length of a truncated
// text.
func TestNext_foreignMarker(t *testing.T) {
	const mark = " … [cut]"
	long := truncate.Text(strings.Repeat("x", 2*truncate.Least), truncate.Least)
	for _, r := range []struct {
		text string
		from int
		want int // -1 for none
	}{
		{"", 0, -1}, {mark, 0, -1}, {"evil" + mark, 0, -1}, {strings.Repeat(mark, 9), 0, -1},
		{long, 0, len(long) - len(mark)}, {long + "\n  at body (a.hcl:1:2)", 0, len(long) - len(mark)}, {long, len(long), -1}, {long + mark, len(long), len(long)},
	} {
		begins, ends, ok := truncate.Next(r.text, r.from)
		if ok != (r.want >= 0) || ok && (begins != r.want || r.text[begins:ends] != mark) {
			t.Errorf("%.20q of %d bytes from %d: %d to %d, %v; want %d", r.text, len(r.text), r.from, begins, ends, ok, r.want)
		}
	}
}
