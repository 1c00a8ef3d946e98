package plain

import (
	"strings"
	"testing"
)

func TestEachLineOfWordsBearsItsLabel(t *testing.T) {
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

func TestWordsThatAreCutSaySo(t *testing.T) {
	const text = "one\nsomething\nthree"
	if got := Words("[crm] ", text, 20); got != "[crm] one\n[crm] somet… and 4 characters more, which are not shown\n[crm] …" {
		t.Errorf("words %q", got)
	}
	if got := Prompt("[crm] ", text, 20); got != "[crm] one\n[crm] some…\n[crm] …" {
		t.Errorf("prompt %q", got)
	}
}

func TestOnlyALineThatShowsWhatItHoldsShowsIt(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "small": true, "A refund of 70 €": true, "שלום 70 x": true, "e\u0301": true,
		"a\nb": false, "a\tb": false, "a  b": false, "\u202e": false, "\u200e": false, "a\u00a0b": false, "\x1b[2J": false, "Z\u0301\u0301\u0301\u0301": false, "\xff": false,
	} {
		if got := Shows(text); got != want {
			t.Errorf("%+q: %t", text, got)
		}
	}
}

// FuzzNoWordsPassForThoseOfSomebodyElse.
func FuzzNoWordsPassForThoseOfSomebodyElse(f *testing.F) {
	for _, seed := range []string{"a\n\n[b] c", "\r\n\u2028\u0085", "\u202e\u3164א1\n", "\xff\x00\v", strings.Repeat("x\n", 200)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, write := range []func(label, text string, most int) string{Words, Prompt} {
			got := write("[crm] ", text, 100)
			for line := range strings.SplitSeq(got, "\n") {
				if line != "" && !strings.HasPrefix(line, "[crm] ") || strings.ContainsFunc(line, func(r rune) bool { return r != '\t' && r != toTheRight && unseen(r) }) {
					t.Fatalf("%+q becomes %+q", text, got)
				}
			}
		}
	})
}
