package hclfile

import (
	"bytes"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/jsongate"
)

// maxMended is how many bytes of JSON are looked through for mistakes.
const maxMended = 2 << 20

// jsonMender makes JSON of a text with mistakes, as it was most likely meant,
// so that the others are told too. What it changes keeps its place.
type jsonMender struct {
	f    *File
	text []byte
	// vague are the offsets of values that are not what was meant.
	vague []int
}

// mendJSON returns the text of a file as JSON, and its mistakes; false when
// it cannot be understood.
func (f *File) mendJSON() (*jsonMender, diag.List, bool) {
	m := &jsonMender{f: f, text: []byte(f.source)}
	if bytes.HasPrefix(m.text, []byte(byteOrderMark)) {
		blank(m.text[:len(byteOrderMark)])
	}
	problems := f.settle(m.text)
	f.left.broken = len(problems) > 0
	for budget := maxMended; ; {
		d, refused := checkJSON(diag.WholeFile(f.path, string(m.text)))
		if d == nil {
			return m, problems, true
		}
		if f.left.broken = true; refused != nil {
			at := min(refused.Offset, len(f.source))
			d.Range = f.span(at, min(at+1, len(f.source)))
		}
		problems = append(problems, *d)
		if budget -= len(m.text) + 1; budget < 0 || len(problems) > maxDiagnostics {
			return nil, append(problems, notShown(d.Range)), false
		}
		if refused == nil || !m.mend(refused) {
			return nil, problems, false
		}
	}
}

// mend changes what was refused. It reports false when nobody can tell what was
// meant.
func (m *jsonMender) mend(refused *jsongate.Error) bool {
	at := refused.Offset
	switch refused.Kind {
	case jsongate.Syntax:
		return m.mendSyntax(at)
	case jsongate.Trailing:
		return m.mendTrailing(at)
	case jsongate.DuplicateKey:
		return m.drop(at)
	case jsongate.BadNumber:
		return m.scalar(at)
	case jsongate.BadUTF8:
		return at < len(m.text) && m.text[at] == '\\' && m.escape(at)
	}
	return false
}

func (m *jsonMender) mendSyntax(at int) bool {
	if at >= len(m.text) {
		return m.closeAll()
	}
	c, before := m.text[at], m.before(at)
	if before < 0 {
		return false
	}
	previous := m.text[before]
	switch {
	case c == '\\':
		return m.escape(at)
	case c < ' ' && c != '\t' || c == '\t' && m.state(at).text >= 0:
		return m.endText(at)
	case c == '/':
		return m.comment(at)
	case c == '=' && m.state(at).key:
		m.text[at] = ':'
		return true
	case len(m.state(at).open) == 0:
		return false // this is no JSON
	case previous == ',' && (c == '}' || c == ']'):
		blank(m.text[before : before+1])
		return true
	case c == ',' && (previous == ',' || previous == '[' || previous == '{'):
		blank(m.text[at : at+1])
		return true
	case c == '\'':
		return m.requote(at)
	case bytes.IndexByte([]byte(",:[{"), previous) < 0 && startsValue(c):
		return m.separate(before+1, at)
	case previous == ':' && (c == '}' || c == ','):
		m.leaveOut(before+1, before+2)
		return m.insert(before+1, '0')
	case previous == ':' || previous == '[':
		return m.scalar(at)
	case previous == ',' || previous == '{':
		if m.state(at).inObject() {
			return m.drop(at)
		}
		return m.scalar(at)
	}
	return m.scalar(at)
}

// mendTrailing removes a bracket that closes nothing, or too much.
func (m *jsonMender) mendTrailing(at int) bool {
	before := m.before(at)
	switch c := m.text[at]; {
	case c == '}' || c == ']':
		blank(m.text[at : at+1])
		return true
	case c == ',' && before > 0:
		blank(m.text[before : before+1])
		return true
	}
	return false
}

// before returns the offset of the last byte before at that is no blank, or -1.
func (m *jsonMender) before(at int) int {
	return len(bytes.TrimRight(m.text[:at], " \t\r\n")) - 1
}

// insert makes room for a byte at an offset, where a blank follows at once or
// at the end of the word or of the brackets there.
func (m *jsonMender) insert(at int, c byte) bool {
	n := bytes.IndexAny(m.text[at:], " \t\r\n\"")
	if n < 0 || m.text[at+n] == '"' {
		return false
	}
	copy(m.text[at+1:at+n+1], m.text[at:at+n])
	m.text[at] = c
	return true
}

