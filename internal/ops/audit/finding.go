package audit

import "fmt"

// maxFindings is how many findings a report holds.
const maxFindings = 100

// Finding is something that is wrong with a log.
type Finding struct {
	// File is the path of the file, and Line the number of the line, from 1; 0
	// when no line is meant.
	File string `json:"file"`
	Line int    `json:"line,omitempty"`
	// Problem says what is wrong.
	Problem string `json:"problem"`
}

// String returns the finding as a line of text.
func (f Finding) String() string {
	if f.Line == 0 {
		return f.File + ": " + f.Problem
	}
	return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Problem)
}

// Report is what [Verify] has found.
type Report struct {
	// Files and Records are how many were read. Records are authentic lines.
	Files   int    `json:"files"`
	Records uint64 `json:"records"`
	// First and Last are the numbers of the oldest and the youngest record, 0
	// when there are none. MAC is the authentication code of the youngest:
	// whoever notes it elsewhere can tell later whether the log still holds it.
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
	MAC   string `json:"mac,omitempty"`
	// Unfinished is the length in bytes of a last line without an end, which a
	// process is writing, or was when it was killed.
	Unfinished int `json:"unfinished,omitempty"`
	// Findings are what is wrong, in the order of the files, and More how many
	// there are beyond them.
	Findings []Finding `json:"findings"`
	More     int       `json:"more,omitempty"`
}

// add adds a finding, or counts it.
func (r *Report) add(file string, line int, format string, args ...any) {
	if len(r.Findings) >= maxFindings {
		r.More++
		return
	}
	r.Findings = append(r.Findings, Finding{file, line, fmt.Sprintf(format, args...)})
}
