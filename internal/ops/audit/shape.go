package audit

import (
	"bytes"
	"strconv"
	"unicode/utf8"
)

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
