package toolprompt

import (
	"encoding/json"
	"math"
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The limits of generated values.
const (
	maxSampled     = 32 // values
	maxSampleDepth = 4
	maxSampleText  = 60 // bytes
	maxSampleItems = 3
)

// sampler generates values that match a schema.
type sampler struct {
	doc  *document
	left int
	// uncertain means that the schema has keywords that the sampler ignores.
	uncertain bool
}

// protoName is a name that is no member in an object literal.
const protoName = "__proto__"

// sampled is a value, as JSON and as code.
type sampled struct{ json, code string }

// uncertainKeywords may reject a generated value.
var uncertainKeywords = []string{
	"allOf", "not", "if", "dependentSchemas", "dependentRequired", "dependencies", "propertyNames", "contains", "patternProperties",
	"unevaluatedProperties", "unevaluatedItems", "minProperties", "maxProperties", "uniqueItems",
}

func (s *sampler) value(n *node, name string, depth int) (v sampled, ok bool) {
	if s.left--; s.left < 0 || depth > maxSampleDepth {
		return v, false
	}
	if n.kind != objectKind {
		return text("value"), n.kind != falseKind
	}
	for _, keyword := range uncertainKeywords {
		s.uncertain = s.uncertain || n.member(keyword) != nil
	}
	if value := n.member("const"); value != nil {
		return literalOf(value, 0)
	}
	if values := n.memberOfKind(listKind, "enum"); values != nil {
		return firstLiteral(values.items)
	}
	for _, keyword := range [...]string{"examples", "default", "example"} {
		value := n.member(keyword)
		if value == nil || value.kind == nullKind {
			continue
		}
		candidates := []node{*value}
		if keyword == "examples" {
			candidates = value.items
		}
		if v, ok := firstLiteral(candidates); ok {
			s.uncertain = true // it may not match the schema
			return v, true
		}
	}
	if ref, is := reference(n); is {
		target := s.doc.resolve(ref)
		if target == nil {
			return v, false
		}
		return s.value(target, name, depth+1)
	}
	for _, keyword := range [...]string{"anyOf", "oneOf"} {
		list := n.memberOfKind(listKind, keyword)
		if list == nil {
			continue
		}
		s.uncertain = s.uncertain || keyword == "oneOf" || len(typesOf(n)) > 0
		for i := range list.items[:min(len(list.items), maxSampleItems)] {
			if v, ok := s.value(&list.items[i], name, depth+1); ok {
				return v, true
			}
		}
		return v, false
	}
	return s.typedValue(n, name, depth)
}

// typedValue generates a value of the first type that a schema allows.
func (s *sampler) typedValue(n *node, name string, depth int) (v sampled, ok bool) {
	types := typesOf(n)
	if len(types) == 0 {
		s.uncertain = true
		types = []string{"string"}
	}
	switch types[0] {
	case "string":
		return s.text(n, name)
	case "integer", "number":
		return number(n, types[0] == "integer")
	case "boolean":
		return sampled{"true", "true"}, true
	case "array":
		return s.list(n, name, depth)
	case "object":
		return s.object(n, depth)
	case "null":
		if len(types) == 1 {
			return sampled{"null", "null"}, true
		}
		rest := *n
		rest.names, rest.items, rest.indexes = []string{"type"}, []node{{kind: textKind, text: types[1]}}, nil
		s.uncertain = true
		return s.typedValue(&rest, name, depth+1)
	}
	return v, false
}

// object generates an object with the required members.
func (s *sampler) object(n *node, depth int) (v sampled, ok bool) {
	for _, keyword := range append(uncertainKeywords, "anyOf", "oneOf", "$ref") {
		s.uncertain = s.uncertain || n.member(keyword) != nil
	}
	properties, required := n.memberOfKind(objectKind, "properties"), n.memberOfKind(listKind, "required")
	if required == nil {
		return sampled{"{}", "{}"}, true
	}
	var asJSON, asCode []string
	seen := map[string]bool{}
	for i := range required.items {
		name := required.items[i].text
		if seen[name] || required.items[i].kind != textKind {
			continue
		}
		seen[name] = true
		if name == protoName {
			return v, false
		}
		var schema node
		if properties != nil && properties.member(name) != nil {
			schema = *properties.member(name)
		} else {
			s.uncertain = true
		}
		member, ok := s.value(&schema, name, depth+1)
		if !ok {
			return v, false
		}
		asJSON, asCode = append(asJSON, text(name).json+":"+member.json), append(asCode, propertyKey(name)+": "+member.code)
	}
	if len(asCode) == 0 {
		return sampled{"{}", "{}"}, true
	}
	return sampled{"{" + strings.Join(asJSON, ",") + "}", "{ " + strings.Join(asCode, ", ") + " }"}, true
}

// list generates a list with the minimum number of items, but with one if possible.
func (s *sampler) list(n *node, name string, depth int) (v sampled, ok bool) {
	least, most := max(1, count(n, "minItems", 0)), count(n, "maxItems", maxSampleItems)
	if least > maxSampleItems {
		return v, false
	}
	prefix := n.memberOfKind(listKind, "prefixItems")
	var asJSON, asCode []string
	for i := range min(least, most) {
		item := n.member("items")
		if prefix != nil && i < len(prefix.items) {
			item = &prefix.items[i]
		}
		if item == nil {
			item = &node{}
			s.uncertain = true
		}
		v, ok := s.value(item, strings.TrimSuffix(name, "s"), depth+1)
		if !ok && i == 0 && count(n, "minItems", 0) == 0 {
			break
		}
		if !ok {
			return v, false
		}
		asJSON, asCode = append(asJSON, v.json), append(asCode, v.code)
	}
	return sampled{"[" + strings.Join(asJSON, ",") + "]", "[" + strings.Join(asCode, ", ") + "]"}, true
}

// count returns an integer member, or a default.
func count(n *node, name string, without int) int {
	if m := n.memberOfKind(numberKind, name); m != nil {
		if f, err := strconv.ParseFloat(m.raw, 64); err == nil && f >= 0 && f < math.MaxInt32 {
			return int(f)
		}
	}
	return without
}

func number(n *node, whole bool) (v sampled, ok bool) {
	bound := func(name string) (float64, bool) {
		m := n.memberOfKind(numberKind, name)
		if m == nil {
			return 0, false
		}
		f, err := strconv.ParseFloat(m.raw, 64)
		return f, err == nil
	}
	least, hasLeast := bound("minimum")
	above, hasAbove := bound("exclusiveMinimum")
	most, hasMost := bound("maximum")
	below, hasBelow := bound("exclusiveMaximum")
	step, hasStep := bound("multipleOf")
	candidates := []float64{5, 1, 10, 0, least, math.Floor(above) + 1, most, math.Ceil(below) - 1, (above + below) / 2, step}
	if hasStep && step > 0 {
		candidates = append(candidates, step*math.Ceil(max(least, above)/step), step*(math.Floor(above/step)+1))
	}
	for _, f := range candidates {
		switch {
		case hasLeast && f < least, hasAbove && f <= above, hasMost && f > most, hasBelow && f >= below:
		case whole && f != math.Trunc(f), hasStep && (step <= 0 || f/step != math.Trunc(f/step)), math.Abs(f) > 1<<53:
		default:
			text := strconv.FormatFloat(f, 'f', -1, 64)
			return sampled{text, text}, true
		}
	}
	return v, false
}

func (s *sampler) text(n *node, name string) (v sampled, ok bool) {
	candidates := typicalTexts(n.stringMember("format"), strings.ToLower(name))
	pattern := n.memberOfKind(textKind, "pattern")
	var fits *regexp.Regexp
	if pattern != nil {
		if len(pattern.text) > maxLiteral {
			return v, false
		}
		var err error
		if fits, err = regexp.Compile(pattern.text); err != nil {
			return v, false
		}
		if parsed, err := syntax.Parse(pattern.text, syntax.Perl); err == nil {
			var b strings.Builder
			if writeMatch(&b, parsed, 0) {
				candidates = append(candidates, b.String())
			}
		}
	}
	least, most := count(n, "minLength", 0), count(n, "maxLength", math.MaxInt32)
	candidates = append(candidates, strings.Repeat("x", min(max(least, 1), maxSampleText)), "")
	for _, c := range candidates {
		length := utf8.RuneCountInString(c)
		if length >= least && length <= most && len(c) <= maxSampleText && (fits == nil || fits.MatchString(c)) {
			return text(c), true
		}
	}
	return v, false
}

// typicalTexts returns typical texts for a member, by format and name.
func typicalTexts(format, name string) []string {
	switch format {
	case "date-time":
		return []string{"2025-01-31T09:30:00Z"}
	case "date":
		return []string{"2025-01-31"}
	case "time":
		return []string{"09:30:00Z"}
	case "duration":
		return []string{"PT1H"}
	case "email", "idn-email":
		return []string{"ada@example.com"}
	case "uri", "iri", "uri-reference", "url":
		return []string{"https://example.com/"}
	case "uuid":
		return []string{"123e4567-e89b-12d3-a456-426614174000"}
	case "hostname", "idn-hostname":
		return []string{"example.com"}
	case "ipv4":
		return []string{"192.0.2.1"}
	case "ipv6":
		return []string{"2001:db8::1"}
	case "":
	default:
		return nil
	}
	for _, known := range []struct{ names, value string }{
		{"query search keyword question topic", "python async"}, {"path file", "/workspace/config.json"}, {"url uri link", "https://example.com/"},
		{"email mail", "ada@example.com"}, {"city location place", "Paris"}, {"country", "FR"}, {"currency", "EUR"}, {"language lang locale", "en"},
		{"datetime timestamp", "2025-01-31T09:30:00Z"}, {"date day", "2025-01-31"}, {"id key number code", "1"}, {"name user title", "Ada"}, {"text message content body", "Hello"},
	} {
		for part := range strings.FieldsSeq(known.names) {
			if name == part || strings.HasSuffix(name, "_"+part) || strings.HasSuffix(name, "-"+part) {
				return []string{known.value, "value"}
			}
		}
	}
	return []string{"value"}
}

// writeMatch writes a short text that matches a pattern, or returns false if it cannot. Its
// recursion is bounded by the nesting of parsed patterns.
func writeMatch(b *strings.Builder, r *syntax.Regexp, depth int) bool {
	if depth > maxNesting || b.Len() > maxSampleText {
		return false
	}
	switch r.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpStar, syntax.OpQuest, syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return true
	case syntax.OpLiteral:
		b.WriteString(string(r.Rune))
		return true
	case syntax.OpCharClass:
		return writeClassRune(b, r.Rune)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		b.WriteByte('a')
		return true
	case syntax.OpCapture, syntax.OpPlus, syntax.OpAlternate:
		return writeMatch(b, r.Sub[0], depth+1)
	case syntax.OpConcat:
		for _, sub := range r.Sub {
			if !writeMatch(b, sub, depth+1) {
				return false
			}
		}
		return true
	case syntax.OpRepeat:
		for range r.Min {
			if !writeMatch(b, r.Sub[0], depth+1) {
				return false
			}
		}
		return true
	}
	return false
}

