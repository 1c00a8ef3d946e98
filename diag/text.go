package diag

import (
	"encoding/json"
	"errors"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"
)

// Text is source embedded in a file: a heredoc, a quoted string, or the whole file. It maps
// each of its bytes to a position in the file, even if an escape or a stripped indent changes
// the offsets. The zero Text is empty and has no position. A Text is immutable.
type Text struct {
	file string
	body string
	runs []run
}

// run maps the bytes of the text from offset at to the file from the position. It is small,
// because a long JSON string with escapes has a run for each. Files are far below 2 GiB.
type run struct{ at, line, column, byte int32 }

func newRun(at int, pos Pos) run {
	return run{int32(at), int32(pos.Line), int32(pos.Column), int32(pos.Byte)}
}

func (r run) pos() Pos { return Pos{Line: int(r.line), Column: int(r.column), Byte: int(r.byte)} }

// NewText returns a text that the file holds verbatim, starting at start.
func NewText(file, body string, start Pos) Text {
	return Text{file: file, body: body, runs: []run{newRun(0, start)}}
}

// WholeFile returns the text of a whole file.
func WholeFile(file, body string) Text {
	return NewText(file, body, Pos{Line: 1, Column: 1})
}

// TextBuilder builds a [Text] of pieces that are not adjacent in the file. The zero value with
// File set is ready to use.
type TextBuilder struct {
	File string
	body strings.Builder
	runs []run
}

// Add appends piece, which the file holds verbatim at pos. The result of an escape sequence is
// a piece with the position of the escape.
func (b *TextBuilder) Add(piece string, pos Pos) {
	if n := len(b.runs); n == cap(b.runs) {
		b.runs = slices.Grow(b.runs, n+1) // append alone would copy large runs more often
	}
	b.runs = append(b.runs, newRun(b.body.Len(), pos))
	b.body.WriteString(piece)
}

// Text returns the text added so far.
func (b *TextBuilder) Text() Text {
	return Text{file: b.File, body: b.body.String(), runs: b.runs}
}

// File returns the path of the file that holds the text.
func (t Text) File() string { return t.file }

// Body returns the text itself.
func (t Text) Body() string { return t.body }

// IsZero reports whether the text has no position in a file.
func (t Text) IsZero() bool { return len(t.runs) == 0 }

// Pos returns the position of the byte at offset. It clamps offset to the text.
func (t Text) Pos(offset int) Pos {
	if t.IsZero() {
		return Pos{}
	}
	offset = max(0, min(offset, len(t.body)))
	i := sort.Search(len(t.runs), func(i int) bool { return int(t.runs[i].at) > offset }) - 1
	r := t.runs[max(i, 0)]
	return Advance(r.pos(), t.body[r.at:offset])
}

// Advance returns the position after reading s at pos.
func Advance(pos Pos, s string) Pos {
	pos.Byte += len(s)
	if i := strings.LastIndexByte(s, '\n'); i >= 0 {
		pos.Line += strings.Count(s, "\n")
		pos.Column = 1
		s = s[i+1:]
	}
	pos.Column += utf8.RuneCountInString(s)
	return pos
}

// Range returns the range of the bytes from start up to end.
func (t Text) Range(start, end int) Range {
	return Range{File: t.file, Start: t.Pos(start), End: t.Pos(max(start, end))}
}

// All returns the range of the whole text.
func (t Text) All() Range { return t.Range(0, len(t.body)) }

// Offset converts a line and a column of the text itself to an offset. Lines and columns count
// from 1; columns count code points. A position outside the text is clamped.
func (t Text) Offset(line, column int) int {
	offset := 0
	for ; line > 1; line-- {
		i := strings.IndexByte(t.body[offset:], '\n')
		if i < 0 {
			return len(t.body)
		}
		offset += i + 1
	}
	for ; column > 1 && offset < len(t.body) && t.body[offset] != '\n'; column-- {
		_, size := utf8.DecodeRuneInString(t.body[offset:])
		offset += size
	}
	return offset
}

// wireText is the JSON encoding of a text.
type wireText struct {
	File string `json:"file"`
	Body string `json:"body"`
	// Runs are tuples of the offset in the text and the line, column and byte in the file.
	Runs [][4]int `json:"runs"`
}

// MarshalJSON encodes the text with its positions.
func (t Text) MarshalJSON() ([]byte, error) {
	wire := wireText{File: t.file, Body: t.body}
	for _, r := range t.runs {
		wire.Runs = append(wire.Runs, [4]int{int(r.at), int(r.line), int(r.column), int(r.byte)})
	}
	return json.Marshal(wire)
}

// UnmarshalJSON decodes the encoding of [Text.MarshalJSON].
func (t *Text) UnmarshalJSON(data []byte) error {
	var wire wireText
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	read := Text{file: wire.File, body: wire.Body}
	for i, r := range wire.Runs {
		if r[0] < 0 || r[0] > len(wire.Body) || i > 0 && r[0] < wire.Runs[i-1][0] || i == 0 && r[0] != 0 {
			return errors.New("text positions are out of order")
		}
		read.runs = append(read.runs, newRun(r[0], Pos{Line: r[1], Column: r[2], Byte: r[3]}))
	}
	*t = read
	return nil
}
