package compiler

import (
	"encoding/json"
	"errors"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/dop251/goja/file"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/js/syntax"
	"github.com/mcpd/mcpd/scripting/transpile"
)

// Origin maps positions in compiled source to the files of the author.
type Origin struct {
	src string // compiled source
	// body is the position of the script in src, if it is unchanged.
	body segment
	text diag.Text
	// lowered is set if src is the output of a compiler. Then mappings apply.
	lowered  bool
	mappings []mapping
	texts    []diag.Text // texts of the mappings
}

// segment maps length bytes of one text to another.
type segment struct{ to, from, length int }

// mapping maps the text from a position of the compiled source to an offset in a text.
type mapping struct {
	at     int
	text   int
	offset int
}

// rangeAt returns the range of the token at an offset of the compiled source; ok is false if the
// author did not write it.
func (o *Origin) rangeAt(offset int) (diag.Range, bool) {
	text, from, ok := o.original(offset)
	if !ok {
		return diag.Range{}, false
	}
	return callee(text, from).Range(), true
}

type sourceRange struct {
	Text       diag.Text
	Start, End int
}

// Range returns the range in the file.
func (r sourceRange) Range() diag.Range { return r.Text.Range(r.Start, r.End) }

// callee returns the word at offset, or the word before it for a parenthesis.
func callee(text diag.Text, offset int) sourceRange {
	body := text.Body()
	start := offset
	if offset < len(body) && body[offset] == '(' {
		start = wordStartBefore(body, offset)
	}
	return sourceRange{text, start, wordEnd(body, start)}
}

// between returns the range for the bytes from start to end of the compiled source, at least one
// token.
func (o *Origin) between(start, end int) (diag.Range, bool) {
	text, from, ok := o.original(start)
	if !ok {
		return diag.Range{}, false
	}
	to := wordEnd(text.Body(), from)
	if !o.lowered {
		to = max(to, end-o.body.to)
	}
	return text.Range(from, to), true
}

// original returns the text and the offset for a byte of the compiled source.
func (o *Origin) original(at int) (text diag.Text, offset int, ok bool) {
	if !o.lowered {
		from := at - o.body.to
		return o.text, from, from >= 0 && from <= o.body.length
	}
	i := sort.Search(len(o.mappings), func(i int) bool { return o.mappings[i].at > at }) - 1
	if i < 0 || o.mappings[i].text < 0 {
		return diag.Text{}, 0, false
	}
	m := o.mappings[i]
	return o.texts[m.text], m.offset, true
}

// compiledName is the file name of all compiled sources.
const compiledName = "body"

// Locate returns the range of the author for a position in compiled source, which is one line for
// the engine.
func (o *Origin) Locate(at file.Position) (sourceRange, bool) {
	if at.Filename != compiledName {
		return sourceRange{}, false
	}
	text, from, ok := o.original(at.Column - 1)
	if !ok {
		return sourceRange{}, false
	}
	return callee(text, from), true
}

// wordStartBefore returns the start of the word that ends at offset; offset itself if there is
// none.
func wordStartBefore(body string, offset int) int {
	start := offset
	for start > 0 {
		_, size := utf8.DecodeLastRuneInString(body[:start])
		if !syntax.WordStart(body[start-size:]) {
			break
		}
		start -= size
	}
	return start
}

// wordEnd returns the end of the word, or of the character, at offset.
func wordEnd(body string, offset int) int {
	offset = min(offset, len(body))
	end := offset
	for end < len(body) {
		r, size := utf8.DecodeRuneInString(body[end:])
		if !syntax.WordStart(body[end:]) {
			if end == offset && r != '\n' {
				end += size
			}
			break
		}
		end += size
	}
	return end
}

// offset returns the offset of a line and a column of goja: lines count from 1 and end at any line
// terminator of the language; columns are bytes from 1.
func (o *Origin) offset(line, column int) int {
	at := 0
	for ; line > 1; line-- {
		n := syntax.LineLength(o.src[at:])
		at += n
		if at >= len(o.src) {
			return at
		}
		at += terminatorLength(o.src[at:])
	}
	return min(at+column-1, len(o.src))
}

func terminatorLength(s string) int {
	if strings.HasPrefix(s, "\r\n") {
		return 2
	}
	_, size := utf8.DecodeRuneInString(s)
	return size
}

// The reader is hand-written because go-sourcemap, which the engine uses, has no positions for
// generated text, drops mappings to the start of a source, and panics for unlisted sources.

// sourceMap has the fields of a source map (ECMA-426) that are used.
type sourceMap struct {
	Sources  []string `json:"sources"`
	Mappings string   `json:"mappings"`

	decoded []rawMapping
	code    lineIndex
}

