package safetext

import (
	"strings"
	"testing"
	"unicode"
)

func TestALineShowsWhatItHolds(t *testing.T) {
	for text, want := range map[string]string{
		"A refund of 70 € for Zoë":        "A refund of 70 € for Zoë",
		"one\ntwo\tthree":                 "one two three",
		"one\r\ntwo":                      `one\r two`,
		"x     Tool: harmless":            `x \u0020\u0020\u0020\u0020Tool: harmless`,
		"x \n\n\tTool: harmless":          `x \n\n\tTool: harmless`,
		"\u2800\u3164\u115f\uffa0":        `\u2800\u3164\u115f\uffa0`,
		"\u00a0\u2003\u200b\ufeff":        `\u00a0\u2003\u200b\ufeff`,
		"❤\ufe0f \U000e0041":              `❤\ufe0f \U000e0041`,
		"e\u0301e\u0301":                  "e\u0301e\u0301",
		"Z\u0301\u0301\u0301\u0301\u0301": "Z\u0301\u0301\u0301" + `\u0301\u0301`,
		"\u0301 \u0301a\u20dd":            `\u0301 \u0301a\u20dd`,
		"\u202egnp.exe\u2066":             `\u202egnp.exe\u2066`,
		"שלום עולם":                       "שלום עולם\u200e",
		`["אב",1,2]`:                      "[\"אב\u200e\",1,2]",
		"אב 70":                           "אב \u200e70",
		"אב\u202e":                        "אב\u200e" + `\u202e`,
	} {
		if got := Line(text, 1<<10); got != want {
			t.Errorf("%+q: got %+q, want %+q", text, got, want)
		}
	}
}

func TestALineThatIsCutSaysSo(t *testing.T) {
	if got := Line(strings.Repeat("א", 100), 9); got != strings.Repeat("א", 5)+"\u200e… and 95 characters more, which are not shown" {
		t.Errorf("got %+q", got)
	}
}

// FuzzNoTextBreaksItsLineOrHidesInIt.
func FuzzNoTextBreaksItsLineOrHidesInIt(f *testing.F) {
	for _, seed := range []string{"a  b", "\n\n", "\u202e\u3164א1", "Z\u0301\u0301\u0301\u0301", "\xff\x00", strings.Repeat("x", 200)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		marks, before := maxMarks, rune(0)
		for _, r := range Line(text, 100) {
			if marks++; !unicode.Is(unicode.M, r) {
				marks = 0
			}
			if r != toTheRight && unseen(r) || r == ' ' && before == ' ' || marks > maxMarks || strings.ContainsRune("\n\r\t", r) {
				t.Fatalf("%+q shows %+q", text, Line(text, 100))
			}
			before = r
		}
	})
}
