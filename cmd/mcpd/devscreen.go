package main

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/mcpd/mcpd/diag"
)

// ANSI sequences of the view. While wrap is off, the terminal cuts off a line that is too long.
const (
	openScreen  = "\x1b[?1049h\x1b[?25l" + wrapOff + "\x1b[2J"
	closeScreen = wrapOn + "\x1b[?25h\x1b[?1049l"
	topLeft     = "\x1b[H"
	clearLine   = "\x1b[K" // from the cursor
	newLine     = "\r\n"
	wrapOn      = "\x1b[?7h"
	wrapOff     = "\x1b[?7l"
)

// redrawEvery is the interval at which the view follows the size of the terminal and the time.
const redrawEvery = 250 * time.Millisecond

// screenUse is what a [devScreen] shows.
type screenUse int

const (
	noScreen     screenUse = iota // what other programs show
	viewScreen                    // the alternate screen
	promptScreen                  // prompts, below what the terminal showed before
)

// devScreen is the terminal of a view: keys without echo, for the view and for prompts.
type devScreen struct {
	env env

	// guarded by mu
	mu      sync.Mutex
	use     screenUse
	closed  bool // for good
	restore func() error
	frame   string // on the screen
}

// open switches to the view. It does nothing after close.
func (t *devScreen) open() error { return t.switchTo(viewScreen) }

// suspend switches back to what the terminal showed before, for prompts.
func (t *devScreen) suspend() error { return t.switchTo(promptScreen) }

func (t *devScreen) switchTo(use screenUse) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.use == use || t.closed {
		return nil
	}
	if t.use == noScreen {
		return t.enter(use)
	}
	return t.show(use)
}

// enter takes the terminal. mu is held.
func (t *devScreen) enter(use screenUse) error {
	t.restore = func() error { return nil }
	if t.env.stdinIsTerminal {
		restore, err := t.env.raw()
		if err != nil {
			return findingsError("use the terminal: %v", err)
		}
		t.restore = restore
	}
	return t.show(use)
}

// show changes what the terminal shows. mu is held.
func (t *devScreen) show(use screenUse) error {
	before := t.use
	t.use, t.frame = use, ""
	text := ""
	if before == promptScreen && use != promptScreen {
		text = newLine // the line of a prompt may be open
	}
	switch {
	case !t.env.stdinIsTerminal:
	case use == noScreen:
		text += pasteOff
	default:
		text += pasteOn
	}
	switch {
	case use == viewScreen:
		text += openScreen
	case before == viewScreen:
		text += closeScreen
	}
	_, err := io.WriteString(t.env.stdout, text)
	return err
}

// pause gives the terminal back until stop returns. Nothing uses the terminal meanwhile.
func (t *devScreen) pause(stop func()) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	use := t.use
	t.leave()
	stop()
	if use == noScreen {
		return nil
	}
	return t.enter(use)
}

// resume takes the terminal again after something else has used it without a call of pause. The
// terminal is restored to what it was before the view.
func (t *devScreen) resume() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.use == noScreen {
		return nil
	}
	restore := t.restore
	err := t.enter(t.use)
	t.restore = restore
	return err
}

// close gives the terminal back for good. It may be called at any time, more than once, and on nil.
func (t *devScreen) close() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leave()
	t.closed = true
}

// leave gives the terminal back. mu is held.
func (t *devScreen) leave() {
	if t.use == noScreen {
		return
	}
	_ = t.show(noScreen) // a terminal that is gone shows nothing
	_ = t.restore()
}

// draw shows the rows of a view for the current size.
func (t *devScreen) draw(view func(width, height int) []row) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.use != viewScreen {
		return nil
	}
	width, height, err := t.env.size()
	if err != nil || width <= 0 || height <= 0 {
		width, height = 80, 24
	}
	rows := view(width, height)
	frame := frameOf(rows[:min(len(rows), height)], width)
	if frame == t.frame {
		return nil
	}
	t.frame = frame
	_, err = io.WriteString(t.env.stdout, frame)
	return err
}

