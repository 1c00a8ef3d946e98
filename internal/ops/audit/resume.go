package audit

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
)

// Events of the log itself.
const (
	ownPrefix = "audit."
	// eventTorn records an incomplete line at the end of the file.
	eventTorn = "audit.torn"
	// eventGap records lines that the head or the key knows but no file holds, or a
	// missing head.
	eventGap = "audit.gap"
	// eventLost records dropped records while the disk failed.
	eventLost = "audit.lost"
	// eventRejected records records that could not be written in strict mode, so that
	// their calls were refused.
	eventRejected = "audit.refused"
)

// tailState is the end of a file.
type tailState struct {
	// last is the last authentic line.
	last chainEntry
	// offset is the end of the last complete line. unauthentic means that some line is not
	// authentic; such lines stay in place.
	offset      int64
	unauthentic bool
	// partialLine is the length of an incomplete line after offset.
	partialLine int64
	digest      [sha256.Size]byte
}

// resume finds the end of a log. It returns the segmentWriter that continues there and the
// events to record.
func resume(o Options, c *hashChain, old []segment, key keyFile) (s *segmentWriter, events []Event, err error) {
	h, headErr := readHead(o.disk, o.Path, c)
	if headErr != nil && !errors.Is(headErr, fs.ErrNotExist) && !errors.Is(headErr, errHead) {
		return nil, nil, fmt.Errorf("read the head: %w", headErr)
	}
	s = &segmentWriter{disk: o.disk, path: o.Path, chain: c, checkpointed: o.Mode == Strict}
	last, err := s.find(h, old)
	if err != nil {
		return nil, nil, err
	}
	s.last, s.durable, s.offset = last.last, last.last, last.offset
	if last.partialLine > 0 {
		events = append(events, Event{eventTorn, map[string]string{
			"bytes": strconv.FormatInt(last.partialLine, 10), "sha256": hex.EncodeToString(last.digest[:]),
		}})
	}
	switch {
	case key.last.seq > max(h.last.seq, last.last.seq):
		events = append(events, s.missing("the log ended before the record in the mark of its key", key.last))
	case h.last.seq > last.last.seq:
		events = append(events, s.missing("the log ended before the line in its head", h.last))
	case key.state == keyForged:
		events = append(events, Event{eventGap, map[string]string{"reason": "the mark in the key file was not written with that key"}})
	case headErr != nil && last.last.seq == 0 && key.expectsLog():
		events = append(events, Event{eventGap, map[string]string{"reason": "the key existed without a log or a head"}})
	case headErr != nil && last.last.seq > 0:
		events = append(events, Event{eventGap, map[string]string{"reason": "the head was missing, or not written with the key of the log"}})
	}
	if s.first == 0 {
		s.first = s.durable.seq + 1
	}
	s.oldest = oldestOf(h, old, s.first)
	return s, events, nil
}

// missing continues the log after a record that no file holds, so that the gap remains
// visible.
func (s *segmentWriter) missing(reason string, known chainEntry) Event {
	from := s.last.seq + 1
	s.last, s.durable = known, known
	return Event{eventGap, map[string]string{
		"reason": reason, "from": strconv.FormatUint(from, 10), "to": strconv.FormatUint(known.seq, 10),
	}}
}

// oldestOf returns the number of the oldest line that must exist.
func oldestOf(h checkpoint, old []segment, current uint64) uint64 {
	switch {
	case h.first > 0:
		return h.first
	case len(old) > 0:
		return old[0].first
	}
	return current
}

// find finds the last line: in the current file, or in the latest rotated one if the
// current file has no line.
func (s *segmentWriter) find(h checkpoint, old []segment) (tailState, error) {
	last, first, err := endOf(s.disk, s.path, s.chain, h)
	if err != nil {
		return tailState{}, err
	}
	s.first = first
	if last.last.seq > 0 || len(old) == 0 {
		return last, nil
	}
	before, _, err := endOf(s.disk, old[len(old)-1].path, s.chain, h)
	if err != nil {
		return tailState{}, err
	}
	last.last = before.last
	return last, nil
}

// endOf reads a file from its start, or from the offset in the head, and returns its
// end and the number of its first line. A missing file counts as empty.
func endOf(d disk, path string, c *hashChain, h checkpoint) (e tailState, first uint64, err error) {
	f, err := d.open(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return tailState{}, 0, nil
	}
	if err != nil {
		return tailState{}, 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	first = firstOf(f, c)
	var from int64
	if info, statErr := f.Stat(); statErr == nil && first == h.file && h.offset <= info.Size() {
		from, e.last, e.offset = h.offset, h.last, h.offset
	}
	if _, err := f.Seek(from, io.SeekStart); err != nil {
		return tailState{}, 0, err
	}
	err = e.read(f, c, from)
	if err == nil && e.partialLine > 0 {
		err = e.hash(f)
	}
	if err == nil && e.unauthentic && e.last.seq == 0 {
		err = fmt.Errorf("no line of %s was written with this key; restore its key, or move the log, its head and its key away to start a new one", path)
	}
	return e, first, err
}

// firstOf returns the number of the first line of a file, or 0.
func firstOf(f io.Reader, c *hashChain) uint64 {
	l := newLines(f)
	line, err := l.next()
	if err != nil || line.partial || line.tooLong {
		return 0
	}
	at, _, _ := c.read(line.text)
	return at.seq
}

// read reads to the end of a file.
func (s *tailState) read(r io.Reader, c *hashChain, from int64) error {
	l := newLines(r)
	l.offset = from
	for {
		line, err := l.next()
		if err == io.EOF {
			s.partialLine = l.offset - s.offset
			return nil
		}
		if err != nil {
			return err
		}
		if line.partial {
			continue
		}
		s.offset = l.offset
		if at, _, authentic := c.read(line.text); authentic {
			s.last = at
		} else {
			s.unauthentic = true
		}
	}
}

// hash computes the digest of a torn line.
func (s *tailState) hash(f file) error {
	if _, err := f.Seek(s.offset, io.SeekStart); err != nil {
		return err
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return err
	}
	h.Sum(s.digest[:0])
	return nil
}

// lines reads an untrusted file line by line.
type lines struct {
	in     *bufio.Reader
	buffer []byte
	// offset is the start of the next line.
	offset int64
}

// rawLine is one line without its newline. It is valid until the next read.
type rawLine struct {
	text []byte
	// partial means that the file ended before a newline; tooLong means that text is
	// only its start.
	partial, tooLong bool
}

func newLines(r io.Reader) *lines { return &lines{in: bufio.NewReaderSize(r, 64<<10)} }

// next returns the next line, or io.EOF at the end.
func (l *lines) next() (rawLine, error) {
	l.buffer = l.buffer[:0]
	var line rawLine
	for {
		piece, err := l.in.ReadSlice('\n')
		l.offset += int64(len(piece))
		if room := maxLine + 1 - len(l.buffer); len(piece) > room {
			line.tooLong, piece = true, piece[:room]
		}
		l.buffer = append(l.buffer, piece...)
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err == io.EOF && len(l.buffer) == 0:
			return rawLine{}, io.EOF
		case err != nil && err != io.EOF:
			return rawLine{}, err
		}
		line.partial = err == io.EOF
		line.text = bytes.TrimSuffix(l.buffer, []byte("\n"))
		return line, nil
	}
}
