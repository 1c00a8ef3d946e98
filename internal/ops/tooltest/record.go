package tooltest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/base/redact"
	"github.com/mcpd/mcpd/internal/host"
)

// Recording records a call of a tool as mocks. An emitter of the call embeds it.
type Recording struct {
	recorder host.Recorder
	input    json.RawMessage
}

// HostRecorder implements [host.CallRecorder].
func (r *Recording) HostRecorder(input json.RawMessage) *host.Recorder {
	r.input = slices.Clone(input)
	return &r.recorder
}

// Answers records the responses of the client to input requests, by their keys.
func (r *Recording) Answers(asked []call.AskRequest, responses map[string]json.RawMessage) {
	for _, one := range asked {
		if responses[one.Key] == nil {
			continue
		}
		object := map[string]string{"elicitation/create": "elicit", "sampling/createMessage": "sample", "roots/list": "roots"}[one.Method]
		r.recorder.AddAnswer(host.Recorded{Object: object, Request: one.Key, JSON: responses[one.Key]})
	}
}

// IsFull reports whether the answers of hosts are too large for a test.
func (r *Recording) IsFull() bool { return r.recorder.IsFull() }

// Input returns the arguments of the call, with defaults; nil if the script did not run.
func (r *Recording) Input() json.RawMessage { return r.input }

// Called returns the answers of the tools that the call called.
func (r *Recording) Called() []host.Recorded { return r.recorder.Called() }

// Variables returns the values of granted environment variables.
func (r *Recording) Variables() []string { return r.recorder.Variables() }

// HasLinks reports whether a response had one of the headers that [RecordedCall.Links] writes.
func (r *Recording) HasLinks() bool {
	return slices.ContainsFunc(r.recorder.Mocks(), func(m host.Recorded) bool {
		return slices.ContainsFunc(linkHeaders(), func(name string) bool { return m.Headers[name] != "" })
	})
}

// HasJSON reports whether a response was JSON, for which [RecordedCall.Texts] makes a difference.
func (r *Recording) HasJSON() bool { return slices.ContainsFunc(r.recorder.Mocks(), isJSONResponse) }

func isJSONResponse(m host.Recorded) bool {
	return m.JSON != nil && m.Error == "" && strings.HasPrefix(m.Object, "http.")
}

// linkHeaders are the headers that have URLs.
func linkHeaders() []string { return []string{"link", "location"} }

// Notes returns what the recorded test cannot repeat.
func (r *Recording) Notes() []string { return r.recorder.Notes() }

// RecordedCall is the call of a recorded test. Values are hidden before they are quoted.
type RecordedCall struct {
	// Name is the name of the test.
	Name      string
	Tool      string
	Arguments json.RawMessage
	// Caller is the caller in the test. What is the default of a test is left out, and so is an
	// empty listener.
	Caller identity.Caller
	Result call.Result
	// AnyOutput makes the test of a successful call expect the host calls instead of the result.
	AnyOutput bool
	// Links writes the headers of responses that have URLs, which may contain credentials.
	Links bool
	// Texts writes responses in JSON as text, with the spaces and escapes that they had. A response
	// stays JSON if its text would not hide the same values: they may have any escapes there.
	Texts bool
	// Hide replaces sensitive values in a string; nil replaces none.
	Hide Hide
	// SensitiveOutput returns the JSON pointers to sensitive values in the results of a tool.
	SensitiveOutput func(tool string) []string
}

// Sensitive returns a matcher that finds values in the forms that are searched for secrets.
func Sensitive(values []string) redact.Net { return host.NewSensitive(values) }

// Hide replaces sensitive values in a string.
type Hide func(string) string

func (h Hide) text(s string) string {
	if h == nil {
		return s
	}
	return h(s)
}

// quote returns a string literal of HCL without sensitive values.
func (h Hide) quote(s string) string { return quoteHCL(h.text(s)) }

// label is [Hide.text] for the labels of a mock. Scripts escape the placeholder in a URL.
func (h Hide) label(object, label string) string {
	shown := h.text(label)
	if strings.HasPrefix(object, "http.") && shown != label {
		shown = strings.ReplaceAll(shown, redact.Mark, url.PathEscape(redact.Mark))
	}
	return shown
}

