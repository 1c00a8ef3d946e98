package audit

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Verify reads the log at path from the first line to the last and reports all that is
// wrong. The error is for a log that cannot be read; problems of the log are in the
// report. Memory use does not depend on the length of the log.
func Verify(path string) (*Report, error) {
	k, err := readKey(osDisk{}, path)
	if err != nil {
		return nil, fmt.Errorf("verify the audit log: read its key: %w", err)
	}
	c := newChain(derive(k.key).chain)
	for {
		v := &verifier{chain: c, key: k, report: &Report{Findings: []Finding{}}}
		if err := v.run(path); err != nil {
			return nil, fmt.Errorf("verify the audit log: %w", err)
		}
		// Files that retention removed meanwhile are not findings.
		if now, err := readHead(osDisk{}, path, c); len(v.report.Findings) == 0 || err != nil || now.first == v.head.first {
			return v.report, nil
		}
	}
}

func (v *verifier) run(path string) (err error) {
	// Read the key and the head first: the log may grow meanwhile, but never ends
	// before them.
	if v.key.state == keyForged {
		v.report.add(keyPath(path), 0, "the mark was not written with this key")
	}
	if err := v.readHead(path); err != nil {
		return err
	}
	f, err := openFiles(path)
	if errors.Is(err, fs.ErrNotExist) && v.key.expectsLog() {
		v.report.add(path, 0, "the log is missing, but its key has a mark")
		v.end(path)
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	if err := f.each(v.file); err != nil {
		return err
	}
	v.end(path)
	return nil
}

// verifier checks the lines of a log in order.
type verifier struct {
	chain  *hashChain
	key    keyFile
	report *Report
	head   checkpoint
	// last is the last authentic line, and forged the number of forged lines after it.
	last   chainEntry
	forged uint64
}

// readHead reads the minimum position that the log must reach.
func (v *verifier) readHead(path string) (err error) {
	v.head, err = readHead(osDisk{}, path, v.chain)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		v.report.add(headPath(path), 0, "the head is missing, so a truncated end cannot be detected")
	case errors.Is(err, errHead):
		v.report.add(headPath(path), 0, "%v", err)
	default:
		return err
	}
	return nil
}

func (v *verifier) file(path string, current bool, file *os.File) error {
	v.report.Files++
	in := newLines(file)
	for number := 1; ; number++ {
		line, err := in.next()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return fmt.Errorf("read %s: %w", path, err)
		case line.partial && current:
			v.report.Unfinished = len(line.text)
			return nil
		}
		v.line(path, number, line)
	}
}

func (v *verifier) line(path string, number int, line rawLine) {
	at, prev, authentic := v.chain.read(line.text)
	if !authentic || line.partial {
		v.forged++
		v.report.add(path, number, "the line was changed, or was not written with this key")
		return
	}
	v.follows(path, number, at, prev == v.last.mac)
	if at.seq == v.head.last.seq && at.mac != v.head.last.mac {
		v.report.add(path, number, "record %d differs from the record in the head", at.seq)
	}
	if at.seq == v.key.last.seq && at.mac != v.key.last.mac {
		v.report.add(path, number, "record %d differs from the record in the mark of the key", at.seq)
	}
	if name := ownEvent(line.text); name == eventGap {
		v.report.add(path, number, "lines or the head were missing when the log was opened here")
	}
	if v.report.First == 0 {
		v.report.First = at.seq
	}
	v.report.Records++
	v.last, v.forged = at, 0
}

// follows checks that an authentic line continues the chain.
func (v *verifier) follows(path string, number int, at chainEntry, linked bool) {
	if v.report.Records == 0 {
		v.begins(path, number, at, linked)
		return
	}
	next := v.last.seq + 1
	switch {
	case at.seq < next:
		v.report.add(path, number, "record %d is out of order: it follows record %d", at.seq, v.last.seq)
	case at.seq > next+v.forged:
		v.report.add(path, number, "%s missing before this line", v.missing(next, at.seq-1))
	case at.seq == next && !linked:
		v.report.add(path, number, "record %d does not continue the chain of record %d before it", at.seq, v.last.seq)
	}
}

func (v *verifier) begins(path string, number int, at chainEntry, linked bool) {
	oldest := max(v.head.first, 1)
	switch {
	case at.seq > oldest+v.forged && (v.head.first > 0 || v.forged > 0):
		v.report.add(path, number, "%s missing before this line", v.missing(oldest, at.seq-1))
	case at.seq == 1 && !linked:
		v.report.add(path, number, "record 1 does not start a log")
	}
}

func (v *verifier) end(path string) {
	if known := max(v.head.last.seq, v.key.last.seq); v.last.seq+v.forged < known {
		v.report.add(path, 0, "the end was truncated: %s missing", v.missing(v.last.seq+1, known))
	}
	v.report.Last = v.last.seq
	if v.last.seq > 0 {
		v.report.MAC = hex.EncodeToString(v.last.mac[:])
	}
}

// missing describes records that no authentic line holds, with a verb. The forged lines
// before may have been some of them.
func (v *verifier) missing(from, to uint64) string {
	if v.forged == 0 {
		return span(from, to)
	}
	verb := "are"
	n := to - from + 1 - v.forged
	if n == 1 {
		verb = "is"
	}
	return fmt.Sprintf("%d of the records %d to %d %s", n, from, to, verb)
}

func span(from, to uint64) string {
	if from >= to {
		return fmt.Sprintf("record %d is", to)
	}
	return fmt.Sprintf("records %d to %d are", from, to)
}

// ownEvent returns the name of an event of the log itself, or "". The line is
// authentic, and nothing untrusted precedes its kind.
func ownEvent(line []byte) string {
	_, rest, _ := bytes.Cut(line, []byte(`","kind":"`))
	name, ok := bytes.CutPrefix(rest, []byte(eventKind+`","event.name":"`))
	name, _, _ = bytes.Cut(name, []byte(`"`))
	if !ok || !bytes.HasPrefix(name, []byte(ownPrefix)) {
		return ""
	}
	return string(name)
}

// maxFindings is the maximum number of findings in a report.
const maxFindings = 100

// Finding is a problem of a log.
type Finding struct {
	// File is the path of the file, and Line the number of the line in it, from 1; 0
	// means the whole file.
	File string `json:"file"`
	Line int    `json:"line,omitempty"`
	// Problem describes the problem.
	Problem string `json:"problem"`
}

// String returns the finding as a line of text.
func (f Finding) String() string {
	if f.Line == 0 {
		return f.File + ": " + f.Problem
	}
	return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Problem)
}

// Report is the result of [Verify].
type Report struct {
	// Files and Records are the numbers of files and of authentic lines.
	Files   int    `json:"files"`
	Records uint64 `json:"records"`
	// First and Last are the numbers of the oldest and the latest record, 0 if there
	// are none. MAC is the authentication code of the latest record: with an external
	// copy of it you can check later whether the log still holds that record.
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
	MAC   string `json:"mac,omitempty"`
	// Unfinished is the length in bytes of an incomplete last line, which a process is
	// writing or was writing when it was killed.
	Unfinished int `json:"unfinished,omitempty"`
	// Findings are the problems in the order of the files. More is the number of
	// further ones.
	Findings []Finding `json:"findings"`
	More     int       `json:"more,omitempty"`
}

func (r *Report) add(file string, line int, format string, args ...any) {
	if len(r.Findings) >= maxFindings {
		r.More++
		return
	}
	r.Findings = append(r.Findings, Finding{file, line, fmt.Sprintf(format, args...)})
}