func startsValue(c byte) bool { return c == '"' || c == '{' || c == '[' || c == '-' || isWord(c) }

// separate writes the comma or the colon that is missing in front of a value.
func (m *jsonMender) separate(end, at int) bool {
	if s := m.state(at); s.inObject() && s.key {
		return m.insert(end, ':')
	}
	return m.insert(end, ',')
}

// comment removes a comment.
func (m *jsonMender) comment(at int) bool {
	rest := m.text[at:]
	n := len(bytes.TrimRight(rest[:lineLength(rest)], "\n"))
	switch {
	case bytes.HasPrefix(rest, []byte("//")):
	case bytes.HasPrefix(rest, []byte("/*")) && bytes.Contains(rest[2:], []byte("*/")):
		n = bytes.Index(rest[2:], []byte("*/")) + 4
	default:
		return false
	}
	blank(m.text[at : at+n])
	return true
}

// escape makes plain text of an escape that does not exist.
func (m *jsonMender) escape(at int) bool {
	text := m.state(at).text
	if text < 0 || at+1 >= len(m.text) || m.text[at+1] < ' ' {
		return false
	}
	m.leaveOut(text, at+2)
	m.text[at] = '?'
	if m.text[at+1] != '"' && m.text[at+1] < 0x80 {
		m.text[at+1] = '?'
	}
	return true
}

// requote turns a text in single quotes into a string.
func (m *jsonMender) requote(at int) bool {
	n := bytes.IndexAny(m.text[at+1:], "'\"\\\n")
	if n < 0 || m.text[at+1+n] != '\'' {
		return false
	}
	m.leaveOut(at, at+n+2)
	m.text[at], m.text[at+1+n] = '"', '"'
	return true
}

// scalar turns a word that is no value into one.
func (m *jsonMender) scalar(at int) bool {
	from, to := at, at
	word := func(c byte) bool { return isWord(c) || c == '.' || c == '-' || c == '+' }
	for from > 0 && word(m.text[from-1]) {
		from--
	}
	for to < len(m.text) && bytes.IndexByte([]byte(",}]\n\""), m.text[to]) < 0 {
		to++
	}
	if from == to {
		return false
	}
	m.leaveOut(from, to)
	blank(m.text[from:to])
	m.text[from] = '0'
	return true
}

// endText closes a string at the end of its line, in front of what closes the
// brackets around it.
func (m *jsonMender) endText(at int) bool {
	s := m.state(at)
	if s.text < 0 {
		return false
	}
	line := bytes.TrimRight(m.text[s.text:at], " \t\r")
	end := len(line)
	open := bytes.Count(line, []byte("{")) + bytes.Count(line, []byte("[")) - bytes.Count(line, []byte("}")) - bytes.Count(line, []byte("]"))
	for end > 1 && (line[end-1] == ',' || line[end-1] == ' ' || open < 0 && (line[end-1] == '}' || line[end-1] == ']')) {
		if c := line[end-1]; c == '}' || c == ']' {
			open++
		}
		end--
	}
	m.leaveOut(s.text, at)
	end += s.text
	copy(m.text[end+1:at+1], m.text[end:at])
	m.text[end] = '"'
	return true
}

// closeAll closes what is open at the end of the file.
func (m *jsonMender) closeAll() bool {
	s := m.state(len(m.text))
	if s.text >= 0 || len(s.open) == 0 {
		return false
	}
	if before := m.before(len(m.text)); m.text[before] == ',' {
		blank(m.text[before : before+1])
	}
	for i := len(s.open) - 1; i >= 0; i-- {
		m.vague = append(m.vague, len(m.text)) // more may have been meant to stand there
		m.text = append(m.text, s.open[i]+2)   // the closing brackets stand two behind in ASCII
	}
	return true
}

// drop removes the member that begins at an offset, with a comma beside it.
func (m *jsonMender) drop(at int) bool {
	end := m.memberEnd(at)
	if end < 0 {
		return false
	}
	m.leaveOut(at, end)
	blank(m.text[at:end])
	if m.text[end] == ',' {
		blank(m.text[end : end+1])
	} else if before := m.before(at); m.text[before] == ',' {
		blank(m.text[before : before+1])
	}
	return true
}

// leaveOut notes that what stands there is not what was meant.
func (m *jsonMender) leaveOut(from, to int) {
	m.f.left.leaveOut(m.f.source, from, min(to, len(m.f.source)))
	m.vague = append(m.vague, from)
}
