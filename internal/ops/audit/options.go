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

// Mode decides when a record must be durable.
type Mode string

const (
	// Relaxed writes one record per call, soon after the call.
	Relaxed Mode = "relaxed"
	// Strict writes a durable intent before a call does anything, and a durable outcome
	// before the caller gets the result.
	Strict Mode = "strict"
)

// Defaults of [Options].
const (
	defaultMaxSize = 64 << 20
	defaultFiles   = 10
	defaultQueue   = 4096
)

// Options configure a log.
type Options struct {
	// Path is the current file. Rotated files, the head, the key and the lock are
	// beside it, with names that start with its name.
	Path string
	// Mode is Relaxed if empty.
	Mode Mode
	// MaxSize is the size in bytes at which a file is rotated; 0 means 64 MiB.
	MaxSize int64
	// Keep is the retention of rotated files.
	Keep Retention
	// Queue is the maximum number of waiting records; 0 means 4096.
	Queue int
	// Redactor redacts names, values and messages that come from callers or go to them. It
	// may be nil.
	Redactor redact.Redactor
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Logger logs when writing starts to fail and when it works again. It may be nil.
	Logger *slog.Logger

	disk disk
}

// Retention bounds the rotated files. If any bound is exceeded, the oldest files are
// removed.
type Retention struct {
	// Files is the maximum number of files; 0 means 10.
	Files int
	// Age is the maximum time after the last record of a file; 0 means no bound.
	Age time.Duration
	// Bytes is the maximum total size; 0 means no bound.
	Bytes int64
}

// complete sets the defaults and rejects invalid options.
func (o Options) complete() (Options, error) {
	var err error
	switch {
	case o.Path == "":
		return o, errors.New("the path is empty")
	case o.Mode != "" && o.Mode != Relaxed && o.Mode != Strict:
		return o, fmt.Errorf("unknown mode %q", o.Mode)
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

// Check returns the reason why no log could be opened at a path now, as far as the file
// system shows. It creates nothing, and does not check whether another process uses the
// log.
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

// CheckOutside is [Check], and rejects a path in the tools directory, where each record would
// look like a change of a tool file.
func CheckOutside(path, tools string) error {
	if err := Check(path); err != nil {
		return err
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	if tools != "" {
		if between, err := filepath.Rel(tools, path); err == nil && filepath.IsLocal(between) {
			return errors.New("the log is in the tools directory, where each record would count as a change; move it elsewhere")
		}
	}
	return nil
}

// checkFolder rejects a path that is not a directory, and a directory that could not be
// created or written.
func checkFolder(folder string) error {
	info, err := os.Stat(folder)
	switch above := filepath.Dir(folder); {
	case err == nil && !info.IsDir():
		return fmt.Errorf("%s is not a directory", folder)
	case err == nil:
		return checkDirWritable(folder)
	case above != folder:
		if wrong := checkFolder(above); wrong != nil {
			return wrong
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it will be created
	}
	return err
}
