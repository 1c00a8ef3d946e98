package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

const (
	ctrlC  = 3
	ctrlZ  = 26
	escape = 27
)

// Marks around a paste, and the sequences that turn them on and off (DEC mode 2004). A terminal that does
// not know the mode sends a paste as keys.
const (
	pasteOn    = "\x1b[?2004h"
	pasteOff   = "\x1b[?2004l"
	pasteStart = "\x1b[200~"
	pasteEnd   = "\x1b[201~"
)

// typed is what a user has typed.
type typed struct {
	kind typedKind
	text []byte
}

type typedKind int

const (
	typedKeys   typedKind = iota
	pasteBegins           // without its text
	pasteEnds             // with the whole text; if that is longer than maxTyped, it may be incomplete
)

// keys reads what the user types, until the end of the process: nothing interrupts a read of a terminal.
func (d *devSession) keys() <-chan typed {
	if !d.env.stdinIsTerminal {
		return nil
	}
	all := make(chan typed)
	go func() {
		defer d.screen.close() // before a panic is printed
		var split pasteSplitter
		chunk := make([]byte, 4096)
		for {
			n, err := d.env.stdin.Read(chunk)
			if err != nil || n == 0 {
				d.quit() // the terminal has gone
				return
			}
			for _, one := range split.next(chunk[:n], n == len(chunk)) {
				all <- one
			}
		}
	}()
	return all
}

// pasteSplitter separates keys and pastes. A mark may be in two reads.
type pasteSplitter struct {
	partial []byte // the beginning of a mark, at the end of the last read
	pasting bool
	paste   []byte
}

// next splits a chunk. more means that the terminal has probably sent more already.
func (s *pasteSplitter) next(chunk []byte, more bool) (all []typed) {
	add := func(kind typedKind, text []byte) {
		if kind != typedKeys || len(text) > 0 {
			all = append(all, typed{kind, bytes.Clone(text)})
		}
	}
	if s.pasting && (string(chunk) == string(rune(ctrlC)) || string(chunk) == string(rune(ctrlZ))) {
		s.pasting, s.paste = false, nil // its end is missing, and the user wants to leave
	}
	rest := append(s.partial, chunk...)
	s.partial = nil
	for {
		if !s.pasting {
			keys, paste, found := bytes.Cut(rest, []byte(pasteStart))
			if !found {
				keys, s.partial = cutPartial(rest, pasteStart, more)
				add(typedKeys, keys)
				return all
			}
			add(typedKeys, keys)
			add(pasteBegins, nil)
			s.pasting, rest = true, paste
		}
		from := max(0, len(s.paste)-len(pasteEnd))
		s.paste = append(s.paste, rest...)
		end := bytes.Index(s.paste[from:], []byte(pasteEnd))
		if end < 0 {
			if len(s.paste) > 2*maxTyped {
				s.paste = append(s.paste[:maxTyped+1], s.paste[len(s.paste)-len(pasteEnd):]...)
			}
			return all
		}
		end += from
		add(pasteEnds, s.paste[:end])
		rest, s.pasting, s.paste = s.paste[end+len(pasteEnd):], false, nil
	}
}

// cutPartial separates the beginning of a mark from the end of typed bytes. A lone escape is the key
// Esc, unless there is more.
func cutPartial(typed []byte, mark string, more bool) (keys, partial []byte) {
	for n := min(len(typed), len(mark)-1); n > 1 || n == 1 && more; n-- {
		if bytes.HasSuffix(typed, []byte(mark[:n])) {
			return typed[:len(typed)-n], bytes.Clone(typed[len(typed)-n:])
		}
	}
	return typed, nil
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

// Characters that show a line break and a tab of a paste in the line of an editor.
const (
	shownNewline = "\u2424"
	shownTab     = "\u2409"
)

// pasteLine returns a paste as a part of one line for an editor, or an error if the line could not show
// all of it.
func pasteLine(text []byte) (string, error) {
	line := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(text))
	switch {
	case len(text) > maxTyped:
		return "", fmt.Errorf("it is longer than %d bytes", maxTyped)
	case strings.ContainsRune(line, utf8.RuneError):
		return "", errors.New("it is not valid UTF-8")
	case strings.ContainsAny(line, shownNewline+shownTab):
		return "", errors.New("it contains " + shownNewline + " or " + shownTab + ", which stand for a line break and a tab here")
	case strings.ContainsFunc(line, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }):
		return "", errors.New("it contains control characters")
	}
	return strings.NewReplacer("\n", shownNewline, "\t", shownTab).Replace(line), nil
}

// pastedLine returns the text of a line that an editor shows.
func pastedLine(line string) string {
	return strings.NewReplacer(shownNewline, "\n", shownTab, "\t").Replace(line)
}

