package secrets

import (
	"bytes"
	"html"
	"slices"
	"strings"
	"unicode/utf8"
)

// folded maps bytes of a canonical text to comparable bytes: lower case, and one alphabet for
// both kinds of base64.
var folded = func() (table [256]byte) {
	for c := range table {
		switch b := byte(c); {
		case b >= 'A' && b <= 'Z':
			table[c] = b | 0x20
		case b == '-':
			table[c] = '+'
		case b == '_':
			table[c] = '/'
		default:
			table[c] = b
		}
	}
	return table
}()

// kind classifies a byte.
type kind byte

const (
	plain kind = iota
	blank
	quote
	escapeStart // an escape
	escapeEnd   // an escape, except an entity
	entityEnd
)

var kinds = func() (table [256]kind) {
	for c := range table {
		switch b := byte(c); {
		case isBlank(b):
			table[c] = blank
		case b == '"' || b == '\'' || b == '`':
			table[c] = quote
		case b == '\\' || b == '%' || b == '&':
			table[c] = escapeStart
		case hexDigit(b) >= 0 || b == '}':
			table[c] = escapeEnd
		case b == ';':
			table[c] = entityEnd
		}
	}
	return table
}()

// isBlank reports whether a byte is dropped in canonical text.
func isBlank(b byte) bool { return b <= ' ' || b == 0x7f }

// The maximum length of an escape, in bytes of canonical text.
const (
	percentLength   = len("%41")
	backslashLength = len(`\u{10FFFF}`)
	entityLength    = len("&CounterClockwiseContourIntegral;") // the longest one
)

// canonical is the canonical form of a text, with a map to the original positions.
//
// Escapes are decoded when they end, and the decoded bytes are processed as input, so that
// nested escapes are decoded in the same pass: percent signs, backslashes with letters and
// digits, and entities. Blanks, other backslashes and repeated quotes are dropped, so that line
// wrapping and the escapes of any language disappear. An encoded value has the same form as the
// value itself. The form is never longer than the text, and the work for each byte is bounded.
type canonical struct {
	// out is folded after the text has been read.
	out  []byte
	runs []run
	// hits are the positions in out where a form may start.
	hits []uint32
	// head is the last four bytes, folded.
	head uint32
	// next is the position in the text that extends the last run, or -1.
	next int
	// No escape starts before barrier. Pending escapes end at escapeLimit in out at the latest,
	// and entities at entityLimit.
	barrier, escapeLimit, entityLimit int
	// decoded reports whether the text differs by more than case, blanks and quotes.
	decoded bool
}

// run maps a part of out, which starts at out, to the text: byte by byte from from if to is 0,
// else to the range from..to as a whole.
type run struct{ out, from, to uint32 }

// readCanonical reads a text into c, which is valid until its next use.
func readCanonical[T string | []byte](c *canonical, text T, m *matcher) {
	c.out, c.runs, c.hits = slices.Grow(c.out[:0], len(text)), c.runs[:0], c.hits[:0]
	c.head, c.next, c.barrier, c.escapeLimit, c.entityLimit, c.decoded = 0, -1, 0, 0, 0, false
	// The fast path for most bytes uses local variables.
	out, n, next, head, last := c.out[:cap(c.out)], 0, -1, uint32(0), byte(0)
	for i := 0; i < len(text); i++ {
		b := text[i]
		if k := kinds[b]; k != plain || last == '\\' {
			if k == blank && last != '\\' && last != '=' {
				c.barrier = n
				continue
			}
			if last == '\\' || k == escapeStart || k == blank || k == quote && last == b || k == escapeEnd && n < c.escapeLimit || k == entityEnd && n < c.entityLimit {
				c.out, c.next, c.head = out[:n], next, head
				c.push(m, b, i, i+1)
				n, next, head, last = len(c.out), c.next, c.head, 0
				if n > 0 {
					last = out[n-1]
				}
				continue
			}
		}
		if i != next {
			c.runs = append(c.runs, run{out: uint32(n), from: uint32(i)})
		}
		out[n] = b
		last, next = b, i+1
		n++
		head = head>>8 | uint32(folded[b])<<24
		if m.mayMatch(head) {
			c.out, c.head = out[:n], head
			c.hit(m)
		}
	}
	c.out = out[:n]
}

