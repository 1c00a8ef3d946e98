package lockfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/mcpd/mcpd/internal/base/atomicfile"
)

// version is the first line of a lock file after its comments.
const version = "mcpd.lock 1"

// header explains the file to its readers.
const header = `# The accepted tools of upstream servers. mcpd serves these tools only as defined here.
# mcpd writes this file. "mcpd lock diff" shows changes, "mcpd lock accept" accepts them.
# Review changes of this file like code: models read and follow these texts.
` + version + "\n"

// The keywords at the start of lines.
const (
	upstreamWord = "upstream "
	toolWord     = "tool "
	hashWord     = "sha256 "
)

// rawLine follows the hash of a tool that was accepted with its invisible characters unescaped.
const rawLine = "raw\n"

// Encode returns the content of the lock file. Equal locks have equal content.
func (l *Lock) Encode() []byte {
	file := append(make([]byte, 0, l.EncodedSize()), header...)
	for _, a := range l.upstreams {
		file = append(file, upstreamLine(a.upstream)...)
		for _, t := range a.tools {
			file = append(file, t.heading()...)
			if t.raw {
				file = append(file, rawLine...)
			}
			file = append(appendPretty(file, t), '\n')
		}
	}
	return file
}

// EncodedSize returns the length of [Lock.Encode] without encoding.
func (l *Lock) EncodedSize() int {
	n := len(header)
	for _, a := range l.upstreams {
		n += a.encodedSize()
	}
	return n
}

// encodedSize returns the size of an upstream in a lock file.
func (t upstreamTools) encodedSize() int {
	n := len(upstreamLine(t.upstream))
	for _, tool := range t.tools {
		n += tool.EncodedSize()
	}
	return n
}

func upstreamLine(upstream string) string { return "\n" + upstreamWord + quoted(upstream) + "\n" }

// heading returns the lines of a tool before its definition.
func (t Tool) heading() string {
	return "\n" + toolWord + label(t.upstream, t.name) + "\n" + hashWord + t.Hash() + "\n"
}

// label returns the name of a tool for files, diffs and errors.
func label(upstream, name string) string { return quoted(upstream) + " " + quoted(name) }

// Read reads a lock file. The error wraps [fs.ErrNotExist] if there is none. The caller decides
// what that means: without a lock, [FirstUse] accepts everything.
func Read(path string) (*Lock, error) {
	file, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("read lock: %w", err)
	}
	l, err := Parse(file)
	if err != nil {
		return nil, fmt.Errorf("read lock: %s: %w", path, err)
	}
	return l, nil
}

// ReadOrNew is [Read] for a program that accepts tools: without a file it returns an empty lock.
func ReadOrNew(path string) (*Lock, error) {
	l, err := Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return new(Lock), nil
	}
	return l, err
}

func read(path string) ([]byte, error) {
	f, err := atomicfile.OpenRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return io.ReadAll(io.LimitReader(f, maxFile+1)) // Parse rejects longer files
}

// Write replaces a lock file atomically and durably, with mode 0644. It returns an error if the
// path is not a regular file, such as a link, or if [Parse] would reject the lock as too long.
// If two programs write at the same time, the last one wins.
func Write(path string, l *Lock) error {
	if err := write(path, l); err != nil {
		return fmt.Errorf("write lock: %w", err)
	}
	return nil
}

func write(path string, l *Lock) error {
	if l.EncodedSize() > maxFile {
		return fmt.Errorf("%s would be longer than %d MiB", path, maxFile>>20)
	}
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", path)
	}
	return atomicfile.Write(path, l.Encode(), 0o644, nil)
}
