package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpd/mcpd/internal/language/uritemplate"
)

// A form is made from a schema and a value, and a posted form is decoded into a value by the same
// schema. Inputs are named by the JSON pointer of their value:
//
//	arg/customer/name   the text of a value, or the index of a value of an enumeration
//	len/lines           the number of entries of a list
//	choice/target       the index of an alternative
//
// A value is decoded JSON with json.Number, or invalidText that was typed where it does not fit.
//
// A field shows characters that cannot be seen as escapes, such as \u{202E}, and a hidden field named
// escaped has its name. So a person sees them, and the value comes back as it was: browsers change
// some of these characters, and the filter of pages all of them.

// invalidText is typed text that is no value of its field.
type invalidText string

// form is a form in a page.
type form struct {
	Scope  string  // the prefix of the names of its inputs
	Raw    bool    // the arguments are typed as JSON
	Text   string  // the JSON if so
	Error  string  // of the JSON, or of the URI of a template
	Only   bool    // the schema has no form
	Large  bool    // because it has too many fields
	Fields []field // of the object
}

// field is a field of a form.
type field struct {
	Scope    string // as of the form
	Pointer  string // of the value
	Label    string
	Text     string // description
	Hints    []string
	Required bool
	Error    string
	// Widget is line, area, number, select, json, object, list or choice.
	Widget  string
	Value   string
	Options []fieldOption
	Fields  []field // of an object, the entries of a list, or the chosen alternative
	Entry   bool    // is an entry of a list
	// Complete is the path that completes the value; "" for none.
	Complete string
}

// fieldOption is an option of a select.
type fieldOption struct {
	Value, Name string
	Selected    bool
}

// ID is the id of the element of a field.
func (f field) ID() string { return "f" + url.QueryEscape(f.Scope+f.Pointer) }

// pointed returns the pointer of a member. Characters that cannot be seen are ~uHEX; in it.
func pointed(pointer, name string) string {
	name = strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
	if !hides(name, oneLine) {
		return pointer + "/" + name
	}
	return pointer + "/" + escapeUnseen(name, oneLine, "~u%X;")
}

// memberName returns the name of a member from its part of a pointer.
func memberName(part string) string {
	part = unescapeUnseen(part, "~u", ";")
	return strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
}

// fieldLines is the number of lines that a field may have.
type fieldLines bool

const (
	oneLine  fieldLines = false
	anyLines fieldLines = true
)

// hides reports whether a value of a field needs escapes.
func hides(value string, lines fieldLines) bool {
	return strings.ContainsFunc(value, func(r rune) bool { return unseen(r) || r == '\n' && lines == oneLine })
}