// Block returns the test block of a call, in HCL that is not yet formatted.
func (r *Recording) Block(c RecordedCall) string {
	var b strings.Builder
	fmt.Fprintf(&b, "test %s {\n  tool = %s\n", c.Hide.quote(c.Name), c.Hide.quote(c.Tool))
	if len(c.Arguments) > 0 && string(c.Arguments) != "{}" {
		fmt.Fprintf(&b, "  input = %s\n", valueHCL(c.Arguments, c.Hide))
	}
	c.writeCaller(&b)
	for _, m := range r.recorder.Mocks() {
		if m.Object == "tools" && m.JSON != nil && c.SensitiveOutput != nil {
			m.JSON = redact.Pointers(m.JSON, c.SensitiveOutput(m.Request))
		}
		c.writeMock(&b, m)
	}
	b.WriteString("\n  expect {\n")
	r.writeExpectations(&b, c)
	b.WriteString("  }\n}\n")
	return b.String()
}

// writeCaller writes the parts of the caller that differ from [Caller].
func (c RecordedCall) writeCaller(b *strings.Builder) {
	write := func(name string, value any) {
		encoded, err := json.Marshal(value)
		if err == nil { // else it is not from JSON
			fmt.Fprintf(b, "  %s = %s\n", name, valueHCL(encoded, c.Hide))
		}
	}
	if p := &c.Caller.Principal; p.Kind != identity.KindAnonymous {
		write("principal", struct {
			ID     string         `json:"id"`
			Kind   identity.Kind  `json:"kind"`
			Issuer string         `json:"issuer,omitempty"`
			Scopes []string       `json:"scopes,omitempty"`
			Groups []string       `json:"groups,omitempty"`
			Claims map[string]any `json:"claims,omitempty"`
		}{p.ID, p.Kind, p.Issuer, p.Scopes, p.Groups, p.Claims})
	}
	if a := &c.Caller.Agent; a.AgentID != "" && a.AgentID != identity.AnonymousAgent {
		write("agent", struct {
			ID       string            `json:"agent_id"`
			Model    string            `json:"model,omitempty"`
			Metadata map[string]string `json:"metadata,omitempty"`
			Verified bool              `json:"verified,omitempty"`
		}{a.AgentID, a.Model, a.Metadata, a.Verified})
	}
	if listener := c.Caller.Source.Listener; listener != "" && listener != "local" {
		write("source", map[string]string{"listener": listener})
	}
}

func (c RecordedCall) writeMock(b *strings.Builder, m host.Recorded) {
	fmt.Fprintf(b, "\n  mock %s %s {\n", c.Hide.quote(m.Object), quoteHCL(c.Hide.label(m.Object, m.Request)))
	if m.Status != 0 && m.Status != 200 {
		fmt.Fprintf(b, "    status = %d\n", m.Status)
	}
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(m.Headers)), func(name string) bool {
		return !c.Links && slices.Contains(linkHeaders(), name)
	})
	if len(names) > 0 {
		b.WriteString("    headers = {\n")
		for _, name := range names {
			fmt.Fprintf(b, "      %s = %s\n", c.Hide.quote(name), c.Hide.quote(m.Headers[name]))
		}
		b.WriteString("    }\n")
	}
	switch {
	case m.Error != "":
		fmt.Fprintf(b, "    error = %s\n", c.Hide.quote(m.Error))
	case m.JSON != nil:
		text := c.Hide.text(string(m.JSON))
		if c.Texts && isJSONResponse(m) && literal([]byte(text), true, nil) == literal(m.JSON, true, c.Hide) {
			fmt.Fprintf(b, "    text = %s\n", quoteHCL(text))
			break
		}
		fmt.Fprintf(b, "    json = %s\n", valueHCL(m.JSON, c.Hide))
	case m.Text != nil:
		fmt.Fprintf(b, "    text = %s\n", c.Hide.quote(*m.Text))
	}
	b.WriteString("  }\n")
}

