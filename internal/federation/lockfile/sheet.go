package lockfile

import "strings"

// sheet is a definition as people read it: JSON with one member or item a line, and texts
// in [pieces], each a string of its own on a line of its own. No line is longer than some
// 200 columns, but for numbers with more digits.
type sheet struct {
	text []byte
	// most is beyond what length of the text nothing is written that is not begun; 0 is
	// beyond none.
	most int
}

// appendSheet appends the lines of a tool's definition, with no end behind the last; the
// zero Tool has none.
func appendSheet(dst []byte, t Tool) []byte {
	value, err := decode([]byte(t.definition))
	if err != nil {
		return dst
	}
	s := sheet{text: dst}
	s.value(value, 0)
	return s.text
}

// linesOf returns the lines of a tool's definition.
func linesOf(t Tool) []string {
	text := appendSheet(nil, t)
	if len(text) == 0 {
		return nil
	}
	return strings.Split(string(text), "\n")
}

// Levels of depth by which lines are set in. What is deeper than the deepest is set in as
// that is: a line says what it is by its brackets, and blanks before each of thousands of
// items would be most of the text.
const (
	nested    = 1
	continued = 2
	deepest   = 16
)

func (s *sheet) value(value any, depth int) {
	inner := min(depth+nested, deepest)
	switch value := value.(type) {
	case string:
		s.string(value, depth)
	case []any:
		s.text = append(s.text, '[')
		for i, item := range value {
			if s.full() {
				return
			}
			s.next(i, inner)
			s.value(item, inner)
		}
		s.end(']', len(value), depth)
	case map[string]any:
		s.text = append(s.text, '{')
		for i, name := range sortedNames(value) {
			if s.full() {
				return
			}
			s.next(i, inner)
			s.string(name, inner)
			s.text = append(s.text, ": "...)
			s.value(value[name], inner)
		}
		s.end('}', len(value), depth)
	default:
		s.text = appendValue(s.text, value)
	}
}

// string writes a text in its pieces.
func (s *sheet) string(text string, depth int) {
	behind := false
	for piece := range pieces(text) {
		if s.full() {
			return
		}
		if behind {
			s.line(depth + continued)
		}
		s.text, behind = appendQuoted(s.text, piece), true
	}
}

// full reports whether the text is longer than it may be.
func (s *sheet) full() bool { return s.most > 0 && len(s.text) > s.most }

// next begins the line of a member or item.
func (s *sheet) next(i, depth int) {
	s.text = separated(s.text, i)
	s.line(depth)
}

// end closes an object or array of n.
func (s *sheet) end(bracket byte, n, depth int) {
	if n > 0 {
		s.line(depth)
	}
	s.text = append(s.text, bracket)
}

// line begins a line.
func (s *sheet) line(depth int) {
	s.text = append(s.text, '\n')
	for range depth {
		s.text = append(s.text, "  "...)
	}
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
