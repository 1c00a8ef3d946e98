package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/ops/recent"
)

// Styles of text in the view.
const (
	plainText = ""
	boldText  = "1"
	dimText   = "2"
	redText   = "31"
	greenText = "32"
)

// section is a part of the view with a title. The last lines of a tail matter most; otherwise the
// first. Lines that are too long are wrapped, unless the section is a table.
type section struct {
	title string
	style string // of its lines
	lines []string
	tail  bool
	table bool
	// copied means that the first line must be readable and can be copied as a whole.
	copied bool
}

// row is a row of the screen. If it goes on, it fills the screen, and the next row has the rest of its
// line: a terminal copies both as one line.
type row struct {
	text   string
	goesOn bool
}

// view returns the rows of the view for a terminal of a size.
func (d *devSession) view(width, height int, help bool) []row {
	return d.viewNow(d.env.color).rows(width, height, help)
}

// viewNow returns the view of the current state.
func (d *devSession) viewNow(color bool) devView {
	d.mu.Lock()
	state, server := d.state, d.server
	d.mu.Unlock()
	if server != nil {
		state.Testing = server.Inside().IsTesting()
		if server.Snapshot() != nil {
			state.Status = server.Status()
		}
	}
	return devView{state, d.env.now(), color}
}

// devView draws a state.
type devView struct {
	devState
	now   time.Time
	color bool
}

// rows returns the rows for a terminal of a size: a summary, the sections, and the keys. The sections
// share the height that is left: each gets at most two thirds of what those before it leave.
func (v devView) rows(width, height int, help bool) []row {
	var rows []row
	for _, line := range v.summary(width) {
		rows = append(rows, row{text: line})
	}
	body := max(0, height-len(rows)-2)
	sections := v.sections()
	if help {
		sections = []section{{title: "keys", lines: devHelp}}
	}
	for i, s := range sections {
		room := body / (len(sections) - i)
		switch {
		case s.copied:
			room = body
		case !s.tail && len(sections)-i > 1:
			room = body * 2 / 3
		}
		shown := v.section(s, width, room)
		rows, body = append(rows, shown...), body-len(shown)
	}
	rows = append(rows, make([]row, body+1)...)
	return append(rows, row{text: v.cut("? help   r rerun tests   c call a tool   l full text   o console   q quit", dimText, width)})
}

