package scripting

import (
	"fmt"
	"strings"
)

// csvReader cuts CSV into fields, as RFC 4180 has it: a field may stand in
// quotes, in which two stand for one. A line may end with any of \r\n, \n and
// \r; one that is empty counts for nothing. It reads each byte once.
//
// It is written by hand because encoding/csv makes \n of \r\n in a field in quotes,
// refuses a quote in a field that begins with none, and ends no line at a lone \r.
type csvReader struct {
	src       string
	separator string
	at, line  int
}

// csvError says where text is no CSV. It repeats none of the text.
type csvError struct {
	line    int
	message string
}

func (e *csvError) Error() string { return fmt.Sprintf("line %d %s", e.line, e.message) }

func newCSVReader(text, separator string) *csvReader {
	return &csvReader{src: strings.TrimPrefix(text, byteOrderMark), separator: separator, line: 1}
}

// more goes to the next line that holds something, and reports whether there
// is one.
func (c *csvReader) more() bool {
	for c.at < len(c.src) && c.ended() {
		c.end()
	}
	return c.at < len(c.src)
}

func (c *csvReader) ended() bool {
	return c.at >= len(c.src) || c.src[c.at] == '\n' || c.src[c.at] == '\r'
}

// end skips the end of a line.
func (c *csvReader) end() {
	if c.at < len(c.src) {
		c.at += lineEndLength(c.src[c.at:])
		c.line++
	}
}

func lineEndLength(s string) int {
	if strings.HasPrefix(s, "\r\n") {
		return 2
	}
	return 1
}

// field returns the next field, and whether it was the last one of its line.
func (c *csvReader) field() (text string, last bool, err error) {
	if strings.HasPrefix(c.src[c.at:], `"`) {
		text, err = c.quoted()
	} else {
		text = c.plain()
	}
	switch {
	case err != nil:
		return "", false, err
	case c.ended():
		c.end()
		return text, true, nil
	case strings.HasPrefix(c.src[c.at:], c.separator):
		c.at += len(c.separator)
		return text, false, nil
	}
	return "", false, &csvError{c.line, "has text behind a field in quotes; a quote in a field is written twice"}
}

func (c *csvReader) plain() string {
	start := c.at
	for !c.ended() && !strings.HasPrefix(c.src[c.at:], c.separator) {
		c.at++
	}
	return c.src[start:c.at]
}

func (c *csvReader) quoted() (string, error) {
	opened := c.line
	var b strings.Builder
	for c.at++; ; c.at += 2 {
		n := strings.IndexByte(c.src[c.at:], '"')
		if n < 0 {
			return "", &csvError{opened, "opens a quote that nothing closes"}
		}
		piece := c.src[c.at : c.at+n]
		c.line += strings.Count(piece, "\n")
		c.at += n
		if !strings.HasPrefix(c.src[c.at:], `""`) {
			c.at++
			if b.Len() == 0 {
				return piece, nil
			}
			b.WriteString(piece)
			return b.String(), nil
		}
		b.WriteString(piece)
		b.WriteByte('"')
	}
}

// appendCSV appends a field, in quotes where it needs them.
func appendCSV(out []byte, text, separator string, alone bool) []byte {
	switch {
	case alone && text == "", strings.ContainsAny(text, "\"\r\n"), strings.Contains(text, separator), strings.HasPrefix(text, byteOrderMark):
		out = append(out, '"')
		out = append(out, strings.ReplaceAll(text, `"`, `""`)...)
		return append(out, '"')
	}
	return append(out, text...)
}
