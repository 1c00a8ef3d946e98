package audit

import (
	"bytes"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
)

// argumentLimits are those of arguments whose structure is looked at.
func argumentLimits() jsonguard.Limits {
	return jsonguard.Limits{Bytes: 16 << 20, Depth: 64, Tokens: 1_000_000}
}

// walker goes over JSON text that [jsonguard.Check] has let through.
type walker struct {
	raw     []byte
	at      int
	members []member
	scratch []byte
	// masked has the values of secret-looking names replaced.
	masked bool
}

// member is where a member of an object stands in what was written.
type member struct{ from, colon, to int }

// canonical appends the next value in the one form that equal values have: the
// members of objects sorted by their names, without blanks, escapes only where
// JSON wants them, numbers as in RFC 8785, but for integers, which keep all
// their digits.
func (w *walker) canonical(dst []byte) []byte {
	switch w.next() {
	case '{':
		return w.object(dst)
	case '[':
		return w.array(dst)
	case '"':
		return w.text(dst)
	}
	return w.scalar(dst)
}

// next skips blanks and returns the byte that a token begins with.
func (w *walker) next() byte {
	for {
		switch c := w.raw[w.at]; c {
		case ' ', '\t', '\r', '\n':
			w.at++
		default:
			return c
		}
	}
}

// more goes over a comma, or over the bracket that ends an object or array.
func (w *walker) more(end byte) bool {
	c := w.next()
	if c == ',' {
		w.at++
		w.next()
		return true
	}
	if c == end {
		w.at++
		return false
	}
	return true
}

func (w *walker) array(dst []byte) []byte {
	dst = append(dst, '[')
	w.at++
	for w.more(']') {
		dst = w.canonical(comma(dst, '['))
	}
	return append(dst, ']')
}

func (w *walker) object(dst []byte) []byte {
	first, from := len(w.members), len(dst)
	dst = append(dst, '{')
	w.at++
	for w.more('}') {
		if len(w.members) > first {
			dst = append(dst, ',')
		}
		m := member{from: len(dst)}
		dst = w.text(dst)
		m.colon = len(dst)
		w.next()
		w.at++
		dst = append(dst, ':')
		if w.masked && looksSecret(string(dst[m.from:m.colon])) {
			w.skip()
			dst = append(dst, mark...)
		} else {
			dst = w.canonical(dst)
		}
		m.to = len(dst)
		w.members = append(w.members, m)
	}
	w.sort(dst[:len(dst):len(dst)], w.members[first:], from)
	w.members = w.members[:first]
	return append(dst, '}')
}

// sort puts the members of an object that begins at from in the order of their names.
func (w *walker) sort(text []byte, members []member, from int) {
	byName := func(a, b member) int { return bytes.Compare(text[a.from:a.colon], text[b.from:b.colon]) }
	if slices.IsSortedFunc(members, byName) {
		return
	}
	slices.SortFunc(members, byName)
	w.scratch = append(w.scratch[:0], '{')
	for i, m := range members {
		if i > 0 {
			w.scratch = append(w.scratch, ',')
		}
		w.scratch = append(w.scratch, text[m.from:m.to]...)
	}
	copy(text[from:], w.scratch)
}