// full returns the text of the view without wrapped or cut lines.
func (v devView) full() string {
	const wide = 1 << 20
	v.color = false
	lines := v.summary(wide)
	for _, s := range v.sections() {
		lines = append(lines, "", s.title)
		for _, line := range s.lines {
			indent := "  "
			if s.copied {
				indent = ""
			}
			lines = append(lines, indent+v.cut(line, plainText, wide))
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

var devHelp = []string{
	"r   run all tests again",
	"c   call a tool, and record the call as a test",
	"l   leave the view, and print all of it, with the last 200 lines of the log",
	"o   open the web console in a browser; Esc hides its address",
	"q   quit, as Ctrl-C does",
	"?   close this help, as Esc and the keys above do",
}

// summary returns the lines at the top.
func (v devView) summary(width int) []string {
	where := cmp.Or(v.URL, "not served yet")
	lines := []string{v.cut("mcpd dev  "+where, boldText, width)}
	if v.Status.Revision != "" {
		live := fmt.Sprintf("live   %s, revision %.12s, for %s", offered(v.Status), v.Status.Revision, age(v.now.Sub(v.Status.Since)))
		lines = append(lines, v.cut(live, plainText, width))
	}
	files, style := "files  no errors", greenText
	switch {
	case v.Loading && !v.Testing:
		files, style = "files  loading", plainText
	case v.Broken && v.Status.Revision == "":
		files, style = "files  "+count(v.Errors, "error")+"; nothing is served", redText
	case v.Broken:
		files, style = "files  "+count(v.Errors, "error")+"; the last good files are live", redText
	case len(v.Problems) > 0:
		files = "files  no errors, but warnings"
	}
	lines = append(lines, v.cut(files, style, width))
	if !v.Broken && v.URL != "" && !v.Status.Healthy() {
		lines = append(lines, v.cut("health "+v.Status.Health(), redText, width))
	}
	tests, style := fmt.Sprintf("tests  %d passed, %d failed; %d ran after the last change, in %s", v.Tests-v.Failed, v.Failed, v.Ran, shortDuration(v.Took)), greenText
	switch {
	case v.Testing:
		tests, style = "tests  running before the files are served (require_tests)", plainText
	case v.Running:
		tests, style = "tests  running", plainText
	case v.Loading:
		tests, style = "tests  not run yet", plainText
	case v.Tests == 0:
		tests, style = "tests  none", plainText
	case v.Failed > 0:
		style = redText
	}
	lines = append(lines, v.cut(tests, style, width))
	if v.Types != "" {
		lines = append(lines, v.cut("types  not written: "+v.Types, redText, width))
	}
	return lines
}

// sections returns the parts that have something to show.
func (v devView) sections() []section {
	var all []section
	if len(v.Console) > 0 {
		all = append(all, section{title: "console", lines: v.Console, copied: true})
	}
	if len(v.Problems) > 0 {
		all = append(all, section{title: "problems", lines: v.Problems})
	}
	if len(v.Failures) > 0 {
		all = append(all, section{title: "failed tests", lines: v.Failures})
	}
	calls := section{title: "calls", tail: true, table: true}
	for _, c := range v.Calls {
		calls.lines = append(calls.lines, v.callLine(c))
	}
	if len(v.Calls) == 0 {
		calls.lines = []string{"none yet"}
	}
	all = append(all, calls)
	if len(v.Log) > 0 {
		all = append(all, section{title: "log", style: dimText, lines: v.Log, tail: true})
	}
	return all
}

func (v devView) callLine(c recent.Call) string {
	line := fmt.Sprintf("%5s  %-14s  %7s  %s%s by %s", age(v.now.Sub(c.Time)), outcomeText(c), shortDuration(c.Duration), strings.Repeat("  ", min(c.Depth, 8)), cmp.Or(c.Name, c.Kind), c.Principal)
	if c.DeniedBy != "" {
		line += ", denied by " + c.DeniedBy
	}
	return line
}

// section returns the title and the lines of a section in at most height rows, with an empty row
// above. What has no place is counted.
func (v devView) section(s section, width, height int) []row {
	room := height - 2
	if room <= 0 {
		return nil
	}
	var rows []row
	title, lines := s.title, s.lines
	if s.copied && len(lines) > 0 {
		rows, lines = v.whole(lines[0], s, width, room), lines[1:]
	}
	if s.tail {
		for i := len(lines) - 1; i >= 0 && len(rows) < room; i-- {
			wrapped := v.wrap(lines[i], s, width, room)
			if len(rows)+len(wrapped) > room {
				break
			}
			rows = append(wrapped, rows...)
		}
	} else {
		for i, line := range lines {
			if len(rows) == room {
				title += fmt.Sprintf(" (%s below)", count(len(lines)-i, "line"))
				break
			}
			rows = append(rows, v.wrap(line, s, width, room-len(rows))...)
		}
	}
	return append([]row{{}, {text: v.cut(title, boldText, width)}}, rows...)
}

// whole returns a line in at most most rows that a terminal copies as one line.
func (v devView) whole(line string, s section, width, most int) (rows []row) {
	if strings.ContainsFunc(line, func(r rune) bool { return r <= ' ' || r > '~' }) { // its width is not known
		return v.wrap(line, s, width, most)
	}
	for len(line) > width && len(rows) < most-1 {
		rows = append(rows, row{line[:width], true})
		line = line[width:]
	}
	return append(rows, row{text: v.cut(line, plainText, width)})
}

// wrap returns a line, indented, in at most most rows. A line of a table has one row.
func (v devView) wrap(line string, s section, width, most int) (rows []row) {
	if s.table {
		most = 1
	}
	text := cleaned("  "+line, width*most)
	for len(text) > width && len(rows) < most-1 {
		end := width
		for i := width; i > width/2; i-- {
			if text[i] == ' ' {
				end = i
				break
			}
		}
		rows = append(rows, row{text: v.styled(string(text[:end]), s.style)})
		rest := strings.TrimPrefix(string(text[end:]), " ")
		text = []rune(strings.Repeat(" ", min(4, width/2)) + rest)
	}
	return append(rows, row{text: v.cut(string(text), s.style, width)})
}

// cut returns a text in a style, cut to a width and made safe for a terminal.
func (v devView) cut(text, style string, width int) string {
	shown := cleaned(text, width)
	if len(shown) > width {
		shown = append(shown[:max(0, width-1)], '…')
	}
	return v.styled(string(shown), style)
}

func (v devView) styled(text, style string) string {
	if !v.color || style == plainText {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[m"
}

// cleaned returns the characters of a text in one line, made safe for a terminal. It may leave out
// those after the first most characters and one more.
func cleaned(text string, most int) []rune {
	text = text[:min(len(text), 8*(most+1))]
	return []rune(strings.ReplaceAll(diag.Printable(strings.ReplaceAll(text, "\n", " ")), "\t", "  "))
}

// age returns a duration in one unit, such as "3s" or "2h".
func age(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}
