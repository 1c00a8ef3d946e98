package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcpd/mcpd/diag"
)

// Violation is one way in which a value breaks its schema.
type Violation struct {
	// Path is a JSON pointer (RFC 6901) to the part of the value that is
	// wrong, or that is missing; "" is the whole.
	Path string `json:"path"`
	// Message says what is expected there, such as "must be at least 1". It
	// names limits, patterns and choices of the schema and unknown members, cut
	// short, but never repeats a value.
	Message string `json:"message"`
}

// Sentence returns what breaks a schema in one line.
func Sentence(violations []Violation) string {
	places := make([]string, len(violations))
	for i, v := range violations {
		places[i] = strings.TrimPrefix(v.Path+" "+v.Message, " ")
	}
	return strings.Join(places, "; ")
}

// Fits returns why plain data does not fit the schema.
func (s *Schema) Fits(value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode it as JSON: %w", err)
	}
	if violations := s.Value(text); len(violations) > 0 {
		return errors.New(Sentence(violations))
	}
	d := decoder{data: text, path: make(location, 0, usualDepth), numbers: s.numbers, contextual: s.contextual != nil}
	if _, ok := d.document(s.guide); ok && len(d.refused) > 0 {
		return errors.New(Sentence(violations(d.refused)))
	}
	return nil
}

// mostViolations bounds how many violations are returned.
const mostViolations = 50

// violations returns the faults, each once, in order.
func violations(faults []fault) []Violation {
	slices.SortStableFunc(faults, compareFaults)
	var list []Violation
	for _, f := range faults {
		v := Violation{Path: f.path, Message: f.message}
		if n := len(list); n > 0 && list[n-1] == v {
			continue
		}
		if list = append(list, v); len(list) == mostViolations {
			break
		}
	}
	return list
}

// The words of violations. Both validators use them.
const (
	atLeast     = "must be at least %s"
	atMost      = "must be at most %s"
	greaterThan = "must be greater than %s"
	lessThan    = "must be less than %s"
	multipleOf  = "must be a multiple of %s"
	matching    = "must match the pattern %s"
	formatted   = "must be %s"
	leastText   = "must be at least %s long"
	mostText    = "must be at most %s long"
	leastCount  = "must have at least %s"
	mostCount   = "must have at most %s"
	thatFits    = "of the kind that the schema asks for"
	equalItems  = "must not have equal items, as those at %d and %d are"
	isRequired  = "is required"
	requiredBy  = "is required when %q is given"
	badName     = "is a name that is not allowed: it "
	notAllowed  = "is not allowed"
	excluded    = "is of a kind that the schema excludes"
	ambiguous   = "fits more than one of the alternatives that the schema offers; it must fit exactly one"
	unheld      = "must be an integer from -9223372036854775808 to 9223372036854775807"
	// What is wrong with numbers that the arguments cannot hold.
	unsafeInteger = "must be an integer from -9007199254740991 to 9007199254740991"
	tooLarge      = "is larger than any number"
	notBigInt     = "must be an integer of at most 308 digits, and without an exponent"
	imprecise     = "has more digits than a number keeps; round it, or send it as a string where that is allowed"
	tooCostly     = "takes too long to check against the schema; send a smaller or simpler value"
)

// count says a limit on a count of things.
func count(n int, format, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf(format, strconv.Itoa(n)+" "+noun)
}

const (
	// longestName bounds, in bytes, how much of an unknown name is repeated.
	longestName = 64
	// mostCandidates and mostSuggestions bound the work of finding similar names.
	mostCandidates  = 200
	mostSuggestions = 8
)

// unknown says that the object may not have a member of this name.
func (o *objectRule) unknown(name string, object map[string]any, r *run) string {
	var missing []string
	for _, declared := range o.declared {
		if _, there := object[declared]; !there && len(missing) < mostCandidates {
			missing = append(missing, declared)
		}
	}
	return r.unknown(name, missing)
}

// unknown says that there is no member of this name, and which of the missing
// ones it may have been meant to be.
func (r *run) unknown(name string, missing []string) string {
	noun := "member"
	if r.arguments && len(r.path) == 1 {
		noun = "argument"
	}
	return fmt.Sprintf("unknown %s %q", noun, clip(name, longestName)) + r.like(name, missing)
}

// like asks whether one of the candidates was meant, as the end of a message.
func (r *run) like(name string, candidates []string) string {
	if r.suggested++; r.suggested > mostSuggestions {
		return ""
	}
	if like := diag.DidYouMean(name, candidates); like != "" {
		return "; " + like
	}
	return ""
}

// sortedNames returns the names of a map in order.
func sortedNames[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// A segment is one step into a value: a member of an object, or an item of an
// array when index is not negative.
type segment struct {
	name  string
	index int
}

func member(name string) segment { return segment{name: name, index: -1} }
func item(i int) segment         { return segment{index: i} }

// A location leads from the whole value to a part of it.
type location []segment

// longestSegment bounds, in bytes, how much of a name that a caller made up is repeated.
const longestSegment = 128

// pointer returns the location as a JSON pointer (RFC 6901). Names of more
// than 128 bytes are cut short.
func (l location) pointer() string {
	var b strings.Builder
	for _, s := range l {
		b.WriteByte('/')
		if s.index >= 0 {
			b.WriteString(strconv.Itoa(s.index))
		} else {
			b.WriteString(escapePointer(clip(s.name, longestSegment)))
		}
	}
	return b.String()
}

// escapePointer returns name as it is written in a JSON pointer.
func escapePointer(name string) string {
	if !strings.ContainsAny(name, "~/") {
		return name
	}
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// unescapePointer is the reverse of escapePointer.
func unescapePointer(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~1", "/"), "~0", "~")
}

// clip returns s, cut short at a character so that it has at most n bytes
// before the ellipsis.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
