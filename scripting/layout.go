package scripting

import "strings"

// extent finds by indentation where a statement ends whose brackets, or
// strings, cannot be trusted: they say nothing of it, but lines do.
type extent struct {
	// indent is that of the line on which the statement begins.
	indent int
	// open are the brackets that are open behind what was read.
	open []byte
	// stray says that the first line has a } that closes what is around the
	// statement, and strays counts all brackets that close nothing in it.
	stray  bool
	strays int
	lines  int
	// mistake is the byte that is wrong.
	mistake byte
	ended   bool // the line that was read last ends with an open bracket
}

// beginsLine reports whether nothing but space is in front of an offset on its line.
func beginsLine(text string, offset int) bool {
	start := strings.LastIndexByte(text[:offset], '\n') + 1
	return strings.TrimSpace(text[start:offset]) == ""
}

// laidOut returns the end of the statement that begins at start and goes on to
// mistake at least, and false when its lines do not show it. Where it is not
// the brackets that are wrong, they count too.
func laidOut(text string, start, mistake int, brackets bool) (end int, ok bool) {
	if !beginsLine(text, start) {
		return 0, false
	}
	e := extent{indent: indentOf(text[strings.LastIndexByte(text[:start], '\n')+1:]), mistake: text[mistake]}
	for end = start; end < len(text); {
		line := lineAt(text, end)
		if end > mistake && !e.takes(line, brackets) {
			break
		}
		if end > mistake && e.flat(line) && !brackets {
			return 0, false
		}
		e.read(line)
		end += len(line)
	}
	if e.stray || brackets && len(e.open) > 0 {
		return 0, false
	}
	return behindSpace(text, end), true
}

// flat reports whether a line stands behind an open bracket and is not indented.
func (e *extent) flat(line string) bool {
	return e.ended && strings.TrimSpace(line) != "" && indentOf(line) <= e.indent && !closes(line)
}

// takes reports whether a line belongs to the statement in front of it.
func (e *extent) takes(line string, brackets bool) bool {
	words := strings.TrimSpace(line)
	indent := indentOf(line)
	switch {
	case words == "" || indent > e.indent:
		return true
	case brackets && len(e.open) > 0:
		return indent == e.indent || closes(line)
	case indent < e.indent:
		return false
	case closes(line):
		return e.lines > 1 && len(e.open) > 0 || len(e.open) > 0 && closing(e.open[len(e.open)-1]) == words[0]
	case e.ended && (len(e.open) == 0 || e.open[len(e.open)-1] == '{' || !commands(words[:wordEnd(words, 0)])):
		return true // not laid out as it should be, which is for the caller to see
	}
	return goesOn(words)
}

// goesOn reports whether a line goes on with the statement in front of it.
func goesOn(words string) bool {
	for _, word := range []string{"else", "catch", "finally", "."} {
		if strings.HasPrefix(words, word) {
			return true
		}
	}
	return false
}

// closes reports whether a line begins with a closing bracket.
func closes(line string) bool {
	words := strings.TrimSpace(line)
	return words != "" && strings.IndexByte(")]}", words[0]) >= 0
}

// read counts the brackets of a line, but for those in its strings.
func (e *extent) read(line string) {
	words := strings.TrimSpace(line)
	if words == "" {
		return
	}
	e.lines++
	e.ended = strings.IndexByte("([{", words[len(words)-1]) >= 0
	for i := 0; i < len(line); i++ {
		switch c := line[i]; c {
		case '\'', '"', '`':
			if n := strings.IndexByte(line[i+1:], c); n >= 0 {
				i += n + 1
			}
		case '/':
			if strings.HasPrefix(line[i:], "//") {
				return
			}
		case '(', '[', '{':
			if len(e.open) < maxBrackets {
				e.open = append(e.open, c)
			}
		case ')', ']', '}':
			e.close(c)
		}
	}
}

// close closes the innermost bracket of the kind, and those in it.
func (e *extent) close(c byte) {
	for i := len(e.open) - 1; i >= 0; i-- {
		if closing(e.open[i]) == c {
			e.open = e.open[:i]
			return
		}
	}
	e.strays++
	e.stray = e.stray || c == '}' && e.mistake != '}' && e.lines == 1
}

// lineAt returns the rest of the line at an offset, with its end.
func lineAt(text string, offset int) string {
	if i := strings.IndexByte(text[offset:], '\n'); i >= 0 {
		return text[offset : offset+i+1]
	}
	return text[offset:]
}

// indentOf returns how far a line is indented, with 8 columns for a tab.
func indentOf(line string) int {
	indent := 0
	for _, c := range line {
		switch c {
		case ' ':
			indent++
		case '\t':
			indent += 8
		default:
			return indent
		}
	}
	return indent
}

// closesMore reports whether a text closes brackets that it does not open.
func closesMore(text string) bool {
	var e extent
	for line := range strings.Lines(text) {
		e.read(line)
	}
	return e.strays > 0
}
