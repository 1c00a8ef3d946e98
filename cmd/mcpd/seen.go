package main

import (
	"bytes"
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
)

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
