package lockfile

import (
	"encoding/json"
	"strings"
)

// sheet is a definition as people read it: JSON with one member or item a line, and texts
// in [pieces], each a string of its own on a line of its own. No line is longer than some
// 300 columns, but for numbers with more digits.
type sheet struct {
	lines []string
	open  []byte // the last line, which has no end yet
}

// sheetOf returns the lines of a tool's definition; the zero Tool has none.
func sheetOf(t Tool) []string {
	value, err := decode([]byte(t.definition))
	if err != nil {
		return nil
	}
	var s sheet
	s.value(value, 0)
	return append(s.lines, string(s.open))
}

// Levels of depth by which lines are set in.
const (
	nested    = 1
	continued = 2
)

func (s *sheet) value(value any, depth int) {
	switch value := value.(type) {
	case string:
		s.text(value, depth)
	case []any:
		s.open = append(s.open, '[')
		for i, item := range value {
			s.next(i, depth+nested)
			s.value(item, depth+nested)
		}
		s.end(']', len(value), depth)
	case map[string]any:
		s.open = append(s.open, '{')
		for i, name := range sortedNames(value) {
			s.next(i, depth+nested)
			s.text(name, depth+nested)
			s.open = append(s.open, ": "...)
			s.value(value[name], depth+nested)
		}
		s.end('}', len(value), depth)
	case json.Number:
		s.open = append(s.open, value...)
	default:
		s.open = appendValue(s.open, value)
	}
}

// text writes a text in its pieces.
func (s *sheet) text(text string, depth int) {
	for i, piece := range pieces(text) {
		if i > 0 {
			s.line(depth + continued)
		}
		s.open = append(s.open, quoted(piece)...)
	}
}

// next begins the line of a member or item.
func (s *sheet) next(i, depth int) {
	s.open = separated(s.open, i)
	s.line(depth)
}

// end closes an object or array of n.
func (s *sheet) end(bracket byte, n, depth int) {
	if n > 0 {
		s.line(depth)
	}
	s.open = append(s.open, bracket)
}

// line begins a line.
func (s *sheet) line(depth int) {
	s.lines = append(s.lines, string(s.open))
	s.open = append(s.open[:0], strings.Repeat("  ", depth)...)
}

// joiner puts lines of a sheet together to JSON again.
type joiner struct {
	json []byte
	// closed says that the last line ends with the quote that ends a string, or begins one.
	closed bool
}

// add appends a line. A string that follows a string is the rest of it: JSON has no two
// of them without a comma or colon between.
func (j *joiner) add(line string) {
	line = strings.TrimLeft(line, " \t")
	rest, begins := strings.CutPrefix(line, `"`)
	if begins && j.closed {
		j.json = append(j.json[:len(j.json)-1], rest...)
	} else {
		j.json = append(append(j.json, ' '), line...)
	}
	before, quote := strings.CutSuffix(line, `"`)
	escapes := len(before) - len(strings.TrimRight(before, `\`))
	j.closed = quote && escapes%2 == 0
}