// readFolded is [readCanonical] without decoding escapes. It finds a value with first digits
// that complete an escape from before it.
func readFolded[T string | []byte](c *canonical, text T, m *matcher) {
	c.out, c.runs, c.hits = slices.Grow(c.out[:0], len(text)), c.runs[:0], c.hits[:0]
	c.head, c.next, c.barrier, c.escapeLimit, c.entityLimit, c.decoded = 0, -1, 0, 0, 0, false
	for i := 0; i < len(text); i++ {
		b := text[i]
		n := len(c.out)
		if isBlank(b) || kinds[b] == quote && n > 0 && c.out[n-1] == b {
			continue
		}
		c.append(m, b, i, i+1)
	}
}

// isClear reports whether a text certainly holds no form, without building the canonical form:
// without escapes, that differs only in blanks, quotes and case.
func isClear[T string | []byte](text T, m *matcher) bool {
	for _, b := range []byte{'\\', '%', '&'} {
		if indexByte(text, b) >= 0 {
			return false
		}
	}
	head, last := uint32(0), byte(0)
	for i := 0; i < len(text); i++ {
		b := text[i]
		switch k := kinds[b]; {
		case k == blank && last != '=':
			continue
		case k == blank: // a soft line break
			return false
		case k == quote && last == b:
			continue
		}
		last = b
		head = head>>8 | uint32(folded[b])<<24
		if m.mayMatch(head) && m.sizes[head] != nil {
			return false
		}
	}
	return true
}

func indexByte[T string | []byte](text T, b byte) int {
	if text, ok := any(text).(string); ok {
		return strings.IndexByte(text, b)
	}
	return bytes.IndexByte([]byte(text), b)
}

func (c *canonical) fold() {
	for i, b := range c.out {
		c.out[i] = folded[b]
	}
}

// push processes a byte from the text or from a decoded escape.
func (c *canonical) push(m *matcher, b byte, from, to int) {
	for {
		n := len(c.out)
		quoting := n > c.barrier && c.out[n-1] == '\\'
		switch {
		case isBlank(b):
			if quoting || n > 0 && c.out[n-1] == '=' && (b == '\n' || b == '\r') { // a soft line break
				c.pop(n - 1)
			}
			c.barrier = len(c.out)
			return
		case b == '\\':
			c.decoded = true
			if !quoting {
				c.append(m, b, from, to)
				c.escapeLimit = max(c.escapeLimit, n+backslashLength)
			}
			return
		case quoting && strings.IndexByte("abfnrtv", b) >= 0: // a blank
			ends := b == 'n' || b == 'r'
			c.pop(n - 1)
			if b = ' '; ends {
				b = '\n'
			}
			continue
		case quoting && strings.IndexByte("uUxX01234567", b) < 0:
			from = c.origin(n - 1)
			c.pop(n - 1)
			n--
		}
		if (b == '"' || b == '\'' || b == '`') && n > 0 && c.out[n-1] == b {
			return
		}
		c.append(m, b, from, to)
		switch b {
		case '%':
			c.escapeLimit = max(c.escapeLimit, n+percentLength)
		case '&':
			c.entityLimit = max(c.entityLimit, n+entityLength)
		}
		if len(c.out) > max(c.escapeLimit, c.entityLimit) {
			return
		}
		text, at := c.escape()
		if at < 0 {
			return
		}
		from = c.origin(at)
		c.pop(at)
		if len(text) != 1 {
			for i := range len(text) {
				c.append(m, text[i], from, to)
			}
			return
		}
		b = text[0] // may end another escape
	}
}

