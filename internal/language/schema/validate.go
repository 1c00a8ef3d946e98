package schema

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcpd/mcpd/diag"
)

const (
	// maxSteps bounds the steps of a validation, in addition to one per byte of the text. A
	// step takes about 25 ns. Only schemas that multiply the work can exceed it.
	maxSteps = 300_000
	// costOfMismatch and costOfBranch are the steps for an explanation.
	costOfMismatch = 40
	costOfBranch   = 40
)

// run is the validation of one value. The first pass stops at the first mismatch and does not
// allocate. If it fails, a second pass collects all mismatches.
type run struct {
	// stepsLeft is the number of remaining steps.
	stepsLeft int
	// explain collects all mismatches with their paths.
	explain    bool
	path       location
	mismatches []mismatch
	// arguments means that the value is the arguments of a call.
	arguments bool
	// suggested counts the searches for similar names.
	suggested int
	// scratch is the buffer for canonical bytes.
	scratch []byte
	// known are the results of checks that unevaluated members and items need again.
	known map[checkKey]bool
	// resources are the entered resources, for dynamic references.
	resources []string
}

// mismatch is an error in a value, with data that distinguishes alternatives.
type mismatch struct {
	path, message string
	// want are the expected types, for a type mismatch.
	want types
	// got is the actual type.
	got types
	// choice means that the value is not in the list of allowed values.
	choice bool
}

// maxMismatches bounds the number of collected mismatches.
const maxMismatches = 200

// step counts n steps, and returns false if none are left.
func (r *run) step(n int) bool {
	r.stepsLeft -= n
	return r.stepsLeft > 0
}

// exhausted reports whether the steps ran out before there was a result.
func (r *run) exhausted() bool { return r.stepsLeft <= 0 }

// enter descends into a part of the value; leave ascends.
func (r *run) enter(s segment) {
	if r.explain {
		r.path = append(r.path, s)
	}
}

func (r *run) leave() {
	if r.explain {
		r.path = r.path[:len(r.path)-1]
	}
}

// reject adds a mismatch at the current path. It returns false, the result of the check.
func (r *run) reject(message func() string) bool {
	if r.explain {
		r.add(mismatch{message: message()})
	}
	return false
}

func (r *run) add(f mismatch) {
	if r.step(costOfMismatch) && !r.full() {
		f.path = r.path.pointer()
		r.mismatches = append(r.mismatches, f)
	}
}

// full reports whether enough mismatches are collected.
func (r *run) full() bool { return len(r.mismatches) >= maxMismatches }

// checkOnly runs a check without explaining.
func (r *run) checkOnly(n *node, v any) bool {
	key, remember := n.keyOf(v)
	if ok, known := r.known[key]; remember && known {
		return ok
	}
	explain := r.explain
	r.explain = false
	ok := n.check(v, r)
	r.explain = explain
	if remember && !r.exhausted() {
		if r.known == nil {
			r.known = map[checkKey]bool{}
		}
		r.known[key] = ok
	}
	return ok
}

// collect runs checks and returns their mismatches instead of adding them.
func (r *run) collect(checks func()) []mismatch {
	before := r.mismatches
	r.mismatches = nil
	if r.step(costOfBranch) {
		checks()
	}
	found := r.mismatches
	r.mismatches = before
	return found
}

// node holds the rules of a subschema. Nodes may be cyclic through references; they are
// immutable after compilation.
type node struct {
	// never is set for the schema false.
	never bool
	types types
	// enum is the rule of enum and const.
	enum   *enumRule
	number *numberRule
	str    *stringRule
	array  *arrayRule
	object *objectRule
	// applicators check the same value against other nodes.
	applicators *applicators
	coverage    *coverage
	// resource is the URI of the schema of the node. scoped means that dynamic references
	// depend on it.
	resource string
	scoped   bool
}

// check reports whether v satisfies the rules. In explain mode, it adds a mismatch for each
// rule that fails. If the type is wrong, or the value is not in the list, it adds only that.
func (n *node) check(v any, r *run) bool {
	if n == nil {
		return true
	}
	if !n.scoped {
		return n.checkRules(v, r)
	}
	entered := r.enterResource(n)
	ok := n.checkRules(v, r)
	r.leaveResource(entered)
	return ok
}

