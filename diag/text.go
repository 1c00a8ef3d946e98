package diag

import (
	"encoding/json"
	"errors"
	"sort"
	"strings"
	"unicode/utf8"
)

// Text is source that stands inside a file: a heredoc, a quoted string, or
// the whole of a file. It knows which place of the file each byte came from,
// also where an escape or a stripped indent makes the two differ. The zero
// Text is empty and stands nowhere. A Text is immutable.
type Text struct {
	file string
	body string
	runs []run
}

// run says that the body from offset at on stands verbatim in the file from pos on.
type run struct {
	at  int
	pos Pos
}

// NewText returns the text body that stands verbatim in the file from start on.
func NewText(file, body string, start Pos) Text {
	return Text{file: file, body: body, runs: []run{{0, start}}}
}

// WholeFile returns the text that is the file itself.
func WholeFile(file, body string) Text {
	return NewText(file, body, Pos{Line: 1, Column: 1})
}

// A TextBuilder makes a [Text] of pieces that do not follow each other in the
// file. The zero value, with File set, is ready for use.
type TextBuilder struct {
	File string
	body strings.Builder
	runs []run
}

// Add appends piece, which stands verbatim in the file from pos on. A piece
// that an escape stands for is added alone, at the place of the escape.
func (b *TextBuilder) Add(piece string, pos Pos) {
	b.runs = append(b.runs, run{b.body.Len(), pos})
	b.body.WriteString(piece)
}

// Text returns what was added so far.
func (b *TextBuilder) Text() Text {
	return Text{file: b.File, body: b.body.String(), runs: b.runs}
}

// File returns the path of the file that the text stands in.
func (t Text) File() string { return t.file }

// Body returns the text itself.
func (t Text) Body() string { return t.body }

// IsZero reports whether the text stands nowhere, so that it was never written.
func (t Text) IsZero() bool { return len(t.runs) == 0 }

// Pos returns the place in the file of the byte at offset. Offsets outside the
// text are moved to its nearer end.
func (t Text) Pos(offset int) Pos {
	if t.IsZero() {
		return Pos{}
	}
	offset = max(0, min(offset, len(t.body)))
	i := sort.Search(len(t.runs), func(i int) bool { return t.runs[i].at > offset }) - 1
	r := t.runs[max(i, 0)]
	return Advance(r.pos, t.body[r.at:offset])
}

// Advance returns the place that is reached from pos by reading s.
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

// Range returns the range in the file of the bytes from start up to end.
func (t Text) Range(start, end int) Range {
	return Range{File: t.file, Start: t.Pos(start), End: t.Pos(max(start, end))}
}

// All returns the range of the whole text.
func (t Text) All() Range { return t.Range(0, len(t.body)) }

// Offset returns the offset of a place that is told as a line and a column of
// the text itself: lines from 1, columns in code points from 1. Places outside
// the text are moved to the nearest one inside.
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

// wireText is a text as it crosses to another process.
type wireText struct {
	File string `json:"file"`
	Body string `json:"body"`
	// Runs are an offset of the body and its line, column and byte, each.
	Runs [][4]int `json:"runs"`
}

// MarshalJSON encodes the text with all that it knows of its places.
func (t Text) MarshalJSON() ([]byte, error) {
	wire := wireText{File: t.file, Body: t.body}
	for _, r := range t.runs {
		wire.Runs = append(wire.Runs, [4]int{r.at, r.pos.Line, r.pos.Column, r.pos.Byte})
	}
	return json.Marshal(wire)
}

// UnmarshalJSON decodes what [Text.MarshalJSON] has encoded.
func (t *Text) UnmarshalJSON(data []byte) error {
	var wire wireText
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	read := Text{file: wire.File, body: wire.Body}
	for i, r := range wire.Runs {
		if r[0] < 0 || r[0] > len(wire.Body) || i > 0 && r[0] < wire.Runs[i-1][0] || i == 0 && r[0] != 0 {
			return errors.New("a text whose places are out of order")
		}
		read.runs = append(read.runs, run{r[0], Pos{Line: r[1], Column: r[2], Byte: r[3]}})
	}
	*t = read
	return nil
}