// writeClassRune writes a visible character of a class, preferably a common one.
func writeClassRune(b *strings.Builder, pairs []rune) bool {
	for _, want := range "1aA-_ " {
		for i := 0; i+1 < len(pairs); i += 2 {
			if pairs[i] <= want && want <= pairs[i+1] {
				b.WriteRune(want)
				return true
			}
		}
	}
	if len(pairs) == 0 || !isVisible(pairs[0]) {
		return false
	}
	b.WriteRune(pairs[0])
	return true
}

func text(value string) sampled {
	encoded, _ := json.Marshal(value) // text always encodes
	return sampled{string(encoded), quote(value)}
}

// firstLiteral returns the first value that can be in an example.
func firstLiteral(values []node) (v sampled, ok bool) {
	for i := range values[:min(len(values), maxSampleItems)] {
		if v, ok := literalOf(&values[i], 0); ok {
			return v, true
		}
	}
	return v, false
}

// literalOf returns a value of a schema as an example. It rejects long texts, and texts with
// line breaks or invisible characters.
func literalOf(n *node, depth int) (v sampled, ok bool) {
	if depth > maxSampleDepth || len(n.raw) > maxCall {
		return v, false
	}
	switch n.kind {
	case nullKind, trueKind, falseKind, numberKind:
		return sampled{n.raw, n.raw}, true
	case textKind:
		if len(n.text) > maxSampleText || strings.ContainsFunc(n.text, func(r rune) bool { return !isVisible(r) }) {
			return v, false
		}
		return text(n.text), true
	case listKind, objectKind:
		var asJSON, asCode []string
		for i := range n.items {
			item, ok := literalOf(&n.items[i], depth+1)
			if !ok || n.kind == objectKind && n.names[i] == protoName {
				return v, false
			}
			if n.kind == objectKind {
				item = sampled{text(n.names[i]).json + ":" + item.json, propertyKey(n.names[i]) + ": " + item.code}
			}
			asJSON, asCode = append(asJSON, item.json), append(asCode, item.code)
		}
		if n.kind == listKind {
			return sampled{"[" + strings.Join(asJSON, ",") + "]", "[" + strings.Join(asCode, ", ") + "]"}, true
		}
		return sampled{"{" + strings.Join(asJSON, ",") + "}", "{ " + strings.Join(asCode, ", ") + " }"}, true
	}
	return v, false
}
