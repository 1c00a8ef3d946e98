// Package redact removes sensitive values from output.
//
// [Pointers] and [Text.HideJSON] redact JSON and change no other byte. A [Text] redacts
// the output of scripts, and [NewHandler] redacts log records with a [Redactor]. The caller
// decides which values are sensitive; the package does not guess.
package redact

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/internal/base/jsontext"
	"github.com/mcpd/mcpd/internal/base/truncate"
)

// shortest is the minimum length in bytes of a value to search for in text: shorter
// ones would match everywhere.
const shortest = 4

// mostWork bounds the work for one text, in bytes times values. Callers can choose
// both, and the search cannot be interrupted.
const mostWork = 16 << 20

// Text redacts sensitive values in the output of a script, such as an error message.
// The zero Text redacts nothing.
type Text struct {
	values []string
	// short is set if a value is not searched; nil if that does not matter.
	short *bool
}

// NewText returns a Text that redacts the values at the JSON pointers of raw.
func NewText(raw json.RawMessage, pointers []string) Text {
	var t Text
	if len(pointers) == 0 {
		return t
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return t
	}
	for _, pointer := range pointers {
		t.collect(value, steps(pointer))
	}
	return t.sorted()
}

// Hides reports whether there are values to redact.
func (t Text) Hides() bool { return len(t.values) > 0 }

// Values returns the values to redact, in the forms that are searched.
func (t Text) Values() []string { return slices.Clone(t.values) }

// HasShort reports whether a value at the JSON pointers of raw is too short to be searched in
// text, or a boolean.
func HasShort(raw json.RawMessage, pointers []string) bool {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if len(pointers) == 0 || decoder.Decode(&value) != nil {
		return false
	}
	t := Text{short: new(bool)}
	for _, pointer := range pointers {
		t.collect(value, steps(pointer))
	}
	return *t.short
}

// And returns a Text that redacts the values of both.
func (t Text) And(other Text) Text {
	switch {
	case len(other.values) == 0:
		return t
	case len(t.values) == 0:
		return other
	}
	return Text{values: slices.Concat(t.values, other.values)}.sorted()
}

// sorted sorts the values, longest first, without duplicates. So no part of a value
// remains.
func (t Text) sorted() Text {
	slices.SortFunc(t.values, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	t.values = slices.Compact(t.values)
	return t
}

// collect adds the scalars at and below the position of steps.
func (t *Text) collect(value any, steps []string) {
	switch value := value.(type) {
	case map[string]any:
		for key, member := range value {
			if len(steps) == 0 {
				t.collect(member, nil)
			} else if steps[0] == "*" || steps[0] == key {
				t.collect(member, steps[1:])
			}
		}
	case []any:
		for _, item := range value {
			t.collect(item, steps[min(1, len(steps)):])
		}
	default:
		if len(steps) == 0 {
			t.add(value)
		}
	}
}

func (t *Text) add(value any) {
	text, ok := value.(string)
	if number, isNumber := value.(json.Number); isNumber {
		text, ok = number.String(), true
	}
	if !ok || len(text) < shortest {
		if t.short != nil && value != nil && value != "" {
			*t.short = true
		}
		return
	}
	t.values = append(t.values, text)
	// Scripts also write values into strings as JSON.
	quoted, _ := jsontext.Marshal(text) // a string always encodes
	inner := string(quoted[1 : len(quoted)-1])
	t.values = append(t.values, inner, Stringified(inner))
}

// separators replaces escapes that Go writes in JSON and JavaScript does not (ECMA-262
// section 25.5.2.3).
var separators = strings.NewReplacer(`\u2028`, "\u2028", `\u2029`, "\u2029")

// Stringified converts the content of a JSON string from Go's escapes to the escapes of
// JSON.stringify.
func Stringified(inner string) string { return separators.Replace(inner) }

// Hide replaces every sensitive value in text by [Mark], and the matches of the other
// nets by their placeholders, like [Over]. It does not search in placeholders: callers
// could choose values that are part of one. A long text is replaced completely if there
// are very many values.
func (t Text) Hide(text string, others ...Net) string {
	if !t.Hides() {
		return Over(text, others...)
	}
	return Over(text, append(slices.Clip(others), t)...)
}

// Find implements [Net].
func (t Text) Find(spans []Span, text string) []Span {
	if t.isTooMuch(len(text)) {
		return append(spans, Span{To: len(text), Mark: Mark})
	}
	for _, value := range t.values {
		for from := 0; ; {
			at := strings.Index(text[from:], value)
			if at < 0 {
				break
			}
			spans = append(spans, Span{From: from + at, To: from + at + len(value), Mark: Mark})
			from += at + len(value)
		}
	}
	return spans
}

// Longest implements [Net].
func (t Text) Longest() int {
	if !t.Hides() {
		return 0
	}
	return len(t.values[0])
}

// isTooMuch reports whether the work for a text of this length exceeds the bound.
func (t Text) isTooMuch(bytes int) bool { return len(t.values) > 1 && bytes > mostWork/len(t.values) }

// Span is a redacted range of bytes in a text, with its placeholder.
type Span struct {
	From, To int
	Mark     string
}

// Net finds values in texts.
type Net interface {
	// Find appends a span for each match in the text. Spans may overlap.
	Find(spans []Span, text string) []Span
	// Longest is the length in bytes of the longest value, 0 without values.
	Longest() int
}

// Over returns the text with placeholders for all matches of the nets. All nets search
// the original text, so that a match of one, which a caller may have chosen, does not
// cover part of another. Overlapping matches get the placeholder of the first. The end
// of a truncated text is removed, because it may be the start of a value. A text
// without matches is returned unchanged.
func Over(text string, nets ...Net) string {
	longest := 0
	for _, net := range nets {
		longest = max(longest, net.Longest())
	}
	if longest == 0 {
		return text
	}
	var spans []Span
	for _, net := range nets {
		spans = net.Find(spans, text)
	}
	from := 0 // start of the removed end
	for begins, ends, cut := truncate.Next(text, 0); cut; begins, ends, cut = truncate.Next(text, ends) {
		torn := truncate.Start(text[:begins], max(from, begins-longest+1))
		spans = append(spans, Span{From: len(torn), To: begins})
		from = ends
	}
	if len(spans) == 0 {
		return text
	}
	return cover(text, spans)
}

// cover returns a text with placeholders for spans. It sorts spans.
func cover(text string, spans []Span) string {
	var shown strings.Builder
	slices.SortStableFunc(spans, func(a, b Span) int { return cmp.Or(a.From-b.From, b.To-a.To) })
	from := 0
	for i := 0; i < len(spans); {
		at := spans[i]
		for i++; i < len(spans) && spans[i].From < at.To; i++ {
			at.To = max(at.To, spans[i].To)
		}
		shown.WriteString(text[from:at.From])
		shown.WriteString(at.Mark)
		from = at.To
	}
	shown.WriteString(text[from:])
	return shown.String()
}
