package main

import (
	"io"
	"strings"

	"github.com/mcpd/mcpd/diag"
)

// text returns where results go: to stdout as they are, unless that is a
// terminal, which they must not steer.
func (e env) text() io.Writer {
	if e.screen {
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