func (w *walker) text(dst []byte) []byte {
	dst = append(dst, '"')
	w.at++
	for {
		rest := w.raw[w.at:]
		i := bytes.IndexAny(rest, `"\`)
		dst = append(dst, rest[:i]...)
		w.at += i + 1
		if rest[i] == '"' {
			return append(dst, '"')
		}
		dst = appendPlain(dst, w.escape())
	}
}

func (w *walker) escape() rune {
	c := w.raw[w.at]
	w.at++
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'u':
		r := w.unit()
		if utf16.IsSurrogate(r) {
			w.at += len(`\u`)
			r = utf16.DecodeRune(r, w.unit())
		}
		return r
	}
	return rune(c)
}

func (w *walker) unit() rune {
	n, _ := strconv.ParseUint(string(w.raw[w.at:w.at+4]), 16, 16)
	w.at += 4
	return rune(n)
}

// appendPlain appends a character, escaped only where JSON wants it.
func appendPlain(dst []byte, r rune) []byte {
	switch {
	case r == '"' || r == '\\':
		return append(dst, '\\', byte(r))
	case r < 0x20:
		return appendEscape(dst, r)
	}
	return utf8.AppendRune(dst, r)
}

// scalar appends the next number, bool or null.
func (w *walker) scalar(dst []byte) []byte {
	word := w.word()
	if c := word[0]; c != '-' && (c < '0' || c > '9') {
		return append(dst, word...)
	}
	if bytes.ContainsAny(word, ".eE") {
		f, _ := strconv.ParseFloat(string(word), 64)
		return appendFloat(dst, f)
	}
	if string(word) == "-0" {
		word = word[1:]
	}
	return append(dst, word...)
}

// word goes over a number, a bool or null.
func (w *walker) word() []byte {
	from := w.at
	for w.at < len(w.raw) && bytes.IndexByte([]byte(",:]} \t\r\n"), w.raw[w.at]) < 0 {
		w.at++
	}
	return w.raw[from:w.at]
}

// skip goes over the next value.
func (w *walker) skip() {
	open := 0
	for {
		switch w.next() {
		case '{', '[':
			open++
			w.at++
		case '}', ']':
			open--
			w.at++
		case ',', ':':
			w.at++
			continue
		case '"':
			w.skipText()
		default:
			w.word()
		}
		if open == 0 {
			return
		}
	}
}

func (w *walker) skipText() {
	for w.at++; ; w.at++ {
		switch w.raw[w.at] {
		case '\\':
			w.at++
		case '"':
			w.at++
			return
		}
	}
}

// What is told of the structure of arguments, at most.
const (
	maxShape        = 2 << 10
	maxShapeDepth   = 8
	maxShapeMembers = 32
	maxShapeItems   = 8
)

// shape appends the structure of the next value: names as they are, and in the
// place of each value its type, with the number of characters of a text. It goes
// no further than end.
func (w *walker) shape(dst []byte, depth, end int) []byte {
	c := w.next()
	switch {
	case (c == '{' || c == '[') && (depth == 0 || len(dst) > end):
		w.skip()
		return append(dst, `"`+ellipsis+`"`...)
	case c == '{':
		return w.objectShape(dst, depth-1, end)
	case c == '[':
		return w.arrayShape(dst, depth-1, end)
	case c == '"':
		w.scratch = w.text(w.scratch[:0])
		return append(strconv.AppendInt(append(dst, `"string(`...), int64(characters(w.scratch)), 10), `)"`...)
	}
	return append(append(append(dst, '"'), typeOf(w.word())...), '"')
}

// characters counts those of a canonical string.
func characters(text []byte) int {
	n := utf8.RuneCount(text) - len(`""`)
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 {
			return n
		}
		extra := 1
		if text[i+1] == 'u' {
			extra = len(`u0000`)
		}
		n -= extra
		text = text[i+1+extra:]
	}
}

func typeOf(word []byte) string {
	switch {
	case word[0] == 'n':
		return "null"
	case word[0] == 't' || word[0] == 'f':
		return "bool"
	case bytes.ContainsAny(word, ".eE"):
		return "number"
	}
	return "integer"
}

func (w *walker) objectShape(dst []byte, depth, end int) []byte {
	dst = append(dst, '{')
	w.at++
	told, left := 0, 0
	for w.more('}') {
		w.scratch = w.text(w.scratch[:0])
		name := w.scratch
		w.next()
		w.at++
		if told == maxShapeMembers || len(dst) > end || len(name) > maxName || string(name) == `"`+ellipsis+`"` {
			w.skip()
			left++
			continue
		}
		dst = append(appendShown(comma(dst, '{'), name), ':')
		dst = w.shape(dst, depth, end)
		told++
	}
	return append(appendLeft(dst, left, '{'), '}')
}

func (w *walker) arrayShape(dst []byte, depth, end int) []byte {
	dst = append(dst, '[')
	w.at++
	told, left := 0, 0
	for w.more(']') {
		if told == maxShapeItems || len(dst) > end {
			w.skip()
			left++
			continue
		}
		dst = w.shape(comma(dst, '['), depth, end)
		told++
	}
	return append(appendLeft(dst, left, '['), ']')
}