// rawMapping is one mapping of the format: lines and columns from 0, columns in UTF-16 units.
type rawMapping struct {
	line, column             int
	source                   int // -1: generated text
	sourceLine, sourceColumn int
}

// decodeSourceMap decodes the source map of generated code.
func decodeSourceMap(data []byte, code string) (*sourceMap, error) {
	m := &sourceMap{code: newLineIndex(code)}
	if err := json.Unmarshal(data, m); err != nil {
		return nil, err
	}
	var source, sourceLine, sourceColumn int
	for line, group := range strings.Split(m.Mappings, ";") {
		column := 0
		for field := range strings.SplitSeq(group, ",") {
			if field == "" {
				continue
			}
			numbers, err := decodeVLQ(field)
			if err != nil {
				return nil, err
			}
			column += numbers[0]
			raw := rawMapping{line: line, column: column, source: -1}
			if len(numbers) >= 4 {
				source, sourceLine, sourceColumn = source+numbers[1], sourceLine+numbers[2], sourceColumn+numbers[3]
				raw.source, raw.sourceLine, raw.sourceColumn = source, sourceLine, sourceColumn
			}
			m.decoded = append(m.decoded, raw)
		}
	}
	return m, nil
}

const base64Digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

func decodeVLQ(field string) ([]int, error) {
	numbers := make([]int, 0, 5)
	value, shift := 0, 0
	for i := range len(field) {
		digit := strings.IndexByte(base64Digits, field[i])
		if digit < 0 || shift > 40 {
			return nil, errors.New("bad digit in mappings")
		}
		value |= digit & 31 << shift
		if digit&32 != 0 {
			shift += 5
			continue
		}
		if value&1 != 0 {
			value = -(value >> 1)
		} else {
			value >>= 1
		}
		numbers = append(numbers, value)
		value, shift = 0, 0
	}
	if len(numbers) == 0 || shift != 0 {
		return nil, errors.New("unfinished number in mappings")
	}
	return numbers, nil
}

// resolve converts the mappings of a source map to offsets. The offsets in the compiled source are
// shifted by shift. It also returns the texts of the mappings.
func (b *bundler) resolve(raw *sourceMap, shift int) ([]diag.Text, []mapping) {
	texts := make([]diag.Text, len(raw.Sources))
	sources := make([]lineIndex, len(raw.Sources))
	own := make([]bool, len(raw.Sources)) // the script itself
	for i, source := range raw.Sources {
		text, imported := b.files[strings.TrimPrefix(source, transpile.Namespace+":")]
		if imported {
			texts[i], sources[i] = text, newLineIndex(text.Body())
		} else {
			texts[i], sources[i], own[i] = b.entry.text, newLineIndex(b.entry.src), true
		}
	}
	mappings := make([]mapping, 0, len(raw.decoded))
	for _, r := range raw.decoded {
		out := mapping{at: shift + raw.code.offset(r.line, r.column), text: -1}
		if r.source >= 0 && r.source < len(texts) {
			offset, written := sources[r.source].offset(r.sourceLine, r.sourceColumn), true
			if own[r.source] {
				offset, written = b.entry.offset(offset)
			}
			if written {
				out.text, out.offset = r.source, offset
			}
		}
		mappings = append(mappings, out)
	}
	slices.SortStableFunc(mappings, func(x, y mapping) int { return x.at - y.at })
	return texts, mappings
}

// lineIndex converts lines and columns of a text to offsets.
type lineIndex struct {
	text   string
	starts []int // offsets of the lines
	// units has the offsets of all UTF-16 units, and first the first unit of each line. Both are
	// nil if every unit is a byte.
	units []int32
	first []int
}

func newLineIndex(text string) lineIndex {
	l := lineIndex{text: text, starts: lineStarts(text)}
	if isASCII(text) {
		return l
	}
	next := 0
	for i, r := range text {
		if next < len(l.starts) && l.starts[next] == i {
			l.first = append(l.first, len(l.units))
			next++
		}
		l.units = append(l.units, int32(i))
		if r > 0xFFFF {
			l.units = append(l.units, int32(i))
		}
	}
	return l
}

// offset returns the offset of a line and a column, both from 0, the column in UTF-16 units.
// Positions outside of the text become its end.
func (l lineIndex) offset(line, column int) int {
	switch {
	case line < 0 || line >= len(l.starts):
		return len(l.text)
	case l.units == nil:
		return min(l.starts[line]+max(0, column), len(l.text))
	case line >= len(l.first) || l.first[line]+column >= len(l.units) || column < 0:
		return len(l.text)
	}
	return int(l.units[l.first[line]+column])
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func lineStarts(s string) []int {
	starts := []int{0}
	for at := syntax.LineLength(s); at < len(s); {
		at += terminatorLength(s[at:])
		starts = append(starts, at)
		at += syntax.LineLength(s[at:])
	}
	return starts
}
