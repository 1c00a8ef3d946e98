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

// printJSON prints a value for machines, as all verbs do: people look at it, too, in
// terminals, which nothing in it may steer (see [seen]).
func printJSON(w io.Writer, value any) error {
	text, err := indentedJSON(value, "")
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// indentedJSON returns a value as printJSON prints it, with the prefix at the beginning of
// each line but the first.
func indentedJSON(value any, prefix string) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(seen{&text})
	encoder.SetEscapeHTML(false)
	encoder.SetIndent(prefix, "  ")
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n")), nil
}

// seen is where JSON is written with every character escaped that is not seen: what
// callers choose could else move other text of a record where somebody reads it. Outside
// of texts JSON has no such character but the end of a line.
type seen struct{ to io.Writer }

func isUnseen(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }

// Write writes a whole record.
func (s seen) Write(record []byte) (int, error) {
	if !bytes.ContainsFunc(record, isUnseen) {
		return s.to.Write(record)
	}
	var shown bytes.Buffer
	for _, r := range string(record) {
		if !isUnseen(r) {
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

// text returns where results go: to stdout as they are, unless that is a
// terminal, which they must not steer.
func (e env) text() io.Writer {
	if e.stdoutIsTerminal {
		return screen{e.stdout}
	}
	return e.stdout
}

// screen is a terminal that shows text of others. Each piece that is written to
// it holds whole characters.
type screen struct{ io.Writer }

// Write writes the lines of p as [diag.Printable] makes them.
func (s screen) Write(p []byte) (int, error) {
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

// tellBlocks prints what the blocks of content are that stand behind a result, and that it
// does not show: those that are no text. What cannot be read is not told.
func tellBlocks(w io.Writer, content json.RawMessage) error {
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