func (n *node) checkRules(v any, r *run) bool {
	if !r.step(1) || r.full() {
		return false
	}
	if n.never {
		return r.reject(func() string { return notAllowed })
	}
	if got := typeOf(v); !n.types.admits(got) {
		if r.explain {
			r.add(mismatch{message: n.types.mustBe(got), want: n.types, got: got})
		}
		return false
	}
	if n.enum != nil && !n.enum.has(v, r) {
		if r.explain {
			r.add(mismatch{message: n.enum.wordsFor(v, r), choice: true})
		}
		return false
	}
	ok := n.checkKind(v, r)
	if n.applicators != nil && (ok || r.explain) {
		fits := n.applicators.check(v, r)
		ok = fits && ok
		if !fits {
			return false
		}
	}
	if n.coverage != nil && (ok || r.explain) {
		ok = n.checkUnevaluated(v, r) && ok
	}
	return ok
}

// checkKind checks the rules for the type of v.
func (n *node) checkKind(v any, r *run) bool {
	switch v := v.(type) {
	case string:
		return n.str == nil || n.str.check(v, r)
	case int64:
		return n.number == nil || n.number.check(v, r)
	case *big.Int:
		return n.number == nil || n.number.check(v, r)
	case float64:
		return n.number == nil || n.number.check(v, r)
	case []any:
		return n.array == nil || n.array.check(v, r)
	case map[string]any:
		return n.object == nil || n.object.check(v, r)
	}
	return true
}

// types is a set of the types of JSON Schema.
type types uint8

const (
	nullType types = 1 << iota
	booleanType
	integerType
	numberType
	stringType
	arrayType
	objectType
)

// typeNames are the names of the types, in bit order.
var typeNames = []string{"null", "boolean", "integer", "number", "string", "array", "object"}

// typeNamed returns the type with a name, or 0.
func typeNamed(name string) types {
	for i, n := range typeNames {
		if n == name {
			return 1 << i
		}
	}
	return 0
}

// typeOf returns the type of a decoded value. For an integer, it is only integerType.
func typeOf(v any) types {
	switch v := v.(type) {
	case bool:
		return booleanType
	case int64, *big.Int:
		return integerType
	case float64:
		if v == math.Trunc(v) {
			return integerType
		}
		return numberType
	case string:
		return stringType
	case []any:
		return arrayType
	case map[string]any:
		return objectType
	}
	return nullType
}

// admits reports whether the set contains the type of a value. The empty set contains every
// type.
func (t types) admits(of types) bool {
	if t&numberType != 0 {
		t |= integerType
	}
	return t == 0 || t&of != 0
}

// words are the types with articles, as in "an object".
func (t types) words() []string {
	if t&numberType != 0 {
		t &^= integerType
	}
	var list []string
	for i, name := range typeNames {
		switch {
		case t&(1<<i) == 0:
		case name == "null":
			list = append(list, name)
		default:
			list = append(list, article(name))
		}
	}
	return list
}

// mustBe describes the expected types for a value of type got.
func (t types) mustBe(got types) string {
	words := t.words()
	if t.admits(nullType) { // the most likely one last
		words = append(words[1:], words[0])
	}
	message := "must be " + join(words, "or")
	switch {
	case t&integerType != 0 && got == numberType:
		return message + ", not a fraction"
	case got == 0:
		return message
	case got == integerType:
		got = numberType
	}
	return message + ", not " + got.words()[0]
}

func article(noun string) string {
	if strings.ContainsRune("aeio", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}

// join joins words, as in "a, b or c".
func join(words []string, last string) string {
	n := len(words) - 1
	if n < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:n], ", ") + " " + last + " " + words[n]
}

// Violation is one error in a value.
type Violation struct {
	// Path is a JSON pointer (RFC 6901) to the wrong or missing part of the value; "" is the
	// root.
	Path string `json:"path"`
	// Message says what is expected, such as "must be at least 1". It contains limits, patterns
	// and allowed values of the schema, and names of unknown members, truncated. It never
	// contains a value.
	Message string `json:"message"`
}

// FormatViolations returns violations in one line.
func FormatViolations(violations []Violation) string {
	places := make([]string, len(violations))
	for i, v := range violations {
		places[i] = strings.TrimPrefix(v.Path+" "+v.Message, " ")
	}
	return strings.Join(places, "; ")
}

// ValidateValue returns an error if plain data violates the schema.
func (s *Schema) ValidateValue(value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode it as JSON: %w", err)
	}
	if violations := s.Validate(text); len(violations) > 0 {
		return errors.New(FormatViolations(violations))
	}
	d := decoder{data: text, path: make(location, 0, usualDepth), numbers: s.numbers}
	if _, ok := d.document(s.plan); ok && len(d.rejected) > 0 {
		return errors.New(FormatViolations(violations(d.rejected)))
	}
	return nil
}

