package lsp

import (
	"cmp"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/mcpd/mcpd/diag"
)

// encoding is the unit of the characters of a position.
type encoding string

const (
	utf16 encoding = "utf-16"
	utf8s encoding = "utf-8"
)

// units returns the length of a text.
func (e encoding) units(text string) uint32 {
	if e == utf8s {
		return uint32(len(text))
	}
	n := uint32(0)
	for _, r := range text {
		n += utf16Units(r)
	}
	return n
}

// bytes returns the length in bytes of the first n units of a line. It is the length of the line if
// there are fewer, and ends before a character that n splits.
func (e encoding) bytes(line string, n uint32) int {
	if e == utf8s {
		at := int(min(uint64(n), uint64(len(line))))
		for at > 0 && at < len(line) && !utf8.RuneStart(line[at]) {
			at--
		}
		return at
	}
	seen := uint32(0)
	for at, r := range line {
		units := utf16Units(r)
		if seen+units > n {
			return at
		}
		seen += units
	}
	return len(line)
}

func utf16Units(r rune) uint32 {
	if r >= 0x10000 {
		return 2
	}
	return 1
}

// lineAt returns the line with a number, counted from 0, without its line end, and its offset. After
// the last line, it is empty at the end of the text.
func lineAt(text string, number uint32) (line string, start int) {
	for ; number > 0; number-- {
		i := strings.IndexByte(text[start:], '\n')
		if i < 0 {
			return "", len(text)
		}
		start += i + 1
	}
	line = text[start:]
	if i := strings.IndexByte(line, '\n'); i >= 0 {
		line = line[:i]
	}
	return strings.TrimSuffix(line, "\r"), start
}

// offset converts a position to an offset in text. It clamps positions outside of the text.
func (e encoding) offset(text string, at position) int {
	line, start := lineAt(text, at.Line)
	return start + e.bytes(line, at.Character)
}

// position converts an offset in text.
func (e encoding) position(text string, offset int) position {
	offset = max(0, min(offset, len(text)))
	start := strings.LastIndexByte(text[:offset], '\n') + 1
	return position{uint32(strings.Count(text[:start], "\n")), e.units(text[start:offset])}
}

func (e encoding) span(text string, start, end int) span {
	return span{e.position(text, start), e.position(text, max(start, end))}
}

// marks are offsets in a text with their positions, so that a position is found without the whole
// text before it. The first one is the start of the text.
type marks []mark

type mark struct {
	offset, lineStart int
	line, character   uint32 // the character in UTF-16
}

// markDistance is the least distance of marks in bytes.
const markDistance = 1 << 10

func marksOf(text string) marks {
	last := mark{}
	all := marks{last}
	for at, r := range text {
		if last.offset = at; at-all[len(all)-1].offset >= markDistance {
			all = append(all, last)
		}
		if last.character += utf16Units(r); r == '\n' {
			last.lineStart, last.line, last.character = at+1, last.line+1, 0
		}
	}
	return all
}

// position converts an offset in the text of the marks.
func (m marks) position(e encoding, text string, offset int) position {
	offset = max(0, min(offset, len(text)))
	after, _ := slices.BinarySearchFunc(m, offset+1, func(m mark, offset int) int { return cmp.Compare(m.offset, offset) })
	near := m[after-1]
	at := e.position(text[near.offset:offset], offset-near.offset)
	switch {
	case at.Line > 0:
	case e == utf8s:
		at.Character = uint32(offset - near.lineStart)
	default:
		at.Character += near.character
	}
	at.Line += near.line
	return at
}

// byteOrderMark may start a file. A document of an editor does not have it.
const byteOrderMark = "\ufeff"

// rangeOf converts the range of a diagnostic in text. Columns of diagnostics count code points.
func (e encoding) rangeOf(text string, r diag.Range) span {
	if r.Start.Line == 0 {
		return span{}
	}
	start := e.positionOf(text, r.Start)
	end := start
	if r.End.Line > 0 {
		end = e.positionOf(text, r.End)
	}
	if end.Line < start.Line || end.Line == start.Line && end.Character < start.Character {
		end = start
	}
	return span{start, end}
}

func (e encoding) positionOf(text string, at diag.Pos) position {
	number := uint32(at.Line - 1)
	line, _ := lineAt(text, number)
	if number == 0 {
		line = strings.TrimPrefix(line, byteOrderMark)
	}
	rest := line
	for column := at.Column; column > 1 && rest != ""; column-- {
		_, size := utf8.DecodeRuneInString(rest)
		rest = rest[size:]
	}
	return position{number, e.units(line[:len(line)-len(rest)])}
}

// apply changes a text. It fails if the result exceeds a size, or if the changes cost too much.
func (e encoding) apply(text string, changes []contentChange, limit int) (string, error) {
	if len(changes) > maxChanges {
		return "", errTooManyChanges
	}
	copied := 0
	for _, c := range changes {
		if c.Range == nil {
			text = c.Text
		} else {
			start := e.offset(text, c.Range.Start)
			end := max(start, e.offset(text, c.Range.End))
			if len(text)-(end-start)+len(c.Text) > limit {
				return "", errDocumentTooLarge
			}
			text = text[:start] + c.Text + text[end:]
		}
		if len(text) > limit {
			return "", errDocumentTooLarge
		}
		if copied += len(text); copied > maxCopied {
			return "", errTooManyChanges
		}
	}
	return text, nil
}

// pathOf returns the path of a file URI.
func pathOf(uri string) (string, error) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Path == "" || strings.ContainsRune(u.Path, 0) {
		return "", fmt.Errorf("%.100q is no URI of a file", uri)
	}
	path := u.Path
	if u.Host != "" && u.Host != "localhost" {
		path = "//" + u.Host + path // a share of another machine
	}
	if len(path) > 2 && path[0] == '/' && path[2] == ':' && filepath.Separator == '\\' {
		path = strings.ToUpper(path[1:2]) + path[2:]
	}
	return filepath.Clean(filepath.FromSlash(path)), nil
}

// uriOf returns the URI of an absolute path.
func uriOf(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/x
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}
