// Package redact takes values that nobody may see out of what somebody is
// about to see.
//
// [Pointers] and [Text.HideJSON] take them out of JSON, of which they change no
// other byte; a [Text] takes them out of what a script writes, and [NewHandler]
// out of every record of a log, by what a [Redactor] knows. Which values are sensitive
// is for the caller to say: nothing is guessed here.
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

// shortest is the length in bytes of the shortest value that is looked for in
// text: shorter ones would be found everywhere.
const shortest = 4

// mostWork bounds what is looked for in one text, in bytes times values: what is hidden is
// hidden for callers who choose both, and nothing interrupts it.
const mostWork = 16 << 20

// Text hides sensitive values in text that a script writes, such as the
// message of an error. The zero Text hides nothing.
type Text struct{ values []string }

// NewText returns a Text that hides what the JSON pointers point at in a value.
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

// Hides reports whether there is any value to hide.
func (t Text) Hides() bool { return len(t.values) > 0 }

// And returns a Text that hides what either of the two hides.
func (t Text) And(other Text) Text {
	switch {
	case len(other.values) == 0:
		return t
	case len(t.values) == 0:
		return other
	}
	return Text{slices.Concat(t.values, other.values)}.sorted()
}

// sorted puts the longest first, so that no part of a value is left over, and each once.
func (t Text) sorted() Text {
	slices.SortFunc(t.values, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	t.values = slices.Compact(t.values)
	return t
}

// collect adds the scalars at and below the place that steps lead to.
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
		return
	}
	t.values = append(t.values, text)
	// Scripts write values into texts as JSON too.
	quoted, _ := jsontext.Marshal(text) // a string always encodes
	inner := string(quoted[1 : len(quoted)-1])
	t.values = append(t.values, inner, Stringified(inner))
}

// separators are what Go escapes in JSON and JavaScript does not (ECMA-262 section 25.5.2.3).
var separators = strings.NewReplacer(`\u2028`, "\u2028", `\u2029`, "\u2029")

// Stringified returns what stands between the quotes of a JSON text, as Go writes it, in the
// way of JSON.stringify.
func Stringified(inner string) string { return separators.Replace(inner) }

// Hide replaces every sensitive value in text by [Mark], and what the other nets find by
// theirs, as [Over] does. It does not look into marks: callers choose values, and each that
// is a part of one would make more of them. A long text is hidden whole where there are very
// many values.
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

// isTooMuch reports whether so many bytes are not looked through for all values.
func (t Text) isTooMuch(bytes int) bool { return len(t.values) > 1 && bytes > mostWork/len(t.values) }

// Span is a part of a text that is hidden, from one byte up to another, and what is shown
// in its place.
type Span struct {
	From, To int
	Mark     string
}

// Net finds values in texts.
type Net interface {
	// Find appends a span for each place of a text where a value stands. Spans may overlap.
	Find(spans []Span, text string) []Span
	// Longest is the length in bytes of the longest value that is found; 0 where none is.
	Longest() int
}

// Over returns a text with marks in the place of all that the nets find in it. All look at
// the text as it was: what one hides, which a caller may have chosen, is no cover for a part
// of what another one finds. Of values that overlap the first has its mark there. The end of
// a text that was cut goes, as it may be the first part of a value. A text in which nothing
// is found is returned as it is.
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
	from := 0 // where what was cut begins
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

// cover returns a text with marks in the place of spans, which it puts in order.
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
