package secrets

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"math/bits"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/mcpd/mcpd/internal/base/redact"
)

// Redact returns text with "[secret:name]" in place of each value that was resolved, or that a
// variable or file holds. Values of six bytes and more are found through any nesting of JSON,
// script, URL and HTML escapes, in any case, in base64 at any position of a longer text, in
// hexadecimal and in quoted-printable, even across line breaks; docs/reference/configuration.md
// lists the forms. Of values of four and five bytes the usual forms are found. Shorter values
// are not replaced. Text without values is returned unchanged, except that the end of truncated
// text is redacted if it may be part of a value.
func (s *Store) Redact(text string) string { return s.currentRedactor().redact(text) }

// Matcher returns a matcher for the values that [Store.Redact] replaces, to combine it with
// others.
func (s *Store) Matcher() redact.Net { return s.currentRedactor() }

// RedactBytes is [Store.Redact] for bytes that were not truncated. It returns b itself if there
// is nothing to replace, and never modifies it.
func (s *Store) RedactBytes(b []byte) []byte {
	r := s.currentRedactor()
	return r.replace(b, find(r, b))
}

// RedactJSON is [Store.RedactBytes] for a JSON value. The result is JSON: a number that
// contains a value becomes a string. It returns nil for nil, and for invalid JSON that holds a
// value.
func (s *Store) RedactJSON(raw json.RawMessage) json.RawMessage {
	r := s.currentRedactor()
	shown := s.RedactBytes(raw)
	if len(raw) == 0 || len(shown) == len(raw) && &shown[0] == &raw[0] || json.Valid(shown) {
		return shown
	}
	return r.redactJSON(raw)
}

// NewSensitive returns a matcher that finds sensitive values in the same forms as secrets.
func NewSensitive(values []string) redact.Net {
	forms := make([]secretForms, len(values))
	for i, value := range values {
		forms[i] = newSecretForms(value)
	}
	r := newRedactor(map[string][]secretForms{"": forms})
	r.placeholders[0] = redact.Mark
	return r
}

// redactJSON redacts a JSON value, number by number and string by string.
func (r *redactor) redactJSON(raw json.RawMessage) json.RawMessage {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	if decoder.Decode(&value) != nil {
		return nil
	}
	// Decoded JSON always encodes.
	shown, _ := json.Marshal(r.redactValue(value))
	return shown
}

func (r *redactor) redactValue(value any) any {
	switch value := value.(type) {
	case map[string]any:
		shown := make(map[string]any, len(value))
		for name, member := range value {
			shown[r.redact(name)] = r.redactValue(member)
		}
		return shown
	case []any:
		for i := range value {
			value[i] = r.redactValue(value[i])
		}
		return value
	case string:
		return r.redact(value)
	case json.Number:
		if shown := r.redact(value.String()); shown != value.String() {
			return shown
		}
	}
	return value
}

// redactor replaces the values of secrets. It is immutable. It scans a text once or twice,
// regardless of the number and content of the values.
type redactor struct {
	// exact finds forms in the original text, decoded in its canonical form.
	exact, decoded *matcher
	// literal reports whether some values are only found by exact.
	literal bool
	// placeholders are the replacements, by number.
	placeholders []string
	// maxLen is the length of the longest exact form.
	maxLen  int
	scratch sync.Pool // of *scratch
}

// scratch is reusable memory for one text.
type scratch struct {
	text canonical
	sums []uint64
	hits []uint32
}

// maxReusedText is the largest text, in bytes, that returns its memory to the pool.
const maxReusedText = 256 << 10

// form is an encoded form of a value: its first four bytes, its length and its hash. filter is
// the result of [filterOf].
type form struct {
	key
	filter uint64
}

type key struct {
	head uint32
	size int
	sum  uint64
}

// secretForms is a value with its forms. They are stored because each new value needs a new
// redactor.
type secretForms struct {
	value          string
	exact, decoded []form
	// maxLen is the length of the longest exact form.
	maxLen int
	// literal reports whether the value itself is not among the decoded forms.
	literal bool
}

// newSecretForms computes the forms of a value, without duplicates.
func newSecretForms(value string) secretForms {
	c := secretForms{value: value}
	for _, text := range exactForms(value) {
		if len(text) >= minFormLen {
			c.exact = append(c.exact, formOf(text))
			c.maxLen = max(c.maxLen, len(text))
		}
	}
	c.literal = len(c.exact) > 0 && (len(value) < minDecodedLen || len(canonicalOf(value)) < minFormLen)
	for _, text := range decodedForms(value) {
		if text = canonicalOf(text); len(text) >= minFormLen {
			c.decoded = append(c.decoded, formOf(text))
		}
	}
	return c
}

