package hclfile

import (
	"bytes"
	"strings"
)

// heading is how a block or an argument begins, whether it is well written or not.
type heading struct {
	name string
	from int
	// nameEnd and end are where the name and the last label end.
	nameEnd, end int
	labels       []label
}

// label is a label of a block, without its quotes.
type label struct {
	text     string
	from, to int
}

// readHeading reads the name and the labels at an offset, and passes over what
// does not belong there.
func readHeading(src []byte, from int) heading {
	line := src[from : from+lineLength(src[from:])]
	h := heading{from: from}
	for at := 0; at < len(line); {
		switch c := line[at]; {
		case c == '=' || c == '{' || c == '#':
			return h
		case c == '"':
			text := line[at+1:]
			n := bytes.IndexAny(text, "\"{\r\n")
			if n < 0 {
				n = len(text)
			}
			closed := n < len(text) && text[n] == '"'
			if h.name != "" {
				h.addLabel(strings.TrimSpace(string(text[:n])), from+at, from+at+1+n, closed)
			}
			if at += 1 + n; closed {
				at++
			}
		case isWord(c) && !isDigit(c):
			n := 1
			for at+n < len(line) && (isWord(line[at+n]) || line[at+n] == '-') {
				n++
			}
			if h.name == "" {
				h.name, h.from, h.nameEnd, h.end = string(line[at:at+n]), from+at, from+at+n, from+at+n
			} else {
				h.addLabel(string(line[at:at+n]), from+at, from+at+n, false)
			}
			at += n
		default:
			at++
		}
	}
	return h
}

func (h *heading) addLabel(text string, from, to int, closed bool) {
	if closed {
		to++
	}
	h.labels = append(h.labels, label{text, from, to})
	h.end = to
}

// lineLength returns the length of the line that src begins with, its end included.
func lineLength(src []byte) int {
	if i := bytes.IndexByte(src, '\n'); i >= 0 {
		return i + 1
	}
	return len(src)
}

// nextLine returns where the text of the next line begins that is neither empty
// nor a comment, and how far it is indented.
func nextLine(src []byte, at int) (start, indent int) {
	for at < len(src) {
		at += lineLength(src[at:])
		rest := bytes.TrimLeft(src[at:], " \t")
		start = len(src) - len(rest)
		if len(rest) > 0 && !endsLine(rest) {
			return start, start - at
		}
	}
	return len(src), 0
}

// endsLine reports whether nothing but a comment stands before the line end.
func endsLine(rest []byte) bool {
	return len(rest) == 0 || rest[0] == '\n' || rest[0] == '\r' || rest[0] == '#' || bytes.HasPrefix(rest, []byte("//"))
}

// startsItem reports whether an argument or a block begins at an offset: within
// parentheses and brackets nothing looks like one.
func startsItem(src []byte, at int) bool {
	line := src[at : at+lineLength(src[at:])]
	n := 0
	for n < len(line) && (isWord(line[n]) || n > 0 && line[n] == '-') {
		n++
	}
	if n == 0 || isDigit(line[0]) {
		return false
	}
	rest := bytes.TrimLeft(line[n:], " \t")
	switch {
	case len(rest) == 0:
		return false
	case rest[0] == '=':
		return len(rest) < 2 || rest[1] != '=' && rest[1] != '>'
	case rest[0] == '"' || rest[0] == '{':
		return bytes.HasSuffix(bytes.TrimRight(rest, " \t\r\n"), []byte("{")) || bytes.HasSuffix(bytes.TrimRight(rest, " \t\r\n"), []byte("}"))
	}
	return false
}

// onlyBrace reports whether a brace stands alone on the line.
func onlyBrace(line []byte) bool {
	return endsLine(bytes.TrimLeft(line[1:], " \t"))
}

// outdented returns where the first line begins that is indented less than the
// argument whose text it would be part of.
func outdented(src []byte, at, indent int) int {
	for at < len(src) {
		line := src[at : at+lineLength(src[at:])]
		text := bytes.TrimLeft(line, " \t")
		if len(bytes.TrimSpace(text)) > 0 && len(line)-len(text) < indent {
			return at
		}
		at += len(line)
	}
	return at
}
