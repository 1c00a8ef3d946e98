package scripting

import (
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/dop251/goja/file"

	"github.com/mcpd/mcpd/diag"
)

// origin leads from places in compiled source back to the author's files.
type origin struct {
	src string // the compiled source
	// body is where the author's text stands in src, when it stands there verbatim.
	body segment
	text diag.Text
	// lowered says that src was made by a compiler; mappings then lead back.
	lowered  bool
	mappings []mapping
	texts    []diag.Text // what the mappings point into
}

// segment says that length bytes of one text are those of another.
type segment struct{ to, from, length int }

// mapping says that what begins at a place of compiled source was made of what
// begins at an offset of a text.
type mapping struct {
	at     int
	text   int
	offset int
}

// at returns the range of the token that the byte at offset of the compiled
// source came from, and false when the author did not write it.
func (o *origin) at(offset int) (diag.Range, bool) {
	text, from, ok := o.trace(offset)
	if !ok {
		return diag.Range{}, false
	}
	return callee(text, from).Range(), true
}

// place is some of what an author wrote.
type place struct {
	text       diag.Text
	start, end int
}

// Range returns the range of the place in its file.
func (p place) Range() diag.Range { return p.text.Range(p.start, p.end) }

// callee returns the word at offset or, of a parenthesis, the word in front of it.
func callee(text diag.Text, offset int) place {
	body := text.Body()
	start := offset
	if offset < len(body) && body[offset] == '(' {
		start = wordStartBefore(body, offset)
	}
	return place{text, start, wordEnd(body, start)}
}

// between returns the range that the bytes from start up to end of the
// compiled source came from, at least one token.
func (o *origin) between(start, end int) (diag.Range, bool) {
	text, from, ok := o.trace(start)
	if !ok {
		return diag.Range{}, false
	}
	to := wordEnd(text.Body(), from)
	if !o.lowered {
		to = max(to, end-o.body.to)
	}
	return text.Range(from, to), true
}

// trace returns the text and the offset in it that a byte of the compiled source came from.
func (o *origin) trace(at int) (text diag.Text, offset int, ok bool) {
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

// compiledName is what the engine calls every compiled source.
const compiledName = "body"

// unplaced is what the engine knows of the source that it runs: a name, and no
// text to count lines in. A script that reads the stack of an error learns from
// it neither a file nor a line; [origin.located] alone leads back to them.
func unplaced() *file.File { return file.NewFile(compiledName, "", 1) }

// located returns what the author wrote at a place of compiled source, which is
// one line to the engine.
func (o *origin) located(at file.Position) (place, bool) {
	if at.Filename != compiledName {
		return place{}, false
	}
	text, from, ok := o.trace(at.Column - 1)
	if !ok {
		return place{}, false
	}
	return callee(text, from), true
}

// wordStartBefore returns where the word begins that ends at offset, or offset
// itself when no word ends there.
func wordStartBefore(body string, offset int) int {
	start := offset
	for start > 0 {
		_, size := utf8.DecodeLastRuneInString(body[:start])
		if !wordStart(body[start-size:]) {
			break
		}
		start -= size
	}
	return start
}

// wordEnd returns the end of the word that begins at offset, or of the one character there.
func wordEnd(body string, offset int) int {
	offset = min(offset, len(body))
	end := offset
	for end < len(body) {
		r, size := utf8.DecodeRuneInString(body[end:])
		if !wordStart(body[end:]) {
			if end == offset && r != '\n' {
				end += size
			}
			break
		}
		end += size
	}
	return end
}

// offset returns the place of a line and a column as goja counts them: lines
// from 1, ended by any line terminator of the language, columns in bytes from 1.
func (o *origin) offset(line, column int) int {
	at := 0
	for ; line > 1; line-- {
		n := lineLength(o.src[at:])
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
