package stdio

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/mcpd/mcpd/internal/protocol/mcp"
)

// writer writes frames as lines, one whole line at a time.
type writer struct {
	cancel func() // ends everything when the output fails

	mu     sync.Mutex
	out    *bufio.Writer
	err    error // of the first write that failed
	closed bool
}

var errClosed = errors.New("the output is closed")

func newWriter(out io.Writer, cancel func()) *writer {
	return &writer{out: bufio.NewWriterSize(out, 64<<10), cancel: cancel}
}

func (w *writer) send(f mcp.Frame) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.closed:
		return errClosed
	case w.err != nil:
		return w.err
	}
	_, err := f.WriteTo(w.out)
	if err == nil {
		err = w.out.WriteByte('\n')
	}
	if err == nil {
		err = w.out.Flush()
	}
	if err != nil {
		w.err = fmt.Errorf("write a message: %w", err)
		w.cancel()
	}
	return w.err
}

// close makes what comes too late fail.
func (w *writer) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
}

// failure returns the error that ended the output, unless a write is stuck.
func (w *writer) failure() error {
	if !w.mu.TryLock() {
		return nil
	}
	defer w.mu.Unlock()
	return w.err
}
