package lockfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/mcpd/mcpd/internal/base/atomicfile"
)

// version is the first line of a lock file but for comments.
const version = "mcpd.lock 1"

// head tells who reads a lock file what it is.
const header = `# The tools of upstream servers as they were accepted; mcpd serves them in no other form.
# mcpd writes this file: "mcpd lock diff" shows what differs, "mcpd lock accept" takes it in.
# Review its changes like those of code: models read these texts, and obey them.
` + version + "\n"

// The words that lines of a lock file begin with.
const (
	upstreamWord = "upstream "
	toolWord     = "tool "
	hashWord     = "sha256 "
)

// rawLine stands behind the hash of a tool that was accepted with its invisible characters as
// they are.
const rawLine = "raw\n"

// Encode returns the file of a lock. Equal locks have equal files.
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

// Len returns how long the file of a lock is, without making it.
func (l *Lock) EncodedSize() int {
	n := len(header)
	for _, a := range l.upstreams {
		n += a.encodedSize()
	}
	return n
}

// len returns how much of a file the blocks of an upstream take.
func (a upstreamTools) encodedSize() int {
	n := len(upstreamLine(a.upstream))
	for _, t := range a.tools {
		n += t.EncodedSize()
	}
	return n
}

func upstreamLine(upstream string) string { return "\n" + upstreamWord + quoted(upstream) + "\n" }

// lines returns those of a tool's block that are before its definition.
func (t Tool) heading() string {
	return "\n" + toolWord + label(t.upstream, t.name) + "\n" + hashWord + t.Hash() + "\n"
}

// label returns the name of a tool as files, diffs and errors have it.
func label(upstream, name string) string { return quoted(upstream) + " " + quoted(name) }

// Read reads a lock from its file. The error wraps [fs.ErrNotExist] where there is none:
// what that means is for the caller, as a lock that was lost takes in anything under
// [FirstUse].
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
	return io.ReadAll(io.LimitReader(f, maxFile+1)) // Parse refuses what is longer
}

// Write writes a lock to its file, mode 0644, so that a reader sees the old lock or the
// new one, and the new one lasts once it returns. What is in the place of the file and is
// none, such as a link, is refused, and so is a lock that [Parse] would find too long.
// Of two programs that write at the same time, the last one wins.
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
