package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/mcpd/mcpd/internal/base/jsonguard"
)

// errLine is the error of a line that is no record. Verify tells more.
var errLine = errors.New("the line is no record of an audit log")

// lineLimits are those of lines that are read: what is written keeps within them.
func lineLimits() jsonguard.Limits {
	return jsonguard.Limits{Bytes: maxLine, Depth: 80, Tokens: 1_000_000}
}

// Line is one line of a log, as it was read. Whether it is authentic is for
// [Verify] to say.
type Line struct {
	// JSON is the line without its newline, one object.
	JSON json.RawMessage
	// Seq is its number, and Time when it was written.
	Seq  uint64
	Time time.Time

	members map[string]any
}

// parseLine reads a line that may hold anything.
func parseLine(text []byte) (*Line, error) {
	if !jsonguard.IsObject(text) || jsonguard.Check(text, lineLimits()) != nil {
		return nil, errLine
	}
	l := &Line{JSON: bytes.Clone(text)}
	in := json.NewDecoder(bytes.NewReader(text))
	in.UseNumber()
	if err := in.Decode(&l.members); err != nil {
		return nil, errLine
	}
	seq, _ := l.members["seq"].(json.Number)
	var err, timeErr error
	l.Seq, err = strconv.ParseUint(seq.String(), 10, 64)
	l.Time, timeErr = time.Parse(time.RFC3339Nano, l.text("time"))
	if err != nil || timeErr != nil {
		return nil, errLine
	}
	return l, nil
}

// member returns what a path of names leads to, nil when there is nothing.
func (l *Line) member(path ...string) any {
	var at any = l.members
	for _, name := range path {
		members, _ := at.(map[string]any)
		at = members[name]
	}
	return at
}

// text returns the text or the number that a path of names leads to.
func (l *Line) text(path ...string) string {
	switch value := l.member(path...).(type) {
	case string:
		return value
	case json.Number:
		return value.String()
	}
	return ""
}

// name returns what was called.
func (l *Line) name() string {
	for _, member := range []string{"gen_ai.tool.name", "gen_ai.prompt.name", "name", "mcp.resource.uri"} {
		if name := l.text(member); name != "" {
			return name
		}
	}
	return ""
}

// String returns the line for people: when, what, who, and what became of it.
// It may hold text from outside that a terminal must not be shown as it is.
func (l *Line) String() string {
	parts := []string{l.Time.UTC().Format(time.RFC3339), l.text("kind")}
	if event := l.text("event.name"); event != "" {
		parts = append(parts, event)
		if attributes, ok := l.member("attributes").(map[string]any); ok {
			parts = append(parts, string(pen{}.object(nil, attributes, 1, maxText)))
		}
		return strings.Join(parts, "  ")
	}
	parts = append(parts, l.name(), l.text("principal", "id"), l.text("call_id"))
	if outcome := l.text("outcome"); outcome != "" {
		parts = append(parts, outcome, l.text("duration_ms")+"ms")
	}
	if said := l.approval().String(); said != "" {
		parts = append(parts, said)
	}
	for _, member := range []string{"denied_by", "error.message"} {
		if text := l.text(member); text != "" {
			parts = append(parts, strconv.Quote(text))
		}
	}
	return strings.Join(parts, "  ")
}

// readLines calls visit for each line of a file that is a record, and counts
// those that are not. What is not finished at the end of a file is neither.
func readLines(file *os.File, visit func(*Line) error) (strange int, err error) {
	for in := newLines(file); ; {
		raw, err := in.next()
		if err == io.EOF || err == nil && raw.partial {
			return strange, nil
		}
		if err != nil {
			return strange, fmt.Errorf("read %s: %w", file.Name(), err)
		}
		line, err := parseLine(raw.text)
		if err != nil {
			strange++
			continue
		}
		if err := visit(line); err != nil {
			return strange, err
		}
	}
}
