package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

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
// first.
type section struct {
	title string
	style string // of its lines
	lines []string
	tail  bool
}

// view returns the lines of the view for a terminal of a size.
func (d *devSession) view(width, height int, help bool) []string {
	d.mu.Lock()
	state, server := d.state, d.server
	d.mu.Unlock()
	if server != nil && server.Snapshot() != nil {
		state.Status = server.Status()
	}
	return devView{state, d.env.now(), d.env.color}.lines(width, height, help)
}

// devView draws a state.
type devView struct {
	devState
	now   time.Time
	color bool
}

// lines returns the lines for a terminal of a size: a summary, the sections, and the keys. The
// sections share the height that is left: calls get at least a third of it.
func (v devView) lines(width, height int, help bool) []string {
	lines := v.summary(width)
	body := max(0, height-len(lines)-2)
	sections := v.sections()
	if help {
		sections = []section{{title: "keys", lines: devHelp}}
	}
	for i, s := range sections {
		room := body / (len(sections) - i)
		if !s.tail && len(sections)-i > 1 {
			room = body * 2 / 3
		}
		shown := v.section(s, width, room)
		lines, body = append(lines, shown...), body-len(shown)
	}
	for range body {
		lines = append(lines, "")
	}
	keys := "r rerun tests   c call a tool   o console   q quit   ? help"
	return append(lines, "", v.cut(keys, dimText, width))
}

var devHelp = []string{
	"r   run all tests again",
	"c   call a tool, and record the call as a test",
	"o   open the web console in a browser; Esc hides its address",
	"q   quit, as Ctrl-C does",
	"?   close this help, as Esc and the other keys do",
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
	case v.Running:
		tests, style = "tests  running", plainText
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
		all = append(all, section{title: "console", lines: v.Console})
	}
	if len(v.Problems) > 0 {
		all = append(all, section{title: "problems", lines: v.Problems})
	}
	if len(v.Failures) > 0 {
		all = append(all, section{title: "failed tests", lines: v.Failures})
	}
	calls := section{title: "calls", tail: true}
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
	line := fmt.Sprintf("%5s  %-14s  %7s  %s%s by %s", age(v.now.Sub(c.Time)), c.Outcome, shortDuration(c.Duration), strings.Repeat("  ", min(c.Depth, 8)), cmp.Or(c.Name, c.Kind), c.Principal)
	if c.DeniedBy != "" {
		line += ", denied by " + c.DeniedBy
	}
	return line
}

// section returns the title and the lines of a section in at most height lines, with an empty line
// above. What has no place is counted.
func (v devView) section(s section, width, height int) []string {
	room := height - 2
	if room <= 0 {
		return nil
	}
	title, shown := s.title, s.lines
	if more := len(shown) - room; more > 0 {
		if s.tail {
			shown = shown[more:]
		} else {
			shown = shown[:room]
			title += fmt.Sprintf(" (%s below)", count(more, "line"))
		}
	}
	lines := []string{"", v.cut(title, boldText, width)}
	for _, line := range shown {
		lines = append(lines, v.cut("  "+line, s.style, width))
	}
	return lines
}

// cut returns a text in a style, cut to a width and made safe for a terminal.
func (v devView) cut(text, style string, width int) string {
	text = text[:min(len(text), 8*width)] // more bytes than the characters that fit
	text = strings.ReplaceAll(diag.Printable(strings.ReplaceAll(text, "\n", " ")), "\t", "  ")
	if utf8.RuneCountInString(text) > width {
		runes := []rune(text)
		text = string(runes[:max(0, width-1)]) + "…"
	}
	if !v.color || style == plainText {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[m"
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
