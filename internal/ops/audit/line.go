package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/jsonguard"
	"github.com/mcpd/mcpd/internal/base/redact"
)

// errLine is the error of a line that is no record. Verify tells more.
var errLine = errors.New("the line is no record of an audit log")

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
	// What is written keeps within these limits.
	if !jsonguard.IsObject(text) || jsonguard.Check(text, jsonguard.Limits{Bytes: maxLine, Depth: 80, Tokens: 1_000_000}) != nil {
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

// eachLine calls visit for each record of the log at a path, the oldest first, and counts the
// lines that are none. what says for an error what the log is opened for.
func eachLine(path, what string, visit func(*Line) error) (strange int, err error) {
	f, err := openFiles(path)
	if err != nil {
		return 0, fmt.Errorf("%s the audit log: %w", what, err)
	}
	defer func() { err = errors.Join(err, f.close()) }()
	err = f.each(func(_ string, _ bool, file *os.File) error {
		n, err := readLines(file, visit)
		strange += n
		return err
	})
	return strange, err
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

// Call is what a log says of a call that has ended. What the log left out or masked is
// not there, or not as it was: the Whole members say of what that is not so.
type Call struct {
	Record
	// Seq is the number of the line, and Began when the call began.
	Seq   uint64
	Began time.Time
	// WholePrincipal, WholeAgent, WholeName and WholeURI say that nothing is missing there.
	WholePrincipal, WholeAgent, WholeName, WholeURI bool
	// WholeArguments says that Values are all of the arguments: they were kept, and
	// nothing of them was masked, or there were none.
	WholeArguments bool
}

// Calls calls visit for each call that has ended, from the oldest to the one whose number
// is until; 0 is no bound. It returns how many lines are no records. It takes the memory
// of one line, however long the log is.
func Calls(path string, until uint64, visit func(*Call) error) (strange int, err error) {
	return eachLine(path, "read", func(l *Line) error {
		if l.text("kind") != outcomeKind || until > 0 && l.Seq > until {
			return nil
		}
		return visit(l.call())
	})
}

func (l *Line) call() *Call {
	c := &Call{Seq: l.Seq, Record: Record{
		Call: l.text("call_id"), Root: l.text("root_id"), Parent: l.text("parent_id"), Leg: l.count("leg"), Depth: l.count("depth"),
		Via: l.text("via"), Alias: l.text("alias"), Kind: l.text("called"), URI: l.text("mcp.resource.uri"), Method: l.text("mcp.method.name"),
		Revision: l.text("revision"), Definition: l.text("definition"), TraceID: l.text("trace_id"), SpanID: l.text("span_id"),
		Outcome: l.text("outcome"), DeniedBy: l.text("denied_by"), Limited: l.member("limited") == true,
		Cached: l.member("cached") == true, Declined: l.member("declined") == true,
		Message: l.text("error.message"), CancelledBy: l.text("cancelled_by"), CancelReason: l.text("cancel_reason"), Approval: l.approval(),
	}}
	c.Name = l.text(nameMember(c.Kind))
	c.Duration = time.Duration(l.number("duration_ms") * float64(time.Millisecond))
	c.Began = l.Time.Add(-c.Duration)
	c.Caller = identity.Caller{Principal: l.principal(), Agent: l.agent(), Source: identity.Source{
		IP: l.text("client.address"), Listener: l.text("listener"), Session: l.text("mcp.session.id"),
	}}
	c.WholePrincipal = whole(l.member("principal"))
	c.WholeAgent = whole(l.member("agent")) && whole(l.member("request_id"))
	c.WholeName, c.WholeURI = whole(c.Name), whole(c.URI)
	c.Values, c.WholeArguments = l.values()
	return c
}

func (l *Line) number(path ...string) float64 {
	n, _ := l.member(path...).(json.Number)
	f, _ := n.Float64() // 0 for what is none
	return f
}

func (l *Line) count(path ...string) int { return int(l.number(path...)) }

func (l *Line) principal() identity.Principal {
	p := identity.Principal{
		ID: l.text("principal", "id"), Kind: identity.Kind(l.text("principal", "kind")), Issuer: l.text("principal", "issuer"),
		Scopes: texts(l.member("principal", "scopes")), Groups: texts(l.member("principal", "groups")), Claims: map[string]any{},
	}
	if claims, ok := l.member("principal", "claims").(map[string]any); ok {
		p.Claims, _ = floats(claims).(map[string]any)
	}
	return p
}

func (l *Line) agent() identity.Agent {
	a := identity.Agent{
		AgentID: l.text("agent", "claimed", "agent_id"), Model: l.text("agent", "claimed", "model"),
		RequestID: l.text("request_id"), Verified: l.member("agent", "verified") == true,
	}
	metadata, _ := l.member("agent", "claimed", "metadata").(map[string]any)
	for name, value := range metadata {
		if a.Metadata == nil {
			a.Metadata = make(map[string]string, len(metadata))
		}
		a.Metadata[name], _ = value.(string)
	}
	return a
}

// values returns the arguments where the line holds all of them.
func (l *Line) values() (values json.RawMessage, all bool) {
	shape, told := l.member("arguments", "shape").(map[string]any)
	if l.member("arguments") == nil || told && len(shape) == 0 {
		return json.RawMessage("{}"), true
	}
	kept, ok := l.member("gen_ai.tool.call.arguments").(map[string]any)
	if !ok {
		return nil, false
	}
	values, err := json.Marshal(kept)
	return values, err == nil && !strings.Contains(string(values), redact.Mark)
}

func texts(list any) []string {
	items, _ := list.([]any)
	all := make([]string, 0, len(items))
	for _, item := range items {
		if text, ok := item.(string); ok {
			all = append(all, text)
		}
	}
	return all
}

// floats returns a decoded value, which it changes, with the numbers that claims have.
func floats(value any) any {
	switch value := value.(type) {
	case json.Number:
		f, _ := value.Float64() // it was written from one, or from what fits
		return f
	case []any:
		for i, item := range value {
			value[i] = floats(item)
		}
	case map[string]any:
		for name, member := range value {
			value[name] = floats(member)
		}
	}
	return value
}

// leftItems is the item that says how many items a list lacks.
var leftItems = regexp.MustCompile(`^\+[0-9]+$`)

// whole reports whether a value was written down as it was. It errs to the side of no.
func whole(value any) bool {
	switch value := value.(type) {
	case string:
		return !strings.Contains(value, redact.Mark) && !strings.HasSuffix(value, ellipsis)
	case []any:
		for i, item := range value {
			if text, ok := item.(string); !whole(item) || ok && i == len(value)-1 && leftItems.MatchString(text) {
				return false
			}
		}
	case map[string]any:
		for name, member := range value {
			if !whole(name) || !whole(member) {
				return false
			}
		}
	}
	return true
}
