package audit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// maxUnsynced is the maximum number of bytes in memory that the disk has not confirmed.
const maxUnsynced = 4 << 20

// segmentWriter writes the current file. It is not safe for concurrent use.
//
// Lines that are not known to be durable stay in memory. After a failed write or sync,
// the pages after the last successful sync are in an unknown state: the system may have
// dropped them and marked them clean. The segmentWriter then reopens the file, truncates it to
// its durable part and writes the lines in memory again.
type segmentWriter struct {
	// Fixed at creation.
	disk  disk
	path  string
	chain *hashChain
	// checkpointed means that a line counts as durable only when the head contains it.
	checkpointed bool

	// oldest is the number of the oldest line that is retained.
	oldest uint64
	file   file
	// first is the number of the first line of the file.
	first uint64
	// durable is the last line that is known to be on the disk, and offset is its end
	// in the file.
	durable chainEntry
	offset  int64
	// last is the last added line. unsynced holds the lines after durable; the first
	// written bytes of it are in the file.
	last     chainEntry
	unsynced []byte
	written  int
	// broken means that a write or a sync failed since the file was opened.
	broken bool
}

func (s *segmentWriter) add(body []byte) {
	s.unsynced, s.last = s.chain.append(s.unsynced, s.last, body)
}

// discard discards the lines that are not durable.
func (s *segmentWriter) discard() {
	s.last, s.unsynced = s.durable, s.unsynced[:0]
	// They may be partly in the file.
	if s.written > 0 {
		s.broken = true
	}
	s.written = 0
}

// size returns the length of the file with all added lines.
func (s *segmentWriter) size() int64 { return s.offset + int64(len(s.unsynced)) }

// flush writes the lines that are only in memory.
func (s *segmentWriter) flush() error {
	if s.broken || s.file == nil {
		if err := s.reopenTruncated(); err != nil {
			return err
		}
	}
	if s.written == len(s.unsynced) {
		return nil
	}
	n, err := s.file.Write(s.unsynced[s.written:])
	s.written += n
	if err == nil && s.written < len(s.unsynced) {
		err = io.ErrShortWrite
	}
	s.broken = err != nil
	return err
}

// sync makes all lines durable. If the head cannot be written, the lines are not
// durable: the file is truncated before it is written again.
func (s *segmentWriter) sync() error {
	if err := s.flush(); err != nil {
		return err
	}
	if len(s.unsynced) == 0 {
		return nil
	}
	if err := s.file.sync(); err != nil {
		s.broken = true
		return err
	}
	to := s.offset + int64(len(s.unsynced))
	if s.checkpointed {
		// The head is not synced here: after a kill it has the old or the new content,
		// after a power loss perhaps an older one or none.
		h := checkpoint{first: s.oldest, last: s.last, file: s.first, offset: to}
		if err := replace(s.disk, headPath(s.path), h.encode(s.chain), os.O_TRUNC, func(file) error { return nil }); err != nil {
			s.broken = true
			return err
		}
	}
	s.offset = to
	s.durable, s.unsynced, s.written = s.last, s.unsynced[:0], 0
	return nil
}

// reopenTruncated reopens the file and truncates it to its durable part.
func (s *segmentWriter) reopenTruncated() error {
	s.broken, s.written = true, 0
	if s.file != nil {
		// The error does not matter: nothing after the last sync is relied on.
		_ = s.file.Close()
		s.file = nil
	}
	f, err := s.reopen()
	if err != nil {
		return err
	}
	if err := s.cut(f); err != nil {
		return errors.Join(err, f.Close())
	}
	s.file, s.broken = f, false
	return nil
}

// reopen opens the file. If the file is missing, another process removed it: reopen
// creates a new one, and the chain shows the gap.
func (s *segmentWriter) reopen() (file, error) {
	if s.offset > 0 {
		f, err := s.disk.open(s.path, os.O_RDWR)
		if !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
		s.offset, s.first = 0, s.durable.seq+1
	}
	f, err := s.disk.open(s.path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	if err := s.disk.syncFolder(filepath.Dir(s.path)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// cut truncates a file to its durable part and seeks to the end.
func (s *segmentWriter) cut(f file) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() < s.offset {
		return fmt.Errorf("%s was truncated to %d bytes by another process; move it away to start a new one", s.path, info.Size())
	}
	if info.Size() > s.offset {
		if err := f.Truncate(s.offset); err != nil {
			return err
		}
		if err := f.sync(); err != nil {
			return err
		}
	}
	_, err = f.Seek(s.offset, io.SeekStart)
	return err
}

// rotate renames the file and starts a new one. All lines are durable before, even if
// it fails.
func (s *segmentWriter) rotate() error {
	if err := s.sync(); err != nil {
		return err
	}
	// Some systems cannot rename an open file.
	err := s.file.Close()
	s.file = nil
	if err != nil {
		return err
	}
	if err := s.disk.rename(s.path, segmentPath(s.path, s.first)); err != nil {
		return err
	}
	s.first, s.offset = s.durable.seq+1, 0
	return s.reopenTruncated()
}

// head returns the durable position.
func (s *segmentWriter) head() checkpoint {
	return checkpoint{first: s.oldest, last: s.durable, file: s.first, offset: s.offset}
}

func (s *segmentWriter) close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}
