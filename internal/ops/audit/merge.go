package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"time"
)

// MergeOptions are the options of [Merge].
type MergeOptions struct {
	// Range limits the time of the records.
	Range TimeRange
	// Broken also writes the records of logs that have findings, with the member
	// "log_broken":true.
	Broken bool
}

// Merged is the result of [Merge].
type Merged struct {
	// Reports are the reports of [Verify], in the order of the logs.
	Reports []*Report
	// Written is the number of written records.
	Written uint64
	// Skipped is the number of lines of broken logs that are not records, or that state
	// the members that Merge adds.
	Skipped int
}

// Broken returns whether a log has findings.
func (m Merged) Broken() bool {
	for _, r := range m.Reports {
		if len(r.Findings) > 0 {
			return true
		}
	}
	return false
}

// errChanged is the error for a log that is not what Verify read. It may also be that
// retention removed a file.
var errChanged = errors.New("the log changed after its verification; run the command again")

// Merge verifies the logs at paths and then writes their records to w in the order of
// time: a line for each, with the path of its log as the first member, "log", before the
// unchanged members of the record. Records of one log stay in the order of the log, and
// records of the same time are in the order of the logs. If a log has findings, Merge
// writes nothing unless o asks for broken logs. Memory use depends on the number of logs
// and not on their length. It writes no record of a good log that is later than the
// verification.
func Merge(w io.Writer, paths []string, o MergeOptions) (m Merged, err error) {
	for _, path := range paths {
		report, err := Verify(path)
		if err != nil {
			return m, fmt.Errorf("%s: %w", path, err)
		}
		m.Reports = append(m.Reports, report)
	}
	if m.Broken() && !o.Broken {
		return m, nil
	}
	var open []*mergeSource
	defer func() {
		for _, s := range open {
			s.stop()
		}
	}()
	for i, path := range paths {
		s, err := newMergeSource(path, m.Reports[i], &m.Skipped)
		if err != nil {
			return m, err
		}
		open = append(open, s)
		if err := s.advance(); err != nil {
			return m, err
		}
	}
	for {
		first := earliest(open)
		if first == nil {
			return m, nil
		}
		if o.Range.Contains(first.at.time) {
			if err := first.write(w); err != nil {
				return m, fmt.Errorf("write the merged log: %w", err)
			}
			m.Written++
		}
		if err := first.advance(); err != nil {
			return m, err
		}
	}
}

// earliest returns the source with the earliest record, or nil if all have ended. The
// number of logs is small, so a scan is as good as a heap.
func earliest(open []*mergeSource) (first *mergeSource) {
	for _, s := range open {
		if !s.ended && (first == nil || s.order.Before(first.order)) {
			first = s
		}
	}
	return first
}

// mergeSource reads the records of one log in order.
type mergeSource struct {
	// prefix is the text before the members of each record.
	prefix []byte
	next   func() (mergeRecord, error, bool)
	stop   func()

	at mergeRecord
	// order is the time for the order: no record is before the previous one of its log,
	// also if the clock was set back.
	order time.Time
	ended bool
	out   []byte
}

// mergeRecord is a line of a log and its time. The text is valid until the next one.
type mergeRecord struct {
	text []byte
	time time.Time
}

func newMergeSource(path string, r *Report, skipped *int) (*mergeSource, error) {
	s := &mergeSource{prefix: append(appendString([]byte(`{"log":`), path, maxMergePath), ',')}
	records := brokenRecords(path, skipped)
	if len(r.Findings) > 0 {
		s.prefix = append(s.prefix, `"log_broken":true,`...)
	} else {
		k, err := readKey(osDisk{}, path)
		if err != nil {
			return nil, fmt.Errorf("%s: read the key of the log: %w", path, err)
		}
		records = goodRecords(path, newChain(derive(k.key).chain), r)
	}
	s.next, s.stop = iter.Pull2(records)
	return s, nil
}

// maxMergePath is the maximum length of the path in a merged record, in bytes.
const maxMergePath = 4096

func (s *mergeSource) advance() error {
	record, err, ok := s.next()
	if err != nil {
		return err
	}
	s.at, s.ended = record, !ok
	if record.time.After(s.order) {
		s.order = record.time
	}
	return nil
}

func (s *mergeSource) write(w io.Writer) error {
	s.out = append(append(append(s.out[:0], s.prefix...), s.at.text[1:]...), '\n')
	_, err := w.Write(s.out)
	return err
}

// goodRecords reads the records of a log without findings, and verifies each of them
// again. It ends with the last record of the report: a server may write more.
func goodRecords(path string, chain *hashChain, r *Report) iter.Seq2[mergeRecord, error] {
	return func(yield func(mergeRecord, error) bool) {
		next := r.First
		if next == 0 {
			return
		}
		err := eachRaw(path, func(line []byte) error {
			at, _, authentic := chain.read(line)
			if !authentic || at.seq != next {
				return errChanged
			}
			record := mergeRecord{text: line}
			var err error
			if record.time, err = chainedTime(line); err != nil {
				return err
			}
			next++
			if !yield(record, nil) || at.seq == r.Last {
				return errStop
			}
			return nil
		})
		switch {
		case errors.Is(err, errStop):
		case err != nil:
			yield(mergeRecord{}, fmt.Errorf("%s: %w", path, err))
		default:
			yield(mergeRecord{}, fmt.Errorf("%s: %w", path, errChanged)) // its end is missing
		}
	}
}

// brokenRecords reads what looks like a record in a log with findings, and counts other
// lines.
func brokenRecords(path string, skipped *int) iter.Seq2[mergeRecord, error] {
	return func(yield func(mergeRecord, error) bool) {
		err := eachRaw(path, func(text []byte) error {
			text = bytes.TrimSpace(text)
			line, err := parseLine(text)
			// A second member of this name would hide the first from most programs.
			if err != nil || line.has("log") || line.has("log_broken") {
				*skipped++
				return nil
			}
			if !yield(mergeRecord{text, line.Time}, nil) {
				return errStop
			}
			return nil
		})
		if errors.Is(err, fs.ErrNotExist) {
			return // the report says that it is missing
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(mergeRecord{}, fmt.Errorf("%s: %w", path, err))
		}
	}
}

// has reports whether a line has a member of this name.
func (l *Line) has(name string) bool {
	_, ok := l.members[name]
	return ok
}

// errStop ends a reading before the end of the log.
var errStop = errors.New("stop reading")

// eachRaw calls visit for each complete line of the log at path, oldest first. The line
// is valid during the call.
func eachRaw(path string, visit func(line []byte) error) (err error) {
	f, err := openFiles(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	return f.each(func(name string, _ bool, file *os.File) error {
		for in := newLines(file); ; {
			raw, err := in.next()
			switch {
			case err == io.EOF || err == nil && raw.partial:
				return nil
			case err != nil:
				return fmt.Errorf("read %s: %w", name, err)
			}
			if err := visit(raw.text); err != nil {
				return err
			}
		}
	})
}

// chainedTime returns the time of an authentic line, which has the form of
// [hashChain.append].
func chainedTime(line []byte) (time.Time, error) {
	_, rest, _ := bytes.Cut(line, []byte(prevMember))
	if len(rest) > macDigits {
		if text, ok := bytes.CutPrefix(rest[macDigits:], []byte(`","time":"`)); ok {
			text, _, _ = bytes.Cut(text, []byte(`"`))
			return time.Parse(time.RFC3339Nano, string(text))
		}
	}
	var read struct{ Time time.Time }
	err := json.Unmarshal(line, &read)
	return read.Time, err
}
