package main

import (
	"context"
	"io"
	"strings"

	"golang.org/x/term"
)

const (
	ctrlC  = 3
	ctrlZ  = 26
	escape = 27
)

// keys reads what the user types, in chunks, until the end of the process: nothing interrupts a read
// of a terminal.
func (d *devSession) keys() <-chan []byte {
	if !d.env.stdinIsTerminal {
		return nil
	}
	typed := make(chan []byte)
	go func() {
		defer d.screen.close() // before a panic is printed
		for {
			chunk := make([]byte, 256)
			n, err := d.env.stdin.Read(chunk)
			if err != nil || n == 0 {
				d.quit() // the terminal has gone
				return
			}
			typed <- chunk[:n]
		}
	}()
	return typed
}

// nextKey returns the first key of typed bytes, and the rest. A key that sends a sequence, such as an
// arrow key, is 0. The terminal sends a sequence at once, so an escape at the end is the key Esc.
func nextKey(typed []byte) (key byte, rest []byte) {
	if typed[0] != escape || len(typed) == 1 {
		return typed[0], typed[1:]
	}
	n := 1
	if typed[1] == '[' || typed[1] == 'O' { // parameters follow, and then a letter or a tilde
		for n = 2; n < len(typed) && typed[n] >= '0' && typed[n] <= '?'; n++ {
		}
	}
	return 0, typed[min(n+1, len(typed)):]
}

// typedInput is what a user types at prompts, until its context ends.
type typedInput struct {
	ctx    context.Context
	chunks chan []byte
	rest   []byte
}

func (in *typedInput) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, io.ErrShortBuffer // the editor waits for the end of a sequence that is too long
	}
	for len(in.rest) == 0 {
		select {
		case in.rest = <-in.chunks:
		case <-in.ctx.Done():
			return 0, io.EOF
		}
	}
	n := copy(p, in.rest)
	in.rest = in.rest[n:]
	return n, nil
}

// newTypedDialog returns a dialog on a terminal without echo. The arrow keys edit the line, and bring
// back the lines of dialogs before it.
func (d *devSession) newTypedDialog(in io.Reader) *dialog {
	editor := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{in, d.env.stdout}, "")
	if d.typedLines == nil {
		d.typedLines = typedLines{editor.History}
	}
	editor.History = d.typedLines
	talk := &dialog{out: editor, dir: d.env.resolve("."), editor: editor}
	talk.repaint(d.env)
	return talk
}

// typedLines keeps the lines that a user has typed, except empty ones.
type typedLines struct{ term.History }

func (l typedLines) Add(line string) {
	if strings.TrimSpace(line) != "" {
		l.History.Add(line)
	}
}

// repaint draws the line of a dialog again, for the size of the terminal.
func (d *dialog) repaint(e env) {
	if width, height, err := e.size(); err == nil && width > 0 {
		_ = d.editor.SetSize(width, height)
	}
	_, _ = d.editor.Write(nil)
}
