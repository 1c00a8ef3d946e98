package schema

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/mcpd/mcpd/diag"
)

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