// maxViolations bounds the returned violations.
const maxViolations = 50

// violations returns the distinct mismatches, in order.
func violations(faults []mismatch) []Violation {
	slices.SortStableFunc(faults, compareMismatches)
	var list []Violation
	for _, f := range faults {
		v := Violation{Path: f.path, Message: f.message}
		if n := len(list); n > 0 && list[n-1] == v {
			continue
		}
		if list = append(list, v); len(list) == maxViolations {
			break
		}
	}
	return list
}

func compareMismatches(a, b mismatch) int {
	return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.message, b.message))
}

// The messages of violations.
const (
	atLeast       = "must be at least %s"
	atMost        = "must be at most %s"
	greaterThan   = "must be greater than %s"
	lessThan      = "must be less than %s"
	multipleOf    = "must be a multiple of %s"
	matching      = "must match the pattern %s"
	formatted     = "must be %s"
	leastText     = "must be at least %s long"
	mostText      = "must be at most %s long"
	leastCount    = "must have at least %s"
	mostCount     = "must have at most %s"
	thatFits      = "of the kind that the schema requires"
	equalItems    = "must not have equal items, as those at %d and %d are"
	isRequired    = "is required"
	requiredBy    = "is required when %q is given"
	badName       = "is a name that is not allowed: it "
	notAllowed    = "is not allowed"
	excluded      = "is of a kind that the schema excludes"
	ambiguous     = "fits more than one of the alternatives that the schema offers; it must fit exactly one"
	int64Overflow = "must be an integer from -9223372036854775808 to 9223372036854775807"
	// Messages for numbers that the arguments cannot hold.
	unsafeInteger = "must be an integer from -9007199254740991 to 9007199254740991"
	tooLarge      = "is larger than any number"
	notBigInt     = "must be an integer of at most 308 digits, and without an exponent"
	imprecise     = "has more digits than a number keeps; round it, or send it as a string where that is allowed"
	tooCostly     = "takes too long to check against the schema; send a smaller or simpler value"
)

// count formats a limit on a count.
func count(n int, format, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf(format, strconv.Itoa(n)+" "+noun)
}

const (
	// maxNameBytes bounds the part of an unknown name in a message.
	maxNameBytes = 64
	// maxCandidates and maxSuggestions bound the search for similar names.
	maxCandidates  = 200
	maxSuggestions = 8
)

// unknown describes a member that the object must not have.
func (o *objectRule) unknown(name string, object map[string]any, r *run) string {
	var missing []string
	for _, declared := range o.declared {
		if _, there := object[declared]; !there && len(missing) < maxCandidates {
			missing = append(missing, declared)
		}
	}
	return r.unknown(name, missing)
}

// unknown describes an unknown member, and suggests a missing one.
func (r *run) unknown(name string, missing []string) string {
	noun := "member"
	if r.arguments && len(r.path) == 1 {
		noun = "argument"
	}
	return fmt.Sprintf("unknown %s %q", noun, clip(name, maxNameBytes)) + r.like(name, missing)
}

// like returns a suggestion from the candidates, for the end of a message.
func (r *run) like(name string, candidates []string) string {
	if r.suggested++; r.suggested > maxSuggestions {
		return ""
	}
	if like := diag.DidYouMean(name, candidates); like != "" {
		return " (" + like + ")"
	}
	return ""
}

// sortedNames returns the sorted names of a map.
func sortedNames[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }

// segment is one step into a value: a member of an object, or an item of an array if index is
// not negative.
type segment struct {
	name  string
	index int
}

func member(name string) segment { return segment{name: name, index: -1} }
func item(i int) segment         { return segment{index: i} }

// location is the path from the root to a part of a value.
type location []segment

// maxSegmentBytes bounds the part of a caller's name in a path.
const maxSegmentBytes = 128

// pointer returns the location as a JSON pointer (RFC 6901). Names of more than 128 bytes are
// truncated.
func (l location) pointer() string {
	var b strings.Builder
	for _, s := range l {
		b.WriteByte('/')
		if s.index >= 0 {
			b.WriteString(strconv.Itoa(s.index))
		} else {
			b.WriteString(escapePointer(clip(s.name, maxSegmentBytes)))
		}
	}
	return b.String()
}

// escapePointer escapes a name for a JSON pointer.
func escapePointer(name string) string {
	if !strings.ContainsAny(name, "~/") {
		return name
	}
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// unescapePointer is the inverse of escapePointer.
func unescapePointer(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~1", "/"), "~0", "~")
}

// clip truncates s at a character boundary, to at most n bytes before the ellipsis.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}
