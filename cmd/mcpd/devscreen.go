package main

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpd/mcpd/diag"
)

// ANSI sequences of the view. Without line wrap, a line that is too long is cut off.
const (
	openScreen  = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
	closeScreen = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	topLeft     = "\x1b[H"
	endOfLine   = "\x1b[K\r\n"
	endOfScreen = "\x1b[J"
)

// redrawEvery is the interval at which the view follows the size of the terminal and the time.
const redrawEvery = 250 * time.Millisecond

// devScreen is the terminal of a view: the alternate screen, and keys without echo.
type devScreen struct {
	env env

	// guarded by mu
	mu      sync.Mutex
	opened  bool
	closed  bool // for good
	restore func() error
	frame   string // on the screen
}

// open switches to the view. It does nothing after close.
func (t *devScreen) open() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.opened || t.closed {
		return nil
	}
	return t.enter()
}

// enter is open with mu held.
func (t *devScreen) enter() error {
	t.restore = func() error { return nil }
	if t.env.stdinIsTerminal {
		restore, err := t.env.raw()
		if err != nil {
			return findingsError("use the terminal: %v", err)
		}
		t.restore = restore
	}
	t.opened, t.frame = true, ""
	_, err := io.WriteString(t.env.stdout, openScreen)
	return err
}

// suspend switches back to what the terminal showed before.
func (t *devScreen) suspend() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leave()
}

// pause suspends the view until stop returns. Nothing uses the terminal meanwhile.
func (t *devScreen) pause(stop func()) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	opened := t.opened
	t.leave()
	stop()
	if !opened {
		return nil
	}
	return t.enter()
}

// resume takes the terminal again after something else has used it without a call of pause. The
// terminal is restored to what it was before the view.
func (t *devScreen) resume() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.opened {
		return nil
	}
	restore := t.restore
	err := t.enter()
	t.restore = restore
	return err
}

// close suspends the view for good. It may be called at any time, more than once, and on nil.
func (t *devScreen) close() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.leave()
	t.closed = true
}

// leave is suspend with mu held.
func (t *devScreen) leave() {
	if !t.opened {
		return
	}
	t.opened = false
	_, _ = io.WriteString(t.env.stdout, closeScreen) // a terminal that is gone shows nothing
	_ = t.restore()
}

// draw shows the lines of a view for the current size.
func (t *devScreen) draw(view func(width, height int) []string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.opened {
		return nil
	}
	width, height, err := t.env.size()
	if err != nil || width <= 0 || height <= 0 {
		width, height = 80, 24
	}
	lines := view(width, height)
	frame := topLeft + strings.Join(lines[:min(len(lines), height)], endOfLine) + "\x1b[K" + endOfScreen
	if frame == t.frame {
		return nil
	}
	t.frame = frame
	_, err = io.WriteString(t.env.stdout, frame)
	return err
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
	keys := d.keys()
	clock := time.NewTicker(redrawEvery)
	defer clock.Stop()
	help := false
	for {
		if err := d.screen.draw(func(width, height int) []string { return d.view(width, height, help) }); err != nil {
			d.quit() // the terminal has gone
		}
		select {
		case <-ended:
			return
		case <-d.news:
		case <-clock.C:
		case key := <-keys.pressed:
			switch key {
			case 'q', ctrlC:
				d.quit()
			case ctrlZ:
				d.env.service.stopJob()
			case 'r':
				d.rerun()
			case '?':
				help = !help
			case 'c':
				d.recordCall(ended)
			case 'o':
				d.wantConsole()
			}
			keys.next <- struct{}{}
		}
	}
}

const (
	ctrlC  = 3
	ctrlZ  = 26
	escape = 27
)

// devKeys are the keys that the user presses. After each, the terminal is not read until next
// receives a value, so that something else may read it.
type devKeys struct {
	pressed chan byte
	next    chan struct{}
}

// keys reads the keys until the end of the process: nothing interrupts a read of a terminal.
func (d *devSession) keys() devKeys {
	k := devKeys{make(chan byte), make(chan struct{})}
	if !d.env.stdinIsTerminal {
		return k
	}
	go func() {
		defer d.screen.close() // before a panic is printed
		var buffer [1]byte
		sequence := false // of an arrow key, for example
		for {
			if n, err := d.env.stdin.Read(buffer[:]); err != nil || n == 0 {
				d.quit() // the terminal has gone
				return
			}
			key := buffer[0]
			switch {
			case key == escape:
				sequence = true
			case sequence:
				// A sequence ends with a letter or a tilde, after an introducer.
				sequence = key == '[' || key == 'O' || key >= '0' && key <= '?'
			default:
				k.pressed <- key
				<-k.next
			}
		}
	}()
	return k
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