func (r *Recording) writeExpectations(b *strings.Builder, c RecordedCall) {
	if err := c.Result.Err; err != nil {
		fmt.Fprintf(b, "    error = %s\n", c.Hide.quote(string(err.Code)))
		if err.DeniedBy != "" && !strings.HasPrefix(err.DeniedBy, "(") {
			fmt.Fprintf(b, "    denied_by = %s\n", c.Hide.quote(err.DeniedBy))
		}
		return
	}
	hasValue := len(c.Result.Value) > 0 && string(c.Result.Value) != "null"
	switch {
	case c.AnyOutput || !hasValue && len(c.Result.Content) == 0:
		var calls []string
		for _, one := range r.recorder.Calls() {
			calls = append(calls, "      "+quoteHCL(c.Hide.label(one, one))+",\n")
		}
		fmt.Fprintf(b, "    calls = [\n%s    ]\n", strings.Join(calls, ""))
	case hasValue:
		fmt.Fprintf(b, "    output = %s\n", valueHCL(c.Result.Value, c.Hide))
	default:
		fmt.Fprintf(b, "    text = %s\n", c.Hide.quote(textOf(c.Result.Content)))
	}
}

// QuoteHCL returns a string literal of HCL. It has one line, whatever s holds.
func QuoteHCL(s string) string { return quoteHCL(s) }

// ValueHCL returns a JSON value as a literal of HCL.
func ValueHCL(raw json.RawMessage) string { return valueHCL(raw, nil) }

// quoteHCL returns a string literal of HCL.
func quoteHCL(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case (r == '$' || r == '%') && strings.HasPrefix(s[i+1:], "{"):
			b.WriteRune(r)
			b.WriteRune(r)
		case r > 0xffff && !unicode.IsPrint(r):
			fmt.Fprintf(&b, `\U%08x`, r)
		case !unicode.IsPrint(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// plainKey matches names that are keys of an object of HCL without quotes.
var plainKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// maxInline is the length of a value that is written on one line, in bytes of JSON.
const maxInline = 60

// valueHCL returns a JSON value as a literal of HCL, with the members in the same order.
func valueHCL(raw json.RawMessage, hide Hide) string {
	return literal(raw, len(raw) <= maxInline, hide)
}

// literal is [valueHCL] on one line, or on several.
func literal(raw json.RawMessage, inline bool, hide Hide) string {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var b strings.Builder
	if err := writeValue(&b, d, inline, hide); err != nil {
		return "null" // it is not JSON: the host and the script return JSON, but text is hidden in it
	}
	return b.String()
}

// writeValue writes the next value of a decoder. Its depth is bounded by the depth of arguments and
// results.
func writeValue(b *strings.Builder, d *json.Decoder, inline bool, hide Hide) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	switch token := token.(type) {
	case json.Delim:
		return writeComposite(b, d, token, inline, hide)
	case string:
		b.WriteString(hide.quote(token))
	case nil:
		b.WriteString("null")
	case json.Number:
		if text := token.String(); hide.text(text) != text {
			b.WriteString(hide.quote(text))
			break
		} else if n, err := token.Float64(); err == nil {
			if plain := strconv.FormatFloat(n, 'f', -1, 64); hide.text(plain) != plain {
				b.WriteString(hide.quote(plain))
				break
			}
		}
		fmt.Fprint(b, token)
	default:
		fmt.Fprint(b, token) // a boolean
	}
	return nil
}

func writeComposite(b *strings.Builder, d *json.Decoder, opened json.Delim, inline bool, hide Hide) error {
	fmt.Fprintf(b, "%c", opened)
	inline = inline || !d.More()
	first := true
	for ; d.More(); first = false {
		switch {
		case !inline && opened == '[' && !first:
			b.WriteString(",\n")
		case !inline:
			b.WriteString("\n")
		case !first:
			b.WriteString(", ")
		case opened == '{':
			b.WriteString(" ")
		}
		if opened == '{' {
			key, err := d.Token()
			if err != nil {
				return err
			}
			name, _ := key.(string)
			name = hide.text(name)
			if !plainKey.MatchString(name) || name == "for" || name == "null" || name == "true" || name == "false" {
				name = quoteHCL(name)
			}
			b.WriteString(name + " = ")
		}
		if err := writeValue(b, d, inline, hide); err != nil {
			return err
		}
	}
	closed, err := d.Token()
	if err != nil {
		return err
	}
	switch {
	case !inline && opened == '[':
		b.WriteString(",\n")
	case !inline:
		b.WriteString("\n")
	case opened == '{' && !first:
		b.WriteString(" ")
	}
	fmt.Fprint(b, closed)
	return nil
}
