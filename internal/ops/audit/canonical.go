package audit

import (
	"bytes"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// argumentLimits returns the limits for arguments that are parsed.
func argumentLimits() jsonguard.Limits {
	return jsonguard.Limits{Bytes: 16 << 20, Depth: 64, Tokens: 1_000_000}
}

// jsonWalker traverses JSON text that [jsonguard.Check] accepted.
type jsonWalker struct {
	in      jsontext.Cursor
	members []member
	scratch []byte
	// masked replaces the values of names that look like secrets.
	masked bool
}

// member holds the offsets of an object member in the output.
type member struct{ from, colon, to int }

// canonical appends the next value in canonical form: members sorted by name, no
// spaces, escapes only where JSON requires them, numbers as in RFC 8785. Unlike RFC
// 8785, integers keep all their digits.
func (w *jsonWalker) canonical(dst []byte) []byte {
	switch w.in.Next() {
	case '{':
		return w.object(dst)
	case '[':
		return w.array(dst)
	case '"':
		return appendText(dst, w.in.Value())
	}
	return appendScalar(dst, w.in.Value())
}

func (w *jsonWalker) array(dst []byte) []byte {
	w.in.Skip('[')
	dst = append(dst, '[')
	for w.in.More(']') {
		dst = w.canonical(comma(dst, '['))
	}
	return append(dst, ']')
}

func (w *jsonWalker) object(dst []byte) []byte {
	first, from := len(w.members), len(dst)
	w.in.Skip('{')
	dst = append(dst, '{')
	for w.in.More('}') {
		if len(w.members) > first {
			dst = append(dst, ',')
		}
		m := member{from: len(dst)}
		dst = appendText(dst, w.in.Value())
		m.colon = len(dst)
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

// sort sorts the members of the object that starts at from by name.
func (w *jsonWalker) sort(text []byte, members []member, from int) {
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

func (w *jsonWalker) skip() {
	w.in.Next()
	w.in.Value()
}

// appendText appends a JSON string with escapes only where JSON requires them.
func appendText(dst, text []byte) []byte {
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 {
			return append(dst, text...)
		}
		r, length := jsontext.Escape(text[i:])
		dst = appendPlain(append(dst, text[:i]...), r)
		text = text[i+max(length, 1):]
	}
}

// appendPlain appends a character, escaped only where JSON requires it.
func appendPlain(dst []byte, r rune) []byte {
	switch {
	case r == '"' || r == '\\':
		return append(dst, '\\', byte(r))
	case r < 0x20:
		return appendEscape(dst, r)
	}
	return utf8.AppendRune(dst, r)
}

func appendScalar(dst, word []byte) []byte {
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

// Limits of the shape of arguments.
const (
	maxShape        = 2 << 10
	maxShapeDepth   = 8
	maxShapeMembers = 32
	maxShapeItems   = 8
)

// shape appends the structure of the next value: names unchanged, and for each value
// its type, with the length in characters for a string. It stops at offset end.
func (w *jsonWalker) shape(dst []byte, depth, end int) []byte {
	switch c := w.in.Next(); {
	case (c == '{' || c == '[') && (depth == 0 || len(dst) > end):
		w.skip()
		return append(dst, `"`+ellipsis+`"`...)
	case c == '{':
		return w.inside(dst, c, maxShapeMembers, depth-1, end)
	case c == '[':
		return w.inside(dst, c, maxShapeItems, depth-1, end)
	case c == '"':
		w.scratch = appendText(w.scratch[:0], w.in.Value())
		return append(strconv.AppendInt(append(dst, `"string(`...), int64(characters(w.scratch)), 10), `)"`...)
	}
	return append(append(append(dst, '"'), typeOf(w.in.Value())...), '"')
}

// characters returns the length of a canonical string in characters.
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

// inside appends the structure of the object or array that starts here, with at most
// limit members or items.
func (w *jsonWalker) inside(dst []byte, open byte, limit, depth, end int) []byte {
	closing := open + 2 // in ASCII, ] is two after [, and } two after {
	w.in.Skip(open)
	dst = append(dst, open)
	shown, left := 0, 0
	for w.in.More(closing) {
		full := shown == limit || len(dst) > end
		w.scratch = w.scratch[:0]
		if open == '{' {
			w.scratch = appendText(w.scratch, w.in.Value())
			full = full || len(w.scratch) > maxName || string(w.scratch) == `"`+ellipsis+`"`
		}
		if full {
			w.skip()
			left++
			continue
		}
		if dst = comma(dst, open); open == '{' {
			dst = append(appendShown(dst, w.scratch), ':')
		}
		dst = w.shape(dst, depth, end)
		shown++
	}
	return append(appendOmitted(dst, left, open), closing)
}
