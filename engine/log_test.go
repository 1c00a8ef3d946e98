package engine_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
)

// logBuffer is a log that a test reads while the server writes it.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(line []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(line)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func (b *logBuffer) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// lineOf returns the first line of a log that says something.
func lineOf(log, said string) string {
	for line := range strings.Lines(log) {
		if strings.Contains(line, said) {
			return line
		}
	}
	return ""
}
