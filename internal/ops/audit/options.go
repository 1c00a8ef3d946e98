package audit

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/mcpd/mcpd/internal/base/redact"
)

// Mode says when a record has to be on the disk.
type Mode string

const (
	// Relaxed writes one record per call, soon after the call has ended.
	Relaxed Mode = "relaxed"
	// Strict writes a durable intent before a call does anything, and a durable
	// outcome before its caller is answered.
	Strict Mode = "strict"
)

// What holds unless [Options] say otherwise.
const (
	defaultMaxSize = 64 << 20
	defaultFiles   = 10
	defaultQueue   = 4096
)

// Options say where a log is kept and how.
type Options struct {
	// Path is the file that is written. Older files, the head, the key and the
	// lock stand beside it, under names that begin with its own.
	Path string
	// Mode is Relaxed when it is empty.
	Mode Mode
	// MaxSize is the size in bytes from which on a file is put aside; 0 means 64 MiB.
	MaxSize int64
	// Keep says which files that were put aside are kept.
	Keep Retention
	// Queue is how many records may wait to be written; 0 means 4096.
	Queue int
	// Redactor removes secrets from the names and values that callers have
	// chosen, and of what they are told. It may be nil.
	Redactor redact.Redactor
	// Now is the clock, time.Now when it is nil.
	Now func() time.Time
	// Logger is told when writing begins to fail and when it works again. It may be nil.
	Logger *slog.Logger

	disk disk
}

// Retention says which files that were put aside are kept. A file that breaks
// any of the bounds is removed, the oldest first.
type Retention struct {
	// Files is how many are kept; 0 means 10.
	Files int
	// Age is how long one is kept after its last record; 0 means for ever.
	Age time.Duration
	// Bytes is how large all of them together may be; 0 means without a bound.
	Bytes int64
}

// complete fills in the defaults and refuses what cannot be meant.
func (o Options) complete() (Options, error) {
	var err error
	switch {
	case o.Path == "":
		return o, errors.New("the path is empty")
	case o.Mode != "" && o.Mode != Relaxed && o.Mode != Strict:
		return o, fmt.Errorf("there is no mode %q", o.Mode)
	case o.MaxSize < 0 || o.Keep.Files < 0 || o.Keep.Age < 0 || o.Keep.Bytes < 0 || o.Queue < 0:
		return o, errors.New("a bound is negative")
	}
	if o.Mode == "" {
		o.Mode = Relaxed
	}
	if o.MaxSize == 0 {
		o.MaxSize = defaultMaxSize
	}
	if o.Keep.Files == 0 {
		o.Keep.Files = defaultFiles
	}
	if o.Queue == 0 {
		o.Queue = defaultQueue
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.disk == nil {
		o.disk = osDisk{}
	}
	o.Path, err = filepath.Abs(o.Path)
	return o, err
}

// Check returns why no log could be opened at a path now, as far as that shows in what
// stands there. It makes nothing, and does not ask whether another process has the log.
func Check(path string) error {
	path, err := filepath.Abs(path)
	if err == nil {
		err = checkFolder(filepath.Dir(path))
	}
	for _, name := range []string{path, keyPath(path), headPath(path)} {
		if err != nil {
			return err
		}
		err = checkFile(name)
	}
	return err
}

// checkFolder refuses a folder that is something else, that could not be made, or in which
// nothing could be.
func checkFolder(folder string) error {
	info, err := os.Stat(folder)
	switch above := filepath.Dir(folder); {
	case err == nil && !info.IsDir():
		return fmt.Errorf("%s is no folder", folder)
	case err == nil:
		return mayWriteIn(folder)
	case above != folder:
		if wrong := checkFolder(above); wrong != nil {
			return wrong
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it is made
	}
	return err
}