// frameOf returns the text that draws rows. A line that ends at the edge has no place for a sequence
// that clears the rest of it, so lines are cleared before they are written. Where a line goes on, the
// terminal wraps it.
func frameOf(rows []row, width int) string {
	var frame strings.Builder
	frame.WriteString(topLeft)
	wrapped := false // the line of the row before goes on
	for i, r := range rows {
		switch {
		case !wrapped && i > 0:
			frame.WriteString(newLine + clearLine)
		case !wrapped:
			frame.WriteString(clearLine)
		}
		if r.goesOn && !wrapped {
			frame.WriteString(wrapOn)
		}
		frame.WriteString(r.text)
		if wrapped && !r.goesOn {
			if utf8.RuneCountInString(r.text) < width {
				frame.WriteString(clearLine)
			}
			frame.WriteString(wrapOff)
		}
		wrapped = r.goesOn
	}
	return frame.String()
}

// runView serves with a view on the terminal.
func (d *devSession) runView() error {
	d.screen = &devScreen{env: d.env}
	defer d.watchTerminal()()
	defer d.screen.close()
	if err := d.screen.open(); err != nil {
		return err
	}
	e, log := d.env, &devLogLines{d}
	e.stdin, e.stdout, e.stderr = strings.NewReader(""), log, log
	e.stdinIsTerminal, e.stdoutIsTerminal, e.color = false, false, false
	var err error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer d.screen.close() // before a panic is printed
		err = d.serve(e)
	}()
	d.show(ended)
	return err
}

// watchTerminal closes the view before a signal ends the process, and leaves the terminal to the shell
// while the process is stopped, until release is called.
func (d *devSession) watchTerminal() (release func()) {
	shown := func(err error) {
		if err != nil {
			d.quit() // the terminal has gone
		}
		notify(d.news)
	}
	return d.env.service.terminal(terminalHandlers{
		end: func() {
			d.screen.close()
			d.quit()
		},
		pause:  func(stop func()) { shown(d.screen.pause(stop)) },
		resume: func() { shown(d.screen.resume()) },
	})
}

// show draws the view and handles keys until the server has ended.
func (d *devSession) show(ended <-chan struct{}) {
	all := d.keys()
	clock := time.NewTicker(redrawEvery)
	defer clock.Stop()
	help := false
	for {
		if err := d.screen.draw(func(width, height int) []row { return d.view(width, height, help) }); err != nil {
			d.quit() // the terminal has gone
		}
		select {
		case <-ended:
			return
		case <-d.news:
		case <-clock.C:
		case t := <-all:
			chunk := t.text
			if t.kind != typedKeys {
				chunk = nil // a paste is no command
			}
			for key := byte(0); len(chunk) > 0; {
				hadHelp := help
				help = false
				switch key, chunk = nextKey(chunk); key {
				case 'q', ctrlC:
					d.quit()
				case ctrlZ:
					d.env.service.stopJob()
				case 'r':
					d.rerun()
				case '?':
					help = !hadHelp
				case 'c':
					d.leaveView(ended, all, chunk, d.callDialog)
					chunk = nil
				case 'l':
					d.leaveView(ended, all, chunk, d.printAll)
					chunk = nil
				case 'o':
					d.wantConsole()
				case escape:
					if !hadHelp {
						d.hideConsole()
					}
				default:
					help = hadHelp
				}
			}
		}
	}
}

// devLogLines keeps the last lines of the log for the view.
type devLogLines struct{ session *devSession }

// Write adds whole lines.
func (l *devLogLines) Write(p []byte) (int, error) {
	l.session.update(func(s *devState) {
		for line := range bytes.Lines(p) {
			line = bytes.TrimRight(line[:min(len(line), 4096)], "\n")
			s.Log = append(slices.Clip(s.Log), diag.Printable(string(line)))
		}
		s.Log = s.Log[max(0, len(s.Log)-maxShownLog):]
	})
	return len(p), nil
}