func newRedactor(values map[string][]secretForms) *redactor {
	r := &redactor{exact: newMatcher(), decoded: newMatcher()}
	r.scratch.New = func() any { return new(scratch) }
	for _, name := range slices.Sorted(maps.Keys(values)) {
		for _, value := range values[name] {
			for _, f := range value.exact {
				r.exact.add(f, len(r.placeholders))
			}
			for _, f := range value.decoded {
				r.decoded.add(f, len(r.placeholders))
			}
			r.literal = r.literal || value.literal
			r.maxLen = max(r.maxLen, value.maxLen)
		}
		r.placeholders = append(r.placeholders, placeholder(name))
	}
	r.exact.sort()
	r.decoded.sort()
	return r
}

// A Bloom filter with 1<<bloomBits bits rejects most positions where no form starts.
const (
	bloomBits  = 16
	bloomWords = 1 << bloomBits / 64
)

// matcher finds forms in a text. It looks up candidates by their first four bytes and compares
// rolling hashes. The cost at one position does not depend on the length of the forms.
type matcher struct {
	bloom [bloomWords]uint64 // a bit for each hash of a head
	// sizes are the lengths of the forms with the same head, longest first.
	sizes map[uint32][]size
	marks map[key]int
}

// size is a length of forms, and the hash factor for that length. filter combines the bits of
// all of them.
type size struct {
	bytes  int
	power  uint64
	filter uint64
}

// filterOf returns a bit for the four bytes after the head, or all bits at the end of the text.
// If many forms have the same head, it avoids most hash computations.
func filterOf[T string | []byte](text T, at int) uint64 {
	if at+2*minFormLen > len(text) {
		return ^uint64(0)
	}
	return 1 << (hashOf(headOf(text, at+minFormLen)) % 64)
}

func newMatcher() *matcher { return &matcher{sizes: map[uint32][]size{}, marks: map[key]int{}} }

// add adds a form. If values share a form, the first one keeps it.
func (m *matcher) add(f form, mark int) {
	if _, taken := m.marks[f.key]; taken {
		return
	}
	m.marks[f.key] = mark
	bit := hashOf(f.head)
	m.bloom[bit/64] |= 1 << (bit % 64)
	sizes := m.sizes[f.head]
	if i := slices.IndexFunc(sizes, func(s size) bool { return s.bytes == f.size }); i >= 0 {
		sizes[i].filter |= f.filter
		return
	}
	m.sizes[f.head] = append(sizes, size{f.size, powerOf(f.size), f.filter})
}

func (m *matcher) sort() {
	for _, sizes := range m.sizes {
		slices.SortFunc(sizes, func(a, b size) int { return cmp.Compare(b.bytes, a.bytes) })
	}
}

// hashOf returns the Bloom filter bit of four bytes, by Fibonacci hashing.
func hashOf(head uint32) uint32 { return head * 2654435769 >> (32 - bloomBits) }

// mayMatch reports whether a form may start with these four bytes.
func (m *matcher) mayMatch(head uint32) bool {
	bit := hashOf(head)
	return m.bloom[bit/64]&(1<<(bit%64)) != 0
}

func headOf[T string | []byte](text T, at int) uint32 {
	return uint32(text[at]) | uint32(text[at+1])<<8 | uint32(text[at+2])<<16 | uint32(text[at+3])<<24
}

func findHits[T string | []byte](m *matcher, text T, hits []uint32) []uint32 {
	for at := 0; at+minFormLen <= len(text); at++ {
		if head := headOf(text, at); m.mayMatch(head) && m.sizes[head] != nil {
			hits = append(hits, uint32(at))
		}
	}
	return hits
}

// textRange is the position of a value in a text, and the number of its placeholder.
type textRange struct{ from, to, mark uint32 }

// match appends the ranges of the forms at hits, the longest at each. It merges overlapping
// ranges and keeps the first placeholder. span maps a range to the original text.
func match[T string | []byte](m *matcher, s *scratch, text T, hits []uint32, places []textRange, span func(from, to int) (int, int)) []textRange {
	if len(hits) == 0 {
		return places
	}
	s.sums = sumsOf(text, s.sums)
	first := len(places)
	for _, hit := range hits {
		at := int(hit)
		head, filter := headOf(text, at), filterOf(text, at)
		for _, z := range m.sizes[head] {
			if at+z.bytes > len(text) || z.filter&filter == 0 {
				continue
			}
			mark, found := m.marks[key{head, z.bytes, sumOf(text, s.sums, at, z)}]
			if !found {
				continue
			}
			from, to := span(at, at+z.bytes)
			if last := len(places) - 1; last >= first && uint32(from) < places[last].to {
				places[last].to = max(places[last].to, uint32(to))
			} else {
				places = append(places, textRange{uint32(from), uint32(to), uint32(mark)})
			}
			break
		}
	}
	return places
}

