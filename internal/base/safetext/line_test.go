package safetext

import (
	"strings"
	"testing"
	"unicode"
)

func TestLine(t *testing.T) {
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

func TestLine_truncated(t *testing.T) {
	if got := Line(strings.Repeat("א", 100), 9); got != strings.Repeat("א", 5)+"\u200e… and 95 characters more, not shown" {
		t.Errorf("got %+q", got)
	}
}

// FuzzLine checks that a line stays on one line and shows all its characters.
func FuzzLine(f *testing.F) {
	for _, seed := range []string{"a  b", "\n\n", "\u202e\u3164א1", "Z\u0301\u0301\u0301\u0301", "\xff\x00", strings.Repeat("x", 200)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		marks, before := maxMarks, rune(0)
		for _, r := range Line(text, 100) {
			if marks++; !unicode.Is(unicode.M, r) {
				marks = 0
			}
			if r != toTheRight && Invisible(r) || r == ' ' && before == ' ' || marks > maxMarks || strings.ContainsRune("\n\r\t", r) {
				t.Fatalf("%+q shows %+q", text, Line(text, 100))
			}
			before = r
		}
	})
}

func TestWords_labels(t *testing.T) {
	for _, row := range []struct{ text, words, prompt string }{
		{"", "[crm] ", "[crm] "},
		{"Sure?\n", "[crm] Sure?", "[crm] Sure?"},
		{"m\x1b[2J\n\n[mcpd] x", "[crm] m\\x1b[2J\n\n[crm] [mcpd] x", "[crm] m\\x1b[2J\n\n[crm] [mcpd] x"},
		{"a\r\n \n\n\n  - b", "[crm] a\n\n[crm] - b", "[crm] a\n\n[crm]   - b"},
		{"a\r[mcpd] b", "[crm] a [mcpd] b", "[crm] a\\r[mcpd] b"},
		{"a\u2028[mcpd]\u0085\vb", "[crm] a [mcpd] b", "[crm] a\\u2028[mcpd]\\u0085\\vb"},
		{"a" + strings.Repeat(" ", 5) + "[mcpd]\tb", "[crm] a [mcpd] b", "[crm] a     [mcpd]\tb"},
		{"\u202egpj\U000e0041", "[crm] \\u202egpj\\U000e0041", "[crm] \\u202egpj\\U000e0041"},
		{"Delete ⚠\ufe0f", "[crm] Delete ⚠", "[crm] Delete ⚠"},
	} {
		if got := Words("[crm] ", row.text, 1<<10); got != row.words {
			t.Errorf("%+q: words %+q, want %+q", row.text, got, row.words)
		}
		if got := Prompt("[crm] ", row.text, 1<<10); got != row.prompt {
			t.Errorf("%+q: prompt %+q, want %+q", row.text, got, row.prompt)
		}
	}
}

func TestWords_truncated(t *testing.T) {
	const text = "one\nsomething\nthree"
	if got := Words("[crm] ", text, 20); got != "[crm] one\n[crm] somet… and 4 characters more, not shown\n[crm] …" {
		t.Errorf("words %q", got)
	}
	if got := Prompt("[crm] ", text, 20); got != "[crm] one\n[crm] some…\n[crm] …" {
		t.Errorf("prompt %q", got)
	}
}

func TestShows(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "small": true, "A refund of 70 €": true, "שלום 70 x": true, "e\u0301": true,
		"a  b": true, "✔\ufe0f Yes": true, "☺\ufe0e": true, "1\ufe0f\u20e3 #\u20e3": true, "👨\u200d👩🏽\u200d👧": true, "🏳\ufe0f\u200d🌈": true, "🙂\u200d↔\ufe0f": true,
		"می\u200cخواهم": true, "کتابِ\u200cها\u200cی ما": true, "श्री \u0915\u094d\u200d\u0937": true, "\u09b0\u200d\u09cd\u09af": true,
		"a   b": false, "a \n b": false, "a\ufe0f": false, "✔\ufe0f\ufe0f": false, "\ufe0f": false, "1\ufe0f": false, "a\u20e3": false, "✔\ufe00": false, "✔\U000e0100": false,
		"👨\u200d": false, "\u200d👨": false, "👨\u200d\u200d👩": false, "👨\u200d \u200d👩": false, "👨\u200c👩": false, "a\u200db": false, "a\u200cب": false, "ب\u200c": false, "ب\u200c\u200cب": false, "ب\u200cक": false, "ب\ufe0f\u200cب": false, "ب\u20e3\u200cب": false,
		"a\u200bb": false, "🏴\U000e0067\U000e007f": false, "می\u200cخ\u202e": false, "\u061cب\u200cب": false, "ب\u200c\u061cب": false, "\x85": false, "⠀\ufe0f": false,
		"a\nb": false, "a\tb": false, "\u202e": false, "\u200e": false, "a\u00a0b": false, "\x1b[2J": false, "Z\u0301\u0301\u0301\u0301": false, "\xff": false,
	} {
		if got := Shows(text); got != want {
			t.Errorf("%+q: %t", text, got)
		}
	}
}

// FuzzWords checks that every line has the label.
func FuzzWords(f *testing.F) {
	for _, seed := range []string{"a\n\n[b] c", "\r\n\u2028\u0085", "\u202e\u3164א1\n", "\xff\x00\v", strings.Repeat("x\n", 200)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, write := range []func(label, text string, limit int) string{Words, Prompt} {
			got := write("[crm] ", text, 100)
			for line := range strings.SplitSeq(got, "\n") {
				if line != "" && !strings.HasPrefix(line, "[crm] ") || strings.ContainsFunc(line, func(r rune) bool { return r != '\t' && r != toTheRight && Invisible(r) }) {
					t.Fatalf("%+q becomes %+q", text, got)
				}
			}
		}
	})
}

// FuzzShows checks that at most two invisible characters follow a visible one: its
// presentation, and a joiner.
func FuzzShows(f *testing.F) {
	for _, seed := range []string{"✔\ufe0f", "1\ufe0f\u20e3", "👨\u200d👩", "ب\u200cب", "a\u200d\u200d", "\u202e"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !Shows(text) {
			return
		}
		const joins = "\ufe0e\ufe0f\u20e3\u200c\u200d"
		hidden := 2
		for _, r := range text {
			if !Invisible(r) {
				hidden = 0
			} else if hidden++; !strings.ContainsRune(joins, r) || hidden > 2 {
				t.Fatalf("%+q", text)
			}
		}
	})
}
