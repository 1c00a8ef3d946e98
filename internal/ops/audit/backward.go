package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// CallsBefore calls visit for completed calls of the log at path, newest first, until visit
// returns false. It reads only lines before the number before, unless that is 0. It stops when it
// has read a number of bytes, or when ctx is done. next is the number of the last line that it has
// read; 0 means that it has read the whole log, or that visit has ended it.
func CallsBefore(ctx context.Context, path string, before uint64, bytes int64, visit func(*Call) (more bool)) (next uint64, err error) {
	b := &backward{ctx: ctx, before: before, left: bytes, visit: visit}
	if err := b.read(path); err != nil {
		return 0, fmt.Errorf("read the audit log: %w", err)
	}
	if b.exhausted {
		return b.last, nil
	}
	return 0, nil
}

// backward reads a log from its end.
type backward struct {
	ctx    context.Context
	before uint64
	left   int64 // bytes that may still be read
	visit  func(*Call) bool

	last uint64 // the number of the last line
	// exhausted means that the bytes or the time are used up; done means that visit wants no more.
	exhausted, done bool
}

func (b *backward) read(path string) (err error) {
	f, err := openFiles(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	old := f.old
	if f.current != nil {
		if err := b.file(f.current); err != nil {
			return err
		}
	}
	for i, a := range slices.Backward(old) {
		if b.exhausted || b.done {
			break
		}
		if b.before > 0 && a.first >= b.before && i > 0 {
			continue
		}
		if err := checkFile(a.path); err != nil {
			return err
		}
		file, err := openKept(a.path)
		if err != nil {
			return err
		}
		if file == nil {
			continue
		}
		if !f.isCurrent(file) {
			err = b.file(file)
		}
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	return nil
}

// backwardChunk is the number of bytes that are read at once.
const backwardChunk = 64 << 10

// file visits the complete lines of a file from its end.
func (b *backward) file(file *os.File) error {
	end, err := b.end(file)
	if err != nil {
		return err
	}
	var tail []byte // the text after end, without its complete lines
	complete := false
	for end > 0 {
		if b.isExhausted() {
			b.exhausted = true
			return nil
		}
		size := min(end, backwardChunk)
		chunk := make([]byte, size, int(size)+len(tail))
		if _, err := file.ReadAt(chunk, end-size); err != nil {
			return err
		}
		end -= size
		b.left -= size
		text := append(chunk, tail...)
		if !complete { // the last line may be unfinished
			at := bytes.LastIndexByte(text, '\n')
			if at < 0 {
				tail = text[:min(len(text), maxLine)]
				continue
			}
			text, complete = text[:at], true
		}
		for {
			at := bytes.LastIndexByte(text, '\n')
			if at < 0 && end > 0 {
				break
			}
			if !b.line(text[at+1:]) {
				return nil
			}
			if at < 0 {
				return nil
			}
			text = text[:at]
		}
		tail = text
		if len(tail) > maxLine { // no record; its end is dropped, and its start is not a record either
			tail = tail[:maxLine]
		}
	}
	return nil
}

// isExhausted reports whether the bytes or the time are used up. At least one wanted line is read
// first, so that the next page is another one, if there is one near the end.
func (b *backward) isExhausted() bool {
	return (b.left <= 0 || b.ctx.Err() != nil) && (b.left < -8*maxLine || b.last > 0 && (b.before == 0 || b.last < b.before))
}

// end returns an offset after the lines that are wanted, and not far after them, by bisection.
func (b *backward) end(file *os.File) (int64, error) {
	high, err := file.Seek(0, io.SeekEnd)
	if err != nil || b.before == 0 {
		return high, err
	}
	for low := int64(0); high-low > 4*maxLine; {
		middle := low + (high-low)/2
		in := newLines(io.NewSectionReader(file, middle, 2*maxLine))
		if _, err := in.next(); err != nil { // the rest of a line
			return high, nil
		}
		begins := middle + in.offset
		raw, err := in.next()
		if err != nil || raw.partial || raw.tooLong {
			return high, nil
		}
		line, err := parseLine(raw.text)
		switch {
		case err != nil:
			return high, nil
		case line.Seq >= b.before:
			high = middle + in.offset
		default:
			low = begins
		}
	}
	return high, nil
}

// line visits a line, and returns false at the end.
func (b *backward) line(text []byte) bool {
	if len(text) > maxLine {
		return true
	}
	l, err := parseLine(text)
	if err != nil {
		return true
	}
	b.last = l.Seq
	if l.text("kind") != outcomeKind || b.before > 0 && l.Seq >= b.before {
		return true
	}
	b.done = !b.visit(l.call())
	return !b.done
}
