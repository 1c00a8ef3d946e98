package main

import (
	"cmp"
	"fmt"
	"time"

	"github.com/mcpd/mcpd/engine"
)

// upstreamRow says how an upstream server is.
type upstreamRow struct {
	Name     string     `json:"name"`
	Up       bool       `json:"up"`
	Idle     bool       `json:"idle,omitempty"`
	Error    string     `json:"error,omitempty"`
	Since    *time.Time `json:"since,omitempty"`
	Again    *time.Time `json:"again,omitempty"`
	Revision string     `json:"revision,omitempty"`
	Offered  int        `json:"offered"`
	Left     int        `json:"left"`
	LeftOut  []string   `json:"left_out"`
	// Quarantined are tools that nobody has accepted as they are.
	Quarantined []string `json:"quarantined"`
	// Unkept is why the lock file does not have what was taken in of it.
	Unkept string `json:"unkept,omitempty"`
}

func upstreamRows(all []engine.UpstreamStatus) []upstreamRow {
	rows := make([]upstreamRow, len(all))
	for i, u := range all {
		rows[i] = upstreamRow{Name: u.Name, Up: u.Up, Idle: u.Idle, Since: known(u.Since), Again: known(u.Again), Revision: u.Revision, Offered: u.Offered, Left: u.Left, LeftOut: append([]string{}, u.LeftOut...), Quarantined: append([]string{}, u.Quarantined...)}
		if u.Err != nil {
			rows[i].Error = u.Err.Error()
		}
		if u.Unkept != nil {
			rows[i].Unkept = u.Unkept.Error()
		}
	}
	return rows
}

// printUpstreams says which upstream servers a verb does without, and whose tools nobody
// has looked at.
func printUpstreams(e env, s engine.Status) {
	for _, u := range s.Upstreams {
		switch err := cmp.Or(u.Err, u.Late); {
		case err != nil:
			tell(e, "the upstream %s cannot be reached: %v", u.Name, err)
		case u.Unkept != nil:
			tell(e, "the tools of the upstream %s are not pinned yet; mcpd serve does that, and mcpd lock accept", u.Name)
		}
	}
}

// tell says something on standard error that keeps a verb from nothing.
func tell(e env, format string, args ...any) {
	fmt.Fprintf(e.stderr, "mcpd: %s\n", printable(fmt.Sprintf(format, args...)))
}

// known returns a time, nil of none.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// text says how the server is, for people.
func (u *upstreamRow) text() string {
	switch {
	case u.Up:
		return fmt.Sprintf("%s: lists %s%s; speaks %s%s", u.Name, count(u.Offered, "thing"), u.without(), u.Revision, u.pins())
	case u.Idle:
		return u.Name + ": is reached when it is called first"
	case u.Error == "":
		return u.Name + ": is being reached"
	}
	return fmt.Sprintf("%s: not reached since %s: %s", u.Name, u.Since.Format(time.RFC3339), u.Error)
}

// without says what of it is not offered here.
func (u *upstreamRow) without() string {
	switch left, quarantined := u.Left, len(u.Quarantined); {
	case left == 0:
		return ""
	case quarantined == 0:
		return fmt.Sprintf(", of which %s left out", are(left))
	case quarantined == left:
		return fmt.Sprintf(", of which %s in quarantine (mcpd lock diff %s)", are(quarantined), u.Name)
	default:
		return fmt.Sprintf(", of which %s left out, %d of these in quarantine (mcpd lock diff %s)", are(left), quarantined, u.Name)
	}
}

// are begins what is said of a number of things.
func are(n int) string {
	if n == 1 {
		return "1 is"
	}
	return fmt.Sprintf("%d are", n)
}

// pins says where it is kept what was taken in of it, if that is not the lock file.
func (u *upstreamRow) pins() string {
	if u.Unkept == "" {
		return ""
	}
	return "; is pinned in memory only: " + u.Unkept
}