// escapeUnseen replaces the characters of a value that need it, by a format of their numbers.
func escapeUnseen(value string, lines fieldLines, format string) string {
	var b strings.Builder
	for _, r := range value {
		if unseen(r) || r == '\n' && lines == oneLine {
			fmt.Fprintf(&b, format, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// unescapeUnseen replaces each hexadecimal number between two marks by its character.
func unescapeUnseen(text, start, end string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, start)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		const maxDigits = 6
		digits, _, closed := strings.Cut(after[:min(len(after), maxDigits+len(end))], end)
		number, err := strconv.ParseUint(digits, 16, 32)
		if !closed || err != nil {
			b.WriteString(start)
			text = after
			continue
		}
		b.WriteRune(rune(number))
		text = after[len(digits)+len(end):]
	}
}

// fieldText returns the text of a field for its value.
func fieldText(value string, lines fieldLines) string {
	if !hides(value, lines) {
		return value
	}
	return escapeUnseen(strings.ReplaceAll(value, `\`, `\\`), lines, `\u{%X}`)
}

// fieldValue returns the value of a field with escapes for its text.
func fieldValue(text string) string {
	parts := strings.Split(text, `\\`)
	for i, part := range parts {
		parts[i] = unescapeUnseen(part, `\u{`, "}")
	}
	return strings.Join(parts, `\`)
}

// readFields undoes, in a posted form, what a browser does with line ends, and the escapes of fields.
func readFields(posted url.Values) {
	for _, values := range posted {
		for i, text := range values {
			values[i] = strings.ReplaceAll(text, "\r\n", "\n")
		}
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(posted["escaped"]))) {
		for i, text := range posted[name] {
			posted[name][i] = fieldValue(text)
		}
	}
	delete(posted, "escaped")
}

// formOf returns the form of a document, filled in with a value. scope is the prefix of the names of
// its inputs. posted is the form that has the choices; nil if none was posted.
func formOf(scope string, document json.RawMessage, value any, posted url.Values) form {
	b := formBuilder{scope: scope, schemas: newSchemas(document), posted: posted, initial: value == nil}
	top := b.field("", "", document, true, value, 0)
	large := b.size > maxNames || b.count > maxFields
	if top.Widget != "object" && top.Widget != "choice" || large {
		return form{Scope: scope, Raw: true, Only: len(document) > 0, Large: large, Text: textOf(value)}
	}
	if top.Widget == "choice" {
		return form{Scope: scope, Fields: []field{top}}
	}
	return form{Scope: scope, Fields: top.Fields}
}

// rawForm returns a form for JSON.
func rawForm(text, problem string) form { return form{Raw: true, Text: text, Error: problem} }

// expand returns the URI of a template for the variables in the form. Variables that are left empty have
// no value.
func (f form) expand(template string) (string, error) {
	t, err := uritemplate.Parse(template)
	if err != nil {
		return "", fmt.Errorf("the template is not supported: %w", err)
	}
	values := map[string]string{}
	if f.Raw && json.Unmarshal([]byte(f.Text), &values) != nil {
		return "", errors.New("the value of each variable must be a string")
	}
	for _, variable := range f.Fields {
		if variable.Value != "" {
			values[variable.Label] = variable.Value
		}
	}
	for name := range values {
		if !slices.Contains(t.Names(), name) {
			return "", fmt.Errorf("the template has no variable %q", cut(name, maxName))
		}
	}
	return t.Expand(values)
}

// textOf returns a value as JSON for people; {} without one.
func textOf(value any) string {
	if value == nil {
		return "{}"
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		return "{}" // cannot happen: it is decoded JSON
	}
	return prettyJSON(encoded)
}

type formBuilder struct {
	schemas
	scope   string
	posted  url.Values
	initial bool // use the defaults of the schema
	count   int
	size    int // of the names of all inputs
}

// maxNames bounds the names of all inputs of a form, and maxOptions the values of an enumeration.
const (
	maxNames   = 64 << 10
	maxOptions = 500
)

// hasFields reports whether a form can show an object: its schema names members, or permits none.
func hasFields(s schema, j json.RawMessage) bool { return s.Properties != nil || isClosed(j) }

// isClosed reports whether the schema of an object permits no other members.
func isClosed(j json.RawMessage) bool {
	var s struct{ AdditionalProperties json.RawMessage }
	return json.Unmarshal(j, &s) == nil && string(s.AdditionalProperties) == "false"
}

// field returns the field of a schema for a value.
func (b *formBuilder) field(pointer, label string, j json.RawMessage, required bool, value any, depth int) field {
	s := b.parse(j)
	b.count++
	if b.size += len(pointer); b.count > maxFields || depth > maxDepth || b.size > maxNames {
		return field{Scope: b.scope, Pointer: pointer, Label: label, Widget: "json", Required: required}
	}
	if value == nil && b.initial && s.Default != nil && len(s.Default) <= maxText {
		value = decodeJSON(s.Default)
	}
	f := field{Scope: b.scope, Pointer: pointer, Label: label, Text: s.Description, Hints: s.hints(), Required: required}
	if f.Text == "" {
		f.Text = s.Title
	}
	if bad, ok := value.(invalidText); ok {
		f.Value, f.Error = string(bad), "This text is not valid JSON."
		if kind := s.kind(); kind == "number" || kind == "integer" {
			f.Error = "This text is not a number."
		}
	}
	if values, names := b.values(s); values != nil {
		return f.enumeration(values, names, value)
	}
	if branches := s.branches(); branches != nil {
		f.Widget = "choice"
		at := b.chosen(pointer, s, branches, value)
		for i, branch := range branches {
			name := b.parse(branch).Title
			if name == "" {
				name = fmt.Sprintf("choice %d", i+1)
				if kind := b.parse(branch).kind(); kind != "" {
					name += ": " + kind
				}
			}
			f.Options = append(f.Options, fieldOption{strconv.Itoa(i), name, i == at})
		}
		f.Fields = []field{b.field(pointer, "", b.merge(s, branches[at]), required, value, depth+1)}
		return f
	}
	switch s.kind() {
	case "object":
		if !hasFields(s, j) {
			break
		}
		f.Widget = "object"
		object, _ := value.(map[string]any)
		if !required && value == nil { // the defaults of its members would make it present
			defer func(initial bool) { b.initial = initial }(b.initial)
			b.initial = false
		}
		isRequired := s.required()
		for _, p := range s.Properties {
			if b.count > maxFields {
				break
			}
			f.Fields = append(f.Fields, b.field(pointed(pointer, p.Name), p.Name, p.Value, isRequired[p.Name], object[p.Name], depth+1))
		}
		return f
	case "array":
		if !isObject(s.Items) {
			break
		}
		f.Widget = "list"
		list, _ := value.([]any)
		for i, entry := range list {
			if b.count > maxFields {
				break
			}
			e := b.field(pointed(pointer, strconv.Itoa(i)), fmt.Sprintf("%s %d", label, i+1), s.Items, true, entry, depth+1)
			e.Entry = true
			f.Fields = append(f.Fields, e)
		}
		return f
	case "string":
		if text, ok := value.(string); ok {
			f.Value = text
		}
		f.Widget = "line"
		if s.MaxLength == nil && s.Format == "" || s.MaxLength != nil && *s.MaxLength > 200 || strings.Contains(f.Value, "\n") {
			f.Widget = "area"
		}
		return f
	case "number", "integer":
		if number, ok := value.(json.Number); ok {
			f.Value = number.String()
		}
		f.Widget = "number"
		return f
	case "boolean":
		return f.enumeration([]json.RawMessage{[]byte("true"), []byte("false")}, []string{"true", "false"}, value)
	}
	f.Widget = "json"
	if _, bad := value.(invalidText); !bad && value != nil {
		f.Value = textOf(value)
	}
	return f
}

// enumeration makes a field a select of values.
func (f field) enumeration(values []json.RawMessage, names []string, value any) field {
	f.Widget = "select"
	for i, v := range values {
		f.Options = append(f.Options, fieldOption{strconv.Itoa(i), names[i], value != nil && sameJSON(value, v)})
	}
	return f
}

// chosen returns the index of the alternative of a value: the posted one, or the first that fits.
func (b *formBuilder) chosen(pointer string, s schema, branches []json.RawMessage, value any) int {
	if at, err := strconv.Atoi(b.posted.Get("choice" + pointer)); err == nil && at >= 0 && at < len(branches) {
		return at
	}
	for i, branch := range branches {
		if value != nil && b.fits(b.fill(b.parse(branch), s), value) {
			return i
		}
	}
	return 0
}

// fits reports whether a value may be one of a schema, by its type and constant members.
func (b *formBuilder) fits(s schema, value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for _, p := range s.Properties {
			if member, ok := v[p.Name]; ok {
				if values, _ := b.values(b.parse(p.Value)); values != nil && !slices.ContainsFunc(values, func(j json.RawMessage) bool { return sameJSON(member, j) }) {
					return false
				}
			}
		}
		known := 0
		for _, p := range s.Properties {
			if _, ok := v[p.Name]; ok {
				known++
			}
		}
		if known < len(v) && !s.Properties.isCut() {
			return false
		}
		return s.kind() == "object"
	case []any:
		return s.kind() == "array"
	case string:
		return s.kind() == "string"
	case json.Number:
		return s.kind() == "number" || s.kind() == "integer"
	case bool:
		return s.kind() == "boolean"
	}
	return false
}
