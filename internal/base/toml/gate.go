package toml

import "strings"

// The bounds of the gate: brackets inside each other, and the parts of a key,
// along all of which the library goes for each of them.
const (
	maxDepth = 100
	maxParts = 16
)

// gate refuses text that is too long, or nests too deep. Behind the first
// mistake of syntax it may see another structure than the library, which reads
// nothing there.
func gate(text string) error {
	if len(text) > MaxText {
		return &Error{0, "the text is longer than 1 MiB"}
	}
	depth, parts := 0, 1
	for at := 0; at < len(text); {
		switch text[at] {
		case '#':
			at += lineLength(text[at:])
			continue
		case '"', '\'':
			at += stringLength(text[at:])
			continue
		case '.':
			parts++
		case '[', '{':
			depth, parts = depth+1, 1
		case ']', '}':
			depth, parts = max(0, depth-1), 1
		case '=', ',', '\n':
			parts = 1
		}
		switch {
		case depth > maxDepth:
			return refused(text, at, "nested deeper than 100")
		case parts > maxParts:
			return refused(text, at, "a key of more than 16 parts")
		}
		at++
	}
	return nil
}

func refused(text string, at int, message string) error {
	return &Error{1 + strings.Count(text[:at], "\n"), message}
}

func lineLength(text string) int {
	if n := strings.IndexByte(text, '\n'); n >= 0 {
		return n
	}
	return len(text)
}

// stringLength returns the length of the string that the text begins with.
func stringLength(text string) int {
	quote := text[:1]
	end, lines := quote, false
	if strings.HasPrefix(text, strings.Repeat(quote, 3)) {
		end, lines = strings.Repeat(quote, 3), true
	}
	for at := len(end); at < len(text); at++ {
		switch {
		case text[at] == '\\' && quote == `"`:
			at++
		case text[at] == '\n' && !lines:
			return at
		case strings.HasPrefix(text[at:], end):
			for at += len(end); lines && at < len(text) && text[at] == quote[0]; at++ {
			}
			return at
		}
	}
	return len(text)
}