func (c *canonical) append(m *matcher, b byte, from, to int) {
	r := run{out: uint32(len(c.out)), from: uint32(from)}
	if from+1 != to {
		r.to = uint32(to)
		c.runs = append(c.runs, r)
		c.next = -1
	} else {
		if from != c.next {
			c.runs = append(c.runs, r)
		}
		c.next = to
	}
	c.out = append(c.out, b)
	c.head = c.head>>8 | uint32(folded[b])<<24
	if m.mayMatch(c.head) {
		c.hit(m)
	}
}

// hit records that a form may start with the last four bytes.
func (c *canonical) hit(m *matcher) {
	if at := len(c.out) - minFormLen; at >= 0 && m.sizes[c.head] != nil {
		c.hits = append(c.hits, uint32(at))
	}
}

// pop removes the bytes of an escape from the end of out.
func (c *canonical) pop(to int) {
	c.out, c.next, c.decoded = c.out[:to], -1, true
	for n := len(c.runs); n > 0 && int(c.runs[n-1].out) >= to; n-- {
		c.runs = c.runs[:n-1]
	}
	for n := len(c.hits); n > 0 && int(c.hits[n-1])+minFormLen > to; n-- {
		c.hits = c.hits[:n-1]
	}
	c.head = 0
	for _, b := range c.out[max(0, to-minFormLen):] {
		c.head = c.head>>8 | uint32(folded[b])<<24
	}
}

// origin returns the position in the text of one of the last bytes of out.
func (c *canonical) origin(at int) int {
	n := len(c.runs) - 1
	for int(c.runs[n].out) > at {
		n--
	}
	return c.runs[n].origin(at)
}

func (r run) origin(at int) int {
	if r.to > 0 {
		return int(r.from)
	}
	return int(r.from) + at - int(r.out)
}

// span maps a range of out to the text.
func (c *canonical) span(from, to int) (begins, ends int) {
	at := func(n int) run {
		i, found := slices.BinarySearchFunc(c.runs, uint32(n), func(r run, n uint32) int { return int(r.out) - int(n) })
		if !found {
			i--
		}
		return c.runs[i]
	}
	last := at(to - 1)
	ends = int(last.to)
	if ends == 0 {
		ends = last.origin(to-1) + 1
	}
	return at(from).origin(from), ends
}

// escape decodes the escape that has just ended, and returns its start in out, or a negative
// number if there is none.
func (c *canonical) escape() (text string, at int) {
	tail := c.out[max(c.barrier, len(c.out)-entityLength):]
	before := len(c.out) - len(tail)
	text, length := "", 0
	switch b := tail[len(tail)-1]; {
	case b == ';':
		text, length = entity(tail)
	case b == '}':
		text, length = braced(tail)
	case hexDigit(b) >= 0:
		text, length = numbered(tail)
	}
	if length == 0 || len(text) > length {
		return "", -1
	}
	at = before + len(tail) - length
	// Two surrogates form one character (RFC 8259 section 7).
	if low, isLow := surrogate(text, 0xdc00); isLow && at >= c.barrier+len(text) {
		if high, isHigh := surrogate(string(c.out[at-len(text):at]), 0xd800); isHigh {
			return string(rune(0x10000 + high<<10 + low)), at - len(text)
		}
	}
	return text, at
}

// numbered decodes an escape at the end of a text that ends with a hexadecimal digit.
func numbered(tail []byte) (text string, length int) {
	is := func(length int, first byte, second string) bool {
		n := len(tail) - length
		return n >= 0 && tail[n] == first && (second == "" || strings.IndexByte(second, tail[n+1]) >= 0)
	}
	value := func(digits, base int) rune {
		r := rune(0)
		for _, b := range tail[len(tail)-digits:] {
			digit := hexDigit(b)
			if digit < 0 || digit >= base || r > utf8.MaxRune {
				return -1
			}
			r = r*rune(base) + rune(digit)
		}
		return r
	}
	switch {
	case is(3, '%', "") && value(2, 16) >= 0:
		return string([]byte{byte(value(2, 16))}), 3
	case is(4, '\\', "xX") && value(2, 16) >= 0:
		return string([]byte{byte(value(2, 16))}), 4
	case is(4, '\\', "0123") && value(3, 8) >= 0:
		return string([]byte{byte(value(3, 8))}), 4
	case is(6, '\\', "u") && value(4, 16) >= 0:
		return encodeCodePoint(value(4, 16)), 6
	case is(10, '\\', "U") && value(8, 16) >= 0:
		return encodeCodePoint(value(8, 16)), 10
	}
	return "", 0
}

