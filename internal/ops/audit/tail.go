package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"
)

// MaxTail is the maximum number of lines that [Tail] returns.
const MaxTail = 10_000

// followEvery is the polling interval of [Follow].
const followEvery = 250 * time.Millisecond

// Tail calls visit for the last n records of the log at path, oldest first.
func Tail(path string, n int, visit func(*Line) error) error {
	last, err := lastLines(path, min(n, MaxTail))
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	for _, line := range last {
		if err := visit(line); err != nil {
			return err
		}
	}
	return nil
}

// lastLines reads files from the latest to older ones until it has enough lines.
func lastLines(path string, n int) (last []*Line, err error) {
	f, err := openFiles(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	var names []string
	if err := f.each(func(name string, _ bool, _ *os.File) error {
		names = append(names, name)
		return nil
	}); err != nil {
		return nil, err
	}
	for _, name := range slices.Backward(names) {
		if len(last) >= n {
			break
		}
		part, err := lastOf(name, n-len(last))
		if err != nil {
			return nil, err
		}
		last = append(part, last...)
	}
	return last, nil
}

// lastOf returns the last n lines of a file, or none if it was removed.
func lastOf(name string, n int) (last []*Line, err error) {
	file, err := openKept(name)
	if file == nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_, err = readLines(file, func(l *Line) error {
		if len(last) == n {
			last = append(last[:0], last[1:]...)
		}
		last = append(last, l)
		return nil
	})
	return last, err
}

// Follow calls visit for each line after the number after as it is written, across
// rotations. It returns nil when the context is done.
func Follow(ctx context.Context, path string, after uint64, visit func(*Line) error) error {
	w := &tailFollower{path: path, seen: after, visit: visit}
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for {
		if err := w.poll(); err != nil {
			return errors.Join(err, w.close())
		}
		select {
		case <-ctx.Done():
			return w.close()
		case <-ticker.C:
		}
	}
}

// tailFollower reads new lines of a log.
type tailFollower struct {
	path  string
	visit func(*Line) error
	// seen is the number of the last visited line.
	seen uint64
	// file is open at offset, after the last complete line. It is nil at the start and
	// while there is no log.
	file   *os.File
	offset int64
}

// poll visits new lines. After a rotation it first reads the rotated file to its end,
// then the later files.
func (t *tailFollower) poll() error {
	if t.file != nil {
		if err := t.read(t.file); err != nil {
			return err
		}
		if t.isCurrent() {
			return nil
		}
		if err := t.close(); err != nil {
			return err
		}
	}
	// Opened before the listing, the current file is later than all listed files.
	var err error
	if t.file, err = openKept(t.path); err != nil {
		return err
	}
	old, err := listSegments(t.path)
	if err != nil {
		return err
	}
	for i, a := range old {
		if i+1 < len(old) && old[i+1].first <= t.seen+1 {
			continue
		}
		if err := t.readRotated(a.path); err != nil {
			return err
		}
	}
	t.offset = 0
	if t.file == nil {
		return nil
	}
	return t.read(t.file)
}

func (t *tailFollower) isCurrent() bool {
	here, err := t.file.Stat()
	there, thereErr := os.Stat(t.path)
	return err == nil && thereErr == nil && os.SameFile(here, there)
}

// readRotated visits the new lines of a rotated file.
func (t *tailFollower) readRotated(name string) error {
	file, err := openKept(name)
	if file == nil {
		return err
	}
	t.offset = 0
	return errors.Join(t.read(file), file.Close())
}

// read visits the complete lines after the offset.
func (t *tailFollower) read(file *os.File) error {
	if _, err := file.Seek(t.offset, io.SeekStart); err != nil {
		return err
	}
	in := newLines(file)
	in.offset = t.offset
	for {
		raw, err := in.next()
		if err == io.EOF || err == nil && raw.partial {
			return nil
		}
		if err != nil {
			return err
		}
		t.offset = in.offset
		line, err := parseLine(raw.text)
		if err != nil || line.Seq <= t.seen {
			continue
		}
		t.seen = line.Seq
		if err := t.visit(line); err != nil {
			return err
		}
	}
}

func (t *tailFollower) close() error {
	if t.file == nil {
		return nil
	}
	err := t.file.Close()
	t.file = nil
	return err
}

// PendingApprovals calls visit for the last n approval requests without an answer, oldest
// first. They include very recent ones. Memory use grows with the number of unanswered
// requests.
func PendingApprovals(path string, n int, visit func(*Line) error) error {
	open := map[string]*Line{} // by the root id of the call
	if _, err := eachLine(path, "read", func(l *Line) error {
		switch root := l.text("root_id"); l.text("approval", "state") {
		case ApprovalRequested:
			if l.text("approval", "why") != AskedAgain {
				open[root] = l
			}
		case ApprovalGranted, ApprovalDenied, ApprovalUnavailable:
			delete(open, root)
		}
		return nil
	}); err != nil {
		return err
	}
	last := slices.SortedFunc(maps.Values(open), func(a, b *Line) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, line := range last[max(0, len(last)-n):] {
		if err := visit(line); err != nil {
			return err
		}
	}
	return nil
}
