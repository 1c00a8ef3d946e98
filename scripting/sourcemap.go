package scripting

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/scripting/transpile"
)

// The reader is written by hand because go-sourcemap, which the engine uses, has
// no place for what was made of nothing, drops what points to the beginning of a
// source, and panics for a source that is not listed.

// sourceMap is the part of a source map (ECMA-426) that is read.
type sourceMap struct {
	Sources  []string `json:"sources"`
	Mappings string   `json:"mappings"`

	decoded []rawMapping
	code    places
}

// rawMapping is one mapping as the format has it: lines and columns from 0,
// columns in UTF-16 units.
type rawMapping struct {
	line, column             int
	source                   int // -1: made of nothing
	sourceLine, sourceColumn int
}

// decodeSourceMap reads the map of generated code.
func decodeSourceMap(data []byte, code string) (*sourceMap, error) {
	m := &sourceMap{code: newPlaces(code)}
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

// decodeVLQ reads the numbers of one mapping.
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

// resolve turns the mappings of a source map into offsets, those of the
// compiled source shift bytes further on, and returns the texts that they point into.
func (m *modules) resolve(raw *sourceMap, shift int) ([]diag.Text, []mapping) {
	texts := make([]diag.Text, len(raw.Sources))
	sources := make([]places, len(raw.Sources))
	own := make([]bool, len(raw.Sources)) // made of the body itself
	for i, source := range raw.Sources {
		text, imported := m.files[strings.TrimPrefix(source, transpile.Namespace+":")]
		if imported {
			texts[i], sources[i] = text, newPlaces(text.Body())
		} else {
			texts[i], sources[i], own[i] = m.entry.text, newPlaces(m.entry.src), true
		}
	}
	mappings := make([]mapping, 0, len(raw.decoded))
	for _, r := range raw.decoded {
		out := mapping{at: shift + raw.code.offset(r.line, r.column), text: -1}
		if r.source >= 0 && r.source < len(texts) {
			offset, written := sources[r.source].offset(r.sourceLine, r.sourceColumn), true
			if own[r.source] {
				offset, written = m.entry.offset(offset)
			}
			if written {
				out.text, out.offset = r.source, offset
			}
		}
		mappings = append(mappings, out)
	}
	slices.SortStableFunc(mappings, func(a, b mapping) int { return a.at - b.at })
	return texts, mappings
}

// places finds the byte at a line and a column of a text.
type places struct {
	text   string
	starts []int // the offsets of the lines
	// units are the offsets of all UTF-16 units, and first the unit that each
	// line begins with. Both are nil when every unit is a byte.
	units []int32
	first []int
}

func newPlaces(text string) places {
	p := places{text: text, starts: lineStarts(text)}
	if isASCII(text) {
		return p
	}
	next := 0
	for i, r := range text {
		if next < len(p.starts) && p.starts[next] == i {
			p.first = append(p.first, len(p.units))
			next++
		}
		p.units = append(p.units, int32(i))
		if r > 0xFFFF {
			p.units = append(p.units, int32(i))
		}
	}
	return p
}

// offset returns the offset of a line and a column, both from 0, the column in
// UTF-16 units. Places outside the text are moved to its end.
func (p places) offset(line, column int) int {
	switch {
	case line < 0 || line >= len(p.starts):
		return len(p.text)
	case p.units == nil:
		return min(p.starts[line]+max(0, column), len(p.text))
	case line >= len(p.first) || p.first[line]+column >= len(p.units) || column < 0:
		return len(p.text)
	}
	return int(p.units[p.first[line]+column])
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// lineStarts returns the offsets of all lines.
func lineStarts(s string) []int {
	starts := []int{0}
	for at := lineLength(s); at < len(s); {
		at += terminatorLength(s[at:])
		starts = append(starts, at)
		at += lineLength(s[at:])
	}
	return starts
}
