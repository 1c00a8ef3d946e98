package upstream

import (
	"errors"
	"fmt"
	"syscall"
	"time"
)

var (
	// ErrEnded is why the calls of a program end that has ended.
	ErrEnded = errors.New("the program has ended")
	// errClosed is of a program that goes on, and of which nothing more can come.
	errClosed = errors.New("the program has closed its output")
)

// fate returns how the program has ended that is of no use any more, or otherwise where it
// goes on, with its last words.
func (p *program) fate(otherwise error) error {
	select {
	case <-p.child.Ended():
	case <-time.After(leaveTime):
		return p.explained(otherwise)
	}
	code, err := p.child.Outcome()
	if err != nil {
		return err
	}
	p.heard()
	return p.explained(fmt.Errorf("%w: %s", ErrEnded, statusOf(code)))
}

// Of a program that a signal has ended the code is that of shells: signalled and the number
// of the signal.
const (
	signalled  = 128
	lastSignal = 64
)

// statusOf tells an exit code in words: of one that stands for a signal its name, too.
func statusOf(code int) string {
	if signal := code - signalled; signal > 0 && signal <= lastSignal {
		return fmt.Sprintf("exit status %d (%s)", code, syscall.Signal(signal))
	}
	return fmt.Sprintf("exit status %d", code)
}
