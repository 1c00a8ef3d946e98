package schema

import (
	"fmt"
	"strings"
)

// A choice is a list of values of which a value must be one.
type choice struct {
	values []any
	// strings holds those that are strings, and others the spellings of the rest.
	strings map[string]bool
	others  map[string]bool
	// words say what a value must be.
	words string
}

func newChoice(values []any) *choice {
	c := &choice{values: values, strings: map[string]bool{}, others: map[string]bool{}, words: listed(values)}
	r := run{}
	for _, v := range values {
		if s, ok := v.(string); ok {
			c.strings[s] = true
		} else {
			c.others[string(r.spell(v))] = true
		}
	}
	return c
}

func (c *choice) has(v any, r *run) bool {
	if s, ok := v.(string); ok {
		return c.strings[s]
	}
	if len(c.others) == 0 {
		return false
	}
	spelled := r.spell(v)
	return r.step(1+len(spelled)/8) && c.others[string(spelled)]
}

// mostChoices is how many values of a choice a message lists, and
// longestChoice how many bytes of each.
const (
	mostChoices   = 20
	longestChoice = 64
)

// listed says that a value must be one of those in the list.
func listed(values []any) string {
	var shown []string
	for _, value := range values[:min(len(values), mostChoices)] {
		text, err := appendJSON(nil, value)
		if err == nil {
			shown = append(shown, clip(string(text), longestChoice))
		}
	}
	switch more := len(values) - mostChoices; {
	case len(values) == 0:
		return notAllowed
	case len(values) == 1:
		return "must be " + shown[0]
	case more > 0:
		return fmt.Sprintf("must be one of %s or %d others", strings.Join(shown, ", "), more)
	}
	return "must be one of " + strings.Join(shown, ", ")
}

// wordsFor says what the value must be. When the list is too long to be told
// in full, it adds the one that a string was most likely meant to be.
func (c *choice) wordsFor(v any, r *run) string {
	s, ok := v.(string)
	if len(c.values) <= mostChoices || !ok {
		return c.words
	}
	return c.words + r.like(s, c.names())
}

// names returns the strings of the choice, as far as they are worth comparing.
func (c *choice) names() []string {
	var names []string
	for _, v := range c.values {
		if s, ok := v.(string); ok && len(names) < mostCandidates {
			names = append(names, s)
		}
	}
	return names
}
