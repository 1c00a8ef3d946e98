package redact

import (
	"cmp"
	"slices"
	"strings"

	"github.com/mcpd/mcpd/internal/base/truncate"
)

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
