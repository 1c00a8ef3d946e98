package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/mcpd/mcpd/diag"
)

// printJSON prints a value as JSON. Control characters are escaped, since people read
// the output in terminals.
func printJSON(w io.Writer, value any) error {
	text, err := indentedJSON(value, "")
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// indentedJSON returns a value as printJSON prints it, with prefix at the start of each
// line but the first.
func indentedJSON(value any, prefix string) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(escapeWriter{&text})
	encoder.SetEscapeHTML(false)
	encoder.SetIndent(prefix, "  ")
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// escapeWriter is a writer of JSON that escapes non-printable characters, which could alter
// other text on a terminal. Outside of strings JSON has none of them except line ends.
type escapeWriter struct{ to io.Writer }

func isInvisible(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }

// Write writes one complete record.
func (s escapeWriter) Write(record []byte) (int, error) {
	if !bytes.ContainsFunc(record, isInvisible) {
		return s.to.Write(record)
	}
	var shown bytes.Buffer
	for _, r := range string(record) {
		if !isInvisible(r) {
			shown.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&shown, `\u%04x`, unit)
		}
	}
	_, err := s.to.Write(shown.Bytes())
	return len(record), err
}

// text returns the writer for results: stdout unchanged, or escaped if it is a
// terminal.
func (e env) text() io.Writer {
	if e.stdoutIsTerminal {
		return terminalWriter{e.stdout}
	}
	return e.stdout
}

// terminalWriter is a terminal that shows untrusted text. Each Write must hold whole
// characters.
type terminalWriter struct{ io.Writer }

// Write writes the lines of p, escaped by [diag.Printable].
func (s terminalWriter) Write(p []byte) (int, error) {
	var shown strings.Builder
	for line := range strings.Lines(string(p)) {
		text, ended := strings.CutSuffix(line, "\n")
		if ended {
			text = strings.TrimSuffix(text, "\r")
		}
		shown.WriteString(diag.Printable(text))
		if ended {
			shown.WriteByte('\n')
		}
	}
	if _, err := io.WriteString(s.Writer, shown.String()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// printContentBlocks prints a line for each content block that is not text. It ignores content
// that is not valid.
func printContentBlocks(w io.Writer, content json.RawMessage) error {
	var blocks []json.RawMessage
	if json.Unmarshal(content, &blocks) != nil {
		return nil
	}
	for _, encoded := range blocks {
		var b block
		if json.Unmarshal(encoded, &b) != nil || b.Type == "text" {
			continue
		}
		if _, err := fmt.Fprint(w, endLine(b.text())); err != nil {
			return err
		}
	}
	return nil
}