// braced decodes an escape such as \u{2b} at the end of a text.
func braced(tail []byte) (text string, length int) {
	const open = `\u{`
	from := len(tail) - 1
	for from > 0 && hexDigit(tail[from-1]) >= 0 {
		from--
	}
	digits := tail[from : len(tail)-1]
	if from < len(open) || string(tail[from-len(open):from]) != open || len(digits) == 0 || len(digits) > 6 {
		return "", 0
	}
	r := rune(0)
	for _, b := range digits {
		r = r<<4 | rune(hexDigit(b))
	}
	return encodeCodePoint(r), len(open) + len(digits) + 1
}

// commonEntity decodes the most common entities.
func commonEntity(written []byte) string {
	switch string(written) {
	case "&amp;":
		return "&"
	case "&lt;":
		return "<"
	case "&gt;":
		return ">"
	case "&quot;", "&#34;":
		return `"`
	case "&#39;", "&apos;":
		return "'"
	}
	return ""
}

// entity decodes the HTML entity at the end of a text.
func entity(tail []byte) (text string, length int) {
	from := len(tail) - 1
	for from > 0 && (isAlphanumeric(tail[from-1]) || tail[from-1] == '#') {
		from--
	}
	if from == 0 || tail[from-1] != '&' || from == len(tail)-1 {
		return "", 0
	}
	if text = commonEntity(tail[from-1:]); text != "" {
		return text, len(tail) - from + 1
	}
	written := string(tail[from-1:])
	text = html.UnescapeString(written)
	if strings.HasPrefix(text, "&") && text != "&" {
		text = html.UnescapeString(strings.ToLower(written))
	}
	// A name with an entity as its prefix is no entity: &notit; is not ¬.
	if text == strings.ToLower(written) || text == written || strings.HasSuffix(text, ";") && text != ";" {
		return "", 0
	}
	return text, len(written)
}

// encodeCodePoint encodes a code point in UTF-8, including surrogates.
func encodeCodePoint(r rune) string {
	if r >= 0xd800 && r < 0xe000 {
		return string([]byte{0xe0 | byte(r>>12), 0x80 | byte(r>>6)&0x3f, 0x80 | byte(r)&0x3f})
	}
	return string(r)
}

// surrogate returns the ten bits of a surrogate encoded by encodeCodePoint. first is the first
// code point of its kind.
func surrogate(text string, first rune) (bits rune, ok bool) {
	if len(text) != 3 || text[0] != 0xed {
		return 0, false
	}
	r := 0xd000 | rune(text[1]&0x3f)<<6 | rune(text[2]&0x3f)
	return r - first, r >= first && r < first+0x400
}

func isAlphanumeric(b byte) bool {
	return b >= '0' && b <= '9' || b|0x20 >= 'a' && b|0x20 <= 'z'
}

func hexDigit(b byte) int {
	switch {
	case b >= '0' && b <= '9':
		return int(b - '0')
	case b|0x20 >= 'a' && b|0x20 <= 'f':
		return int(b|0x20-'a') + 10
	}
	return -1
}

func canonicalOf(text string) string {
	var c canonical
	readCanonical(&c, text, new(matcher))
	c.fold()
	// A trailing backslash would quote what follows, and would not appear itself.
	return strings.TrimSuffix(string(c.out), `\`)
}
