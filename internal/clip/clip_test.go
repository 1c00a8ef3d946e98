package clip_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcpd/mcpd/internal/clip"
)

func TestATextIsMarkedWhereItIsShortened(t *testing.T) {
	for _, r := range []struct {
		text string
		most int
		want string
	}{
		{"", 0, ""}, {"0123456789abc", 13, "0123456789abc"}, {"0123456789abcd", 13, "012 … [cut]"}, {"01é456789abcd", 13, "01 … [cut]"}, {"é", 1, " … [cut]"},
	} {
		got := clip.Text(r.text, r.most)
		if got != r.want {
			t.Errorf("%q of %d bytes is %q, want %q", r.text, r.most, got, r.want)
		}
		if start, shortened := clip.Cut(got); shortened != (got != r.text) || !strings.HasPrefix(r.text, start) {
			t.Errorf("%q begins with %q, and was shortened: %v", got, start, shortened)
		}
	}
}

func TestNoPartOfAValueIsLeftAtTheEnd(t *testing.T) {
	for longest := range 12 {
		got := clip.Mend("a — b 12", longest)
		start, _ := clip.Cut(got)
		if !utf8.ValidString(got) || len(start) > 10-max(0, longest-1) || !strings.HasPrefix("a — b 12", start) {
			t.Errorf("without %d bytes: %q", longest, got)
		}
	}
}
