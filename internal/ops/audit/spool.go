package audit

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// maxUnsynced is how many bytes may be in memory because the disk has not
// confirmed them.
const maxUnsynced = 4 << 20

// spool is the file that lines are added to. It is for one goroutine.
//
// What is not known to be durable is kept in memory. After a failed write or
// sync nothing is known of the pages behind the last sync that succeeded: the
// system may have dropped them, and call them clean. So the file is opened anew,
// cut to its durable part, and what is in memory is written again.
type spool struct {
	// Fixed at creation.
	disk  disk
	path  string
	chain *chain
	// witnessed says that the head has to know of a line before it counts as durable.
	witnessed bool

	// oldest is the number of the oldest line that is kept.
	oldest uint64
	file   file
	// first is the number of the first line of the file.
	first uint64
	// durable is the last line that is known to be on the disk, and offset where
	// in the file it ends.
	durable link
	offset  int64
	// last is the last line that was added. The lines behind durable stand in
	// unsynced, of which the first written bytes are in the file.
	last     link
	unsynced []byte
	written  int
	// broken says that a write or a sync has failed since the file was opened.
	broken bool
}

func (s *spool) add(body []byte) {
	s.unsynced, s.last = s.chain.append(s.unsynced, s.last, body)
}

// drop forgets the lines that are not durable.
func (s *spool) drop() {
	s.last, s.unsynced = s.durable, s.unsynced[:0]
	// They may be in the file, in part.
	if s.written > 0 {
		s.broken = true
	}
	s.written = 0
}

// size is the length of the file with all lines that were added.
func (s *spool) size() int64 { return s.offset + int64(len(s.unsynced)) }

// flush writes the lines that are only in memory.
func (s *spool) flush() error {
	if s.broken || s.file == nil {
		if err := s.mend(); err != nil {
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

// sync makes all lines durable. Those that the head should know and does not are not: the
// file is cut before it is written again.
func (s *spool) sync() error {
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
	if s.witnessed {
		// The head does not wait for the disk once more: after a kill it has its old content or
		// the new, after a loss of power perhaps an older one or none.
		h := head{first: s.oldest, last: s.last, file: s.first, offset: to}
		if err := replace(s.disk, headPath(s.path), h.encode(s.chain), os.O_TRUNC, func(file) error { return nil }); err != nil {
			s.broken = true
			return err
		}
	}
	s.offset = to
	s.durable, s.unsynced, s.written = s.last, s.unsynced[:0], 0
	return nil
}

// mend opens the file anew and cuts it to what is durable.
func (s *spool) mend() error {
	s.broken, s.written = true, 0
	if s.file != nil {
		// Whatever this says: nothing behind the last sync is relied on.
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

// reopen opens the file. One that is gone was taken away by somebody else: a new
// one begins, and the chain shows what is missing.
func (s *spool) reopen() (file, error) {
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

// cut removes what stands behind the durable part of a file, and goes there.
func (s *spool) cut(f file) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() < s.offset {
		return fmt.Errorf("%s was cut to %d bytes by somebody else; move it away, and a new one is begun", s.path, info.Size())
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

// rotate puts the file aside and begins another. All lines are durable then,
// also when it fails.
func (s *spool) rotate() error {
	if err := s.sync(); err != nil {
		return err
	}
	// Some systems rename no file that is open.
	err := s.file.Close()
	s.file = nil
	if err != nil {
		return err
	}
	if err := s.disk.rename(s.path, asidePath(s.path, s.first)); err != nil {
		return err
	}
	s.first, s.offset = s.durable.seq+1, 0
	return s.mend()
}

// head returns how far the file reaches for certain.
func (s *spool) head() head {
	return head{first: s.oldest, last: s.durable, file: s.first, offset: s.offset}
}

func (s *spool) close() error {
	if s.file == nil {
		return nil
	}
	err := s.file.Close()
	s.file = nil
	return err
}
