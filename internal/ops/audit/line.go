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

// errLine is the error for a line that is not a record. Verify gives details.
var errLine = errors.New("the line is not an audit record")

// Line is one line of a log. It may be forged: only [Verify] checks that.
type Line struct {
	// JSON is the line without its newline, one object.
	JSON json.RawMessage
	// Seq is the number of the line, and Time the time of its writing.
	Seq  uint64
	Time time.Time

	members map[string]any
}

// parseLine parses an untrusted line.
func parseLine(text []byte) (*Line, error) {
	// Written lines are within these limits.
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

// member returns the value at a path of names, or nil.
func (l *Line) member(path ...string) any {
	var at any = l.members
	for _, name := range path {
		members, _ := at.(map[string]any)
		at = members[name]
	}
	return at
}

// text returns the string or number at a path of names.
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

// String returns the line for people: time, call, caller and outcome. The text is
// untrusted and must be escaped for a terminal.
func (l *Line) String() string {
	parts := []string{l.Time.UTC().Format(time.RFC3339), l.text("kind")}
	if event := l.text("event.name"); event != "" {
		parts = append(parts, event)
		if attributes, ok := l.member("attributes").(map[string]any); ok {
			parts = append(parts, string(valueEncoder{}.object(nil, attributes, 1, maxText)))
		}
		return strings.Join(parts, "  ")
	}
	parts = append(parts, l.name(), l.text("principal", "id"), l.text("call_id"))
	if outcome := l.text("outcome"); outcome != "" {
		parts = append(parts, outcome, l.text("duration_ms")+"ms")
	}
	if approval := l.approval().String(); approval != "" {
		parts = append(parts, approval)
	}
	for _, member := range []string{"denied_by", "error.message"} {
		if text := l.text(member); text != "" {
			parts = append(parts, strconv.Quote(text))
		}
	}
	return strings.Join(parts, "  ")
}

// eachLine calls visit for each record of the log at path, oldest first, and counts
// other lines. what is the operation, for errors.
func eachLine(path, what string, visit func(*Line) error) (unreadable int, err error) {
	f, err := openFiles(path)
	if err != nil {
		return 0, fmt.Errorf("%s the audit log: %w", what, err)
	}
	defer func() { err = errors.Join(err, f.close()) }()
	err = f.each(func(_ string, _ bool, file *os.File) error {
		n, err := readLines(file, visit)
		unreadable += n
		return err
	})
	return unreadable, err
}

// readLines calls visit for each record of a file, and counts other lines. It ignores
// an unfinished line at the end.
func readLines(file *os.File, visit func(*Line) error) (unreadable int, err error) {
	for in := newLines(file); ; {
		raw, err := in.next()
		if err == io.EOF || err == nil && raw.partial {
			return unreadable, nil
		}
		if err != nil {
			return unreadable, fmt.Errorf("read %s: %w", file.Name(), err)
		}
		line, err := parseLine(raw.text)
		if err != nil {
			unreadable++
			continue
		}
		if err := visit(line); err != nil {
			return unreadable, err
		}
	}
}

// Call is a completed call in a log. Masked or omitted parts are missing or changed;
// the Whole fields report which parts are complete.
type Call struct {
	Record
	// Seq is the number of the line, and Began the start time of the call.
	Seq   uint64
	Began time.Time
	// WholePrincipal, WholeAgent, WholeName and WholeURI report that nothing is missing
	// there.
	WholePrincipal, WholeAgent, WholeName, WholeURI bool
	// WholeArguments reports that Values holds all arguments: they were captured
	// without masking, or there were none.
	WholeArguments bool
}

// Calls calls visit for each completed call, oldest first, up to the line number until;
// 0 is no bound. It returns the number of lines that are not records. Memory use does
// not depend on the length of the log.
func Calls(path string, until uint64, visit func(*Call) error) (unreadable int, err error) {
	return eachLine(path, "read", func(l *Line) error {
		if l.text("kind") != outcomeKind || until > 0 && l.Seq > until {
			return nil
		}
		return visit(l.call())
	})
}

// LastCalls calls visit for each completed call in the last n lines, as [Tail].
func LastCalls(path string, n int, visit func(*Call) error) error {
	return Tail(path, n, func(l *Line) error {
		if l.text("kind") != outcomeKind {
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
	c.WholePrincipal = isComplete(l.member("principal"))
	c.WholeAgent = isComplete(l.member("agent")) && isComplete(l.member("request_id"))
	c.WholeName, c.WholeURI = isComplete(c.Name), isComplete(c.URI)
	c.Values, c.WholeArguments = l.values()
	return c
}

func (l *Line) number(path ...string) float64 {
	n, _ := l.member(path...).(json.Number)
	f, _ := n.Float64() // 0 if it is not a number
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

// values returns the arguments if the line holds all of them.
func (l *Line) values() (values json.RawMessage, all bool) {
	shape, isObject := l.member("arguments", "shape").(map[string]any)
	if l.member("arguments") == nil || isObject && len(shape) == 0 {
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

// floats converts the numbers in a decoded value, in place, to the types of claims.
func floats(value any) any {
	switch value := value.(type) {
	case json.Number:
		f, _ := value.Float64() // it was written from a float64 or fits one
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

// omittedItems matches the item that counts omitted items.
var omittedItems = regexp.MustCompile(`^\+[0-9]+$`)

// isComplete reports whether a value was written unchanged. In doubt it returns false.
func isComplete(value any) bool {
	switch value := value.(type) {
	case string:
		return !strings.Contains(value, redact.Mark) && !strings.HasSuffix(value, ellipsis)
	case []any:
		for i, item := range value {
			if text, ok := item.(string); !isComplete(item) || ok && i == len(value)-1 && omittedItems.MatchString(text) {
				return false
			}
		}
	case map[string]any:
		for name, member := range value {
			if !isComplete(name) || !isComplete(member) {
				return false
			}
		}
	}
	return true
}