// typedInput is what a user types at prompts, until its context ends. An editor reads it.
type typedInput struct {
	// fixed at creation
	ctx  context.Context
	more chan struct{} // receives a value when the queue has grown

	// guarded by mu
	mu      sync.Mutex
	queue   []byte
	lost    bool // the queue was too long for some keys
	pasting bool // a paste has started
	late    bool // it started before the last call of drop
}

func newTypedInput(ctx context.Context) *typedInput {
	return &typedInput{ctx: ctx, more: make(chan struct{}, 1)}
}

// add adds what the user has typed. The error says why a paste is refused.
func (in *typedInput) add(t typed) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	text := t.text
	switch t.kind {
	case pasteBegins:
		in.pasting, in.late = true, false
		return nil
	case pasteEnds:
		in.pasting = false
		if in.late {
			return errors.New("it began before this question")
		}
		line, err := pasteLine(text)
		if err != nil {
			return err
		}
		text = []byte(pasteStart + line + pasteEnd)
	}
	if len(in.queue)+len(text) > 2*maxTyped {
		in.lost = true
		return nil
	}
	in.queue = append(in.queue, text...)
	notify(in.more)
	return nil
}

// drop forgets what was typed and not read yet.
func (in *typedInput) drop() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.queue, in.lost, in.late = nil, false, in.pasting
}

// isLost reports whether keys were lost.
func (in *typedInput) isLost() bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.lost
}

// Read returns at most one line, so that the editor holds nothing of the next one.
func (in *typedInput) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, io.ErrShortBuffer // the editor waits for the end of a sequence that is too long
	}
	for in.ctx.Err() == nil {
		in.mu.Lock()
		n := copy(p, in.queue)
		if end := bytes.IndexAny(p[:n], "\r\n"); end >= 0 {
			if n = end + 1; p[end] == '\r' && n < len(p) && n < len(in.queue) && in.queue[n] == '\n' {
				n++
			}
		}
		in.queue = in.queue[n:]
		in.mu.Unlock()
		if n > 0 {
			return n, nil
		}
		select {
		case <-in.more:
		case <-in.ctx.Done():
		}
	}
	return 0, io.EOF
}

// maxEdited is the number of characters of a line after which golang.org/x/term ignores keys, but not
// pastes.
const maxEdited = 4096

// maxKept is the maximum length in bytes of a line that an editor can bring back.
const maxKept = 1 << 16

// lineEditor reads lines from a terminal without echo. The arrow keys edit the line, and bring back
// lines that were typed before.
type lineEditor struct {
	*term.Terminal
	in    *typedInput
	lines term.History
	// complete completes a line at the key Tab, unless it is nil.
	complete func(line string) string
	full     bool // the editor ignored a key
}

// newTypedDialog returns a dialog on a terminal without echo. It knows the lines of dialogs before it.
func (d *devSession) newTypedDialog(in *typedInput) *dialog {
	terminal := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{in, d.env.stdout}, "")
	if d.typedLines == nil {
		d.typedLines = terminal.History
	}
	terminal.History = acceptedLines{d.typedLines}
	talk := &dialog{out: terminal, dir: d.env.resolve("."), editor: &lineEditor{Terminal: terminal, in: in, lines: d.typedLines}}
	talk.repaint(d.env)
	return talk
}

// acceptedLines is a history whose lines the dialog adds when it has accepted them.
type acceptedLines struct{ term.History }

func (acceptedLines) Add(string) {}

// line reads a line. It does not return a line of which the editor has lost a part.
func (l *lineEditor) line() (string, error) {
	for {
		l.full, l.AutoCompleteCallback = false, l.key
		edited, err := l.ReadLine()
		if err != nil && !errors.Is(err, term.ErrPasteIndicator) {
			return "", errInputEnd
		}
		line := pastedLine(edited)
		if !l.full && !l.in.isLost() && len(line) <= maxTyped {
			if strings.TrimSpace(line) != "" && len(line) <= maxKept {
				l.lines.Add(edited)
			}
			return line, nil
		}
		l.in.drop()
		fmt.Fprintf(l, "  too long: the keyboard takes %d characters, and a paste %d bytes if the terminal marks pastes; type it again\n", maxEdited, maxTyped)
	}
}

// key is called for each key that the editor does not know.
func (l *lineEditor) key(line string, pos int, key rune) (string, int, bool) {
	switch {
	case key == '\t' && l.complete != nil && pos == len(line):
		line = l.complete(line)
		return line, len(line), true
	case key >= ' ' && utf8.ValidRune(key) && utf8.RuneCountInString(line) == maxEdited:
		l.full, l.AutoCompleteCallback = true, nil
	}
	return "", 0, false
}

// repaint draws the line of a dialog again, for the size of the terminal.
func (d *dialog) repaint(e env) {
	if width, height, err := e.size(); err == nil && width > 0 {
		_ = d.editor.SetSize(width, height)
	}
	_, _ = d.editor.Write(nil)
}
