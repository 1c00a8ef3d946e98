package diag

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// longestSuggestion bounds the compared names, in code points, so that long names cost nothing.
const longestSuggestion = 64

// Suggest returns the candidate that is nearest to name, or "" if none is near. It ignores
// case. If several candidates are equally near, it returns the bytewise smallest, so the result
// does not depend on their order.
func Suggest(name string, candidates []string) string {
	if name == "" || utf8.RuneCountInString(name) > longestSuggestion {
		return ""
	}
	from := []rune(strings.ToLower(name))
	best, bestDistance := "", allowedEdits(len(from))+1
	for _, c := range candidates {
		n := utf8.RuneCountInString(c)
		bound := allowedEdits(max(len(from), n))
		if c == name || c == "" || n > longestSuggestion || n-len(from) > bound || len(from)-n > bound {
			continue
		}
		d := distance(from, []rune(strings.ToLower(c)), bound)
		if d <= bound && (d < bestDistance || d == bestDistance && c < best) {
			best, bestDistance = c, d
		}
	}
	return best
}

// DidYouMean returns `did you mean "x"?` for the result of [Suggest], or "" if there is no
// suggestion.
func DidYouMean(name string, candidates []string) string {
	return didYouMean(Suggest(name, candidates))
}

func didYouMean(candidate string) string {
	if candidate == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %q?", candidate)
}

// Suggestion returns the name that Detail suggests with [DidYouMean], or "".
func (d Diagnostic) Suggestion() string {
	_, rest, ok := strings.Cut(d.Detail, "did you mean ")
	if !ok {
		return ""
	}
	quoted, err := strconv.QuotedPrefix(rest)
	if err != nil || !strings.HasPrefix(rest[len(quoted):], "?") {
		return ""
	}
	name, err := strconv.Unquote(quoted)
	if err != nil {
		return ""
	}
	return name
}

// SuggestLonger returns the candidate that ends in name after one of the separators _ - . /, or
// "" if none does. It suggests files_read_file for read_file. It ignores case and treats all
// separators as equal. If several candidates match, it returns the bytewise smallest.
func SuggestLonger(name string, candidates []string) string {
	if name == "" || len(name) > maxLonger {
		return ""
	}
	alike := strings.NewReplacer("-", "_", ".", "_", "/", "_")
	end, best := "_"+strings.ToLower(alike.Replace(name)), ""
	for _, c := range candidates {
		if len(c) <= maxLonger && strings.HasSuffix(strings.ToLower(alike.Replace(c)), end) && (best == "" || c < best) {
			best = c
		}
	}
	return best
}

// DidYouMeanLonger is like [DidYouMean] for names that are often shortened: if [Suggest] finds
// nothing, it uses [SuggestLonger].
func DidYouMeanLonger(name string, candidates []string) string {
	return didYouMean(cmp.Or(Suggest(name, candidates), SuggestLonger(name, candidates)))
}

// maxLonger bounds the name that [SuggestLonger] searches for, in bytes.
const maxLonger = 256

// allowedEdits returns the maximum distance between two similar names of length n.
func allowedEdits(n int) int {
	switch {
	case n <= 2:
		return 0
	case n <= 4:
		return 1
	case n <= 8:
		return 2
	default:
		return 3
	}
}

// distance counts the insertions, deletions, replacements and swaps of neighbors that turn a
// into b. It stops early with a result above bound. Neither name may be longer than
// [longestSuggestion].
func distance(a, b []rune, bound int) int {
	var rows [3][longestSuggestion + 1]int
	before, last, row := rows[0][:len(b)+1], rows[1][:len(b)+1], rows[2][:len(b)+1]
	for j := range last {
		last[j] = j
	}
	least := 0
	for i := range a {
		leastBefore := least
		row[0] = i + 1
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, last[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		if least = slices.Min(row); least > bound && leastBefore > bound {
			return least
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
