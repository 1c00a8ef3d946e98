package privdiff

import (
	"encoding/json"
	"slices"

	"github.com/mcpd/mcpd/diag"
)

// Effect is what a change does to power. The order is that in which changes are told.
type Effect string

const (
	// Adds is for more power, and for what has to be read to know.
	Adds Effect = "adds_power"
	// Removes is for less.
	Removes Effect = "removes_power"
	// Other is for what bears on no power.
	Other Effect = "other"
)

// Mark returns the sign of an effect: "+", "-" or "~".
func (e Effect) Mark() string {
	switch e {
	case Adds:
		return "+"
	case Removes:
		return "-"
	default:
		return "~"
	}
}

// Change is one difference between two sides.
type Change struct {
	Effect Effect
	// Kind and Name are those of the definition; a block that stands once has no name.
	Kind, Name string
	// What is the part of the definition, such as "http.crm hosts"; "" for all of it.
	What string
	// Text says in one line what has changed.
	Text string
	// Where is the place in the new files, or, when Old is set, in the old ones.
	Where diag.Range
	Old   bool
}

// String returns the change on one line, without its mark.
func (c Change) String() string {
	said := c.Kind
	if c.Name != "" {
		said += ` "` + c.Name + `"`
	}
	if c.What != "" {
		said += ": " + c.What
	}
	if where := c.Where.String(); where != "" {
		said = where + ": " + said
	}
	return said + ": " + c.Text
}

// MarshalJSON returns the change for machines.
func (c Change) MarshalJSON() ([]byte, error) {
	side := "new"
	if c.Old {
		side = "old"
	}
	return json.Marshal(struct {
		Effect Effect `json:"effect"`
		Kind   string `json:"kind"`
		Name   string `json:"name"`
		What   string `json:"what"`
		Text   string `json:"text"`
		Side   string `json:"side"`
		File   string `json:"file"`
		Line   int    `json:"line"`
		Column int    `json:"column"`
	}{c.Effect, c.Kind, c.Name, c.What, c.Text, side, c.Where.File, c.Where.Start.Line, c.Where.Start.Column})
}

// Count returns how many changes have an effect.
func Count(changes []Change, e Effect) int {
	n := 0
	for _, c := range changes {
		if c.Effect == e {
			n++
		}
	}
	return n
}

// effects are all of them, in the order in which they are told.
var effects = []Effect{Adds, Removes, Other}

// sorted returns changes by their effect, which keep their order otherwise.
func sorted(changes []Change) []Change {
	slices.SortStableFunc(changes, func(a, b Change) int { return slices.Index(effects, a.Effect) - slices.Index(effects, b.Effect) })
	return changes
}