// find returns the ranges of values in a text, in order. They may overlap.
func find[T string | []byte](r *redactor, text T) []textRange {
	if len(r.exact.marks) == 0 || len(text) < minFormLen {
		return nil
	}
	clear := isClear(text, r.decoded)
	if clear && !r.literal {
		return nil
	}
	s := r.scratch.Get().(*scratch)
	if len(text) <= maxReusedText {
		defer r.scratch.Put(s)
	}
	var places []textRange
	inCanonical := func() {
		if len(s.text.hits) > 0 {
			s.text.fold()
			places = match(r.decoded, s, s.text.out, s.text.hits, places, s.text.span)
		}
	}
	decoded := false
	if !clear {
		readCanonical(&s.text, text, r.decoded)
		decoded = s.text.decoded
		inCanonical()
	}
	// Without decoded escapes the search is complete. Otherwise, text next to a value may have
	// formed an escape together with it.
	if decoded {
		readFolded(&s.text, text, r.decoded)
		inCanonical()
	}
	if r.literal || decoded {
		s.hits = findHits(r.exact, text, s.hits[:0])
		places = match(r.exact, s, text, s.hits, places, func(from, to int) (int, int) { return from, to })
		slices.SortStableFunc(places, func(a, b textRange) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to)) })
	}
	return places
}

// replace returns a text with values replaced, or the text itself if there are none. Of
// overlapping ranges the first one determines the placeholder, as in [redact.Over].
func (r *redactor) replace(text []byte, places []textRange) []byte {
	if len(places) == 0 {
		return text
	}
	out := make([]byte, 0, len(text))
	last := uint32(0)
	for _, p := range places {
		if p.from >= last {
			out = append(append(out, text[last:p.from]...), r.placeholders[p.mark]...)
		}
		last = max(last, p.to)
	}
	return append(out, text[last:]...)
}

func (r *redactor) Find(spans []redact.Span, text string) []redact.Span {
	for _, p := range find(r, text) {
		spans = append(spans, redact.Span{From: int(p.from), To: int(p.to), Mark: r.placeholders[p.mark]})
	}
	return spans
}

func (r *redactor) Longest() int { return r.maxLen }

func (r *redactor) redact(text string) string { return redact.Over(text, r) }

// Hashes are polynomials modulo a Mersenne prime at a secret random point. This prevents the
// construction of a text with the hash of a form.
const prime = 1<<61 - 1

// sumStride is the distance between stored prefix hashes, in bytes.
const sumStride = 4

var point = rand.Uint64N(prime-256) + 256

func mulMod(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	sum := low&prime + (high<<3 | low>>61)
	if sum >= prime {
		sum -= prime
	}
	return sum
}

func addByte(sum uint64, b byte) uint64 {
	sum = mulMod(sum, point) + uint64(b) + 1
	if sum >= prime {
		sum -= prime
	}
	return sum
}

func powerOf(bytes int) uint64 {
	power, square := uint64(1), point
	for ; bytes > 0; bytes >>= 1 {
		if bytes&1 == 1 {
			power = mulMod(power, square)
		}
		square = mulMod(square, square)
	}
	return power
}

func sumsOf[T string | []byte](text T, sums []uint64) []uint64 {
	sums = slices.Grow(sums[:0], len(text)/sumStride+1)
	sum := uint64(0)
	for i := range len(text) {
		if i%sumStride == 0 {
			sums = append(sums, sum)
		}
		sum = addByte(sum, text[i])
	}
	if len(text)%sumStride == 0 {
		sums = append(sums, sum)
	}
	return sums
}

func prefixSum[T string | []byte](text T, sums []uint64, end int) uint64 {
	sum := sums[end/sumStride]
	for i := end - end%sumStride; i < end; i++ {
		sum = addByte(sum, text[i])
	}
	return sum
}

func sumOf[T string | []byte](text T, sums []uint64, at int, z size) uint64 {
	sum := prefixSum(text, sums, at+z.bytes) + prime - mulMod(prefixSum(text, sums, at), z.power)
	if sum >= prime {
		sum -= prime
	}
	return sum
}

func formOf(text string) form {
	sum := uint64(0)
	for i := range len(text) {
		sum = addByte(sum, text[i])
	}
	return form{key{headOf(text, 0), len(text), sum}, filterOf(text, 0)}
}
