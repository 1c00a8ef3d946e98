// Package privdiff compares two states of the files that a server is made of, and
// says what power the second has that the first has not.
//
// A [Side] is one state. What its definitions say is gathered as facts, those of
// package grant among them, each of which gives power, holds it back, bounds it,
// has to be read to be judged, or says nothing of it. [Compare] sets the facts of
// two sides against each other, definition by definition and by their names, and
// returns a [Change] for each difference.
//
// What it cannot weigh counts as power. It reads no body: bodies can do what
// they are granted, whatever stands in them.
package privdiff

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// Compare returns what has changed from one side to the other: what adds power
// first, then what takes some away, then the rest, each by the kinds and the
// names of the definitions. Neither the order nor the places of definitions,
// nor in which file they stand, is a change.
func Compare(before, after Snapshot) []Change {
	c := comparison{}
	was, is := before.subjects(), after.subjects()
	for len(was) > 0 || len(is) > 0 {
		switch order := firstOf(was, is); {
		case order < 0:
			c.removed(&was[0])
			was = was[1:]
		case order > 0:
			c.added(&is[0])
			is = is[1:]
		default:
			c.common(&was[0], &is[0])
			was, is = was[1:], is[1:]
		}
	}
	return sorted(c.changes)
}

// firstOf returns which of two sorted lists goes on first.
func firstOf(was, is []subject) int {
	switch {
	case len(was) == 0:
		return 1
	case len(is) == 0:
		return -1
	}
	return byName(was[0], is[0])
}

// comparison is what has been found so far.
type comparison struct{ changes []Change }

// effectOf returns what it does that something of a sense comes.
func additionEffect(s grant.Direction) Effect {
	switch s {
	case grant.Restricts:
		return Removes
	case grant.Neutral:
		return Other
	default:
		return Adds
	}
}

// lost returns what it does that something of a sense goes.
func removalEffect(s grant.Direction) Effect {
	switch s {
	case grant.Increases:
		return Removes
	case grant.Neutral:
		return Other
	default:
		return Adds
	}
}

func (c *comparison) add(e Effect, a *subject, what, text string, f *fact, old bool) {
	change := Change{Effect: e, Kind: a.kind, Name: a.name, Part: what, Text: text, Range: a.where, Old: old}
	if f != nil {
		change.Range = f.where
	}
	c.changes = append(c.changes, change)
}

func (c *comparison) removed(a *subject) {
	c.add(removalEffect(a.direction), a, "", "is removed", nil, true)
}

// came tells of a definition that is new, and of the objects that it is granted.
func (c *comparison) added(a *subject) {
	c.add(additionEffect(a.direction), a, "", "is new", nil, false)
	groups := groupsOf(a.facts)
	for i := range groups.list {
		if g := &groups.list[i]; g.of != "" {
			c.group(a, a, nil, g)
		}
	}
}

// both compares two definitions of the same name. Of an object or a part that
// is gone, nothing else is told; nor of the parts of a schema that is new.
func (c *comparison) common(was, is *subject) {
	old, new := groupsOf(was.facts), groupsOf(is.facts)
	for i := range new.list {
		if g := &new.list[i]; g.of != "" || !new.within(old, g.key) {
			c.group(was, is, old.find(g.key), g)
		}
	}
	for i := range old.list {
		if g := &old.list[i]; new.find(g.key) == nil && !old.within(new, g.key) {
			c.group(was, is, g, nil)
		}
	}
}

// group compares the facts of one object or part; nil is none.
func (c *comparison) group(was, is *subject, old, new *group) {
	switch {
	case old == nil && new.present != nil:
		c.add(additionEffect(new.present.Direction), is, new.path(""), "is new"+new.describe(), new.present, false)
		return
	case new == nil && old.present != nil:
		c.add(removalEffect(old.present.Direction), was, old.path(""), "is removed", old.present, true)
		return
	}
	var before, after []fact
	if old != nil {
		before = old.facts
	}
	if new != nil {
		after = new.facts
	}
	for _, option := range options(before, after) {
		c.option(was, is, withOption(before, option), withOption(after, option))
	}
}

// gives says in brackets what a new object gives, list by list.
func (g *group) describe() string {
	var said []string
	for i, f := range g.facts {
		switch {
		case f.Direction != grant.Increases || f.Object == "":
		case f.Value == "":
			said = append(said, f.Option)
		case i > 0 && g.facts[i-1].Option == f.Option:
			said[len(said)-1] += " " + strconv.Quote(f.Value)
		default:
			said = append(said, f.Option+" "+strconv.Quote(f.Value))
		}
	}
	if said == nil {
		return ""
	}
	return " (" + strings.Join(said, ", ") + ")"
}

// named is what tells the options of a group apart.
type optionKey struct {
	option  string
	neutral bool
}

// options returns those of two lists of facts, each once, in their order.
func options(before, after []fact) []optionKey {
	var all []optionKey
	seen := map[optionKey]bool{}
	for _, f := range slices.Concat(after, before) {
		if n := (optionKey{f.Option, f.Direction == grant.Neutral}); !seen[n] {
			seen[n] = true
			all = append(all, n)
		}
	}
	return all
}

func withOption(facts []fact, n optionKey) []fact {
	var all []fact
	for _, f := range facts {
		if f.Option == n.option && (f.Direction == grant.Neutral) == n.neutral {
			all = append(all, f)
		}
	}
	return all
}

// option compares what two groups say of one option.
func (c *comparison) option(was, is *subject, before, after []fact) {
	sense := grant.Increases
	for _, f := range slices.Concat(before, after) {
		if sense = f.Direction; sense == grant.Opaque {
			break
		}
	}
	switch sense {
	case grant.Limit:
		c.amount(was, is, before, after)
	case grant.Opaque:
		c.changed(was, is, before, after, Adds, "changed: read it")
	case grant.Neutral:
		c.changed(was, is, before, after, Other, "changed")
	default:
		c.members(was, is, before, after, sense)
	}
}

// changed tells that what has to be read is not what it was.
func (c *comparison) changed(was, is *subject, before, after []fact, e Effect, text string) {
	if slices.Equal(values(before), values(after)) {
		return
	}
	if len(after) == 0 {
		c.add(e, was, keyOf(before).path(before[0].Option), text, &before[0], true)
		return
	}
	c.add(e, is, keyOf(after).path(after[0].Option), text, &after[0], false)
}

func keyOf(facts []fact) key { return key{facts[0].Object, facts[0].Part} }

func values(facts []fact) []string {
	all := make([]string, len(facts))
	for i, f := range facts {
		all[i] = f.Value
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// members compares two lists of which every member gives power, or holds it back.
func (c *comparison) members(was, is *subject, before, after []fact, sense grant.Direction) {
	added, removed := notCovered(after, before), notCovered(before, after)
	if sense == grant.Restricts && len(before) == 1 && len(after) == 1 && len(added) == 1 && len(removed) == 1 {
		c.add(Adds, is, keyOf(after).path(after[0].Option), fmt.Sprintf("is %q and was %q: read it", after[0].Value, before[0].Value), &after[0], false)
		return
	}
	for _, f := range added {
		c.add(additionEffect(sense), is, keyOf(after).path(f.Option), memberChange(f, "is new"), &f, false)
	}
	for _, f := range removed {
		c.add(removalEffect(sense), was, keyOf(before).path(f.Option), memberChange(f, "is removed"), &f, true)
	}
}

// said returns what has become of a member.
func memberChange(f fact, became string) string {
	switch {
	case f.Value == "":
		return became
	case f.Pattern && f.Value == "*":
		return "everything " + became
	}
	return strconv.Quote(f.Value) + " " + became
}

// beyond returns the members of a list, each once, that no member of another one covers.
func notCovered(list, other []fact) []fact {
	type written struct {
		value   string
		pattern bool
	}
	same, patterns := map[written]bool{}, []fact(nil)
	for _, o := range other {
		same[written{o.Value, o.Pattern}] = true
		if o.Pattern && strings.Contains(o.Value, "*") {
			patterns = append(patterns, o)
		}
	}
	var rest []fact
	for _, f := range list {
		w := written{f.Value, f.Pattern}
		if same[w] || slices.ContainsFunc(patterns, func(o fact) bool { return covers(o, f) }) {
			continue
		}
		same[w] = true
		rest = append(rest, f)
	}
	slices.SortStableFunc(rest, func(a, b fact) int { return cmp.Compare(a.Value, b.Value) })
	return rest
}

// covers reports whether a pattern covers all that another member does. That one
// is taken for text, in which * is a character that only * stands for.
func covers(pattern, other fact) bool {
	return definition.Name{Text: pattern.Value}.Matches(other.Value)
}

// amount compares two bounds.
func (c *comparison) amount(was, is *subject, before, after []fact) {
	if len(before) == 0 || len(after) == 0 {
		c.changed(was, is, before, after, Adds, "changed: read it")
		return
	}
	old, new := before[0], after[0]
	what := keyOf(after).path(new.Option)
	switch {
	case old.Amount == new.Amount || math.IsNaN(old.Amount) && math.IsNaN(new.Amount):
	case math.IsNaN(old.Amount) || math.IsNaN(new.Amount):
		c.add(Adds, is, what, fmt.Sprintf("is %s and was %s: read it", new.Value, old.Value), &new, false)
	case new.Amount > old.Amount:
		c.add(Adds, is, what, fmt.Sprintf("is %s and was %s", new.Value, old.Value), &new, false)
	default:
		c.add(Removes, is, what, fmt.Sprintf("is %s and was %s", new.Value, old.Value), &new, false)
	}
}

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
func (e Effect) Symbol() string {
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
	Part string
	// Text says in one line what has changed.
	Text string
	// Where is the place in the new files, or, when Old is set, in the old ones.
	Range diag.Range
	Old   bool
}

// String returns the change on one line, without its mark.
func (c Change) String() string {
	said := c.Kind
	if c.Name != "" {
		said += ` "` + c.Name + `"`
	}
	if c.Part != "" {
		said += ": " + c.Part
	}
	if where := c.Range.String(); where != "" {
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
	}{c.Effect, c.Kind, c.Name, c.Part, c.Text, side, c.Range.File, c.Range.Start.Line, c.Range.Start.Column})
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

// key names the facts that come and go together.
type key struct{ of, part string }

// parent returns what the group is a part of: the granted object, or the value
// of a schema that holds this one.
func (k key) parent() (key, bool) {
	switch {
	case k.part == "":
		return k, false
	case k.of != "":
		return key{of: k.of}, true
	}
	what, path, inner := strings.Cut(strings.TrimSuffix(k.part, `"`), ` "`)
	if !inner {
		return k, false
	}
	if at := strings.LastIndexAny(path, ".["); at > 0 {
		return key{part: what + ` "` + path[:at] + `"`}, true
	}
	return key{part: what}, true
}

// group is the facts of one object or part.
type group struct {
	key
	// there says that the group is something that comes and goes; nil otherwise.
	present *fact
	facts   []fact
}

// groups are those of one definition, in the order of their first facts.
type groups struct {
	list []group
	at   map[key]int
}

// groupsOf returns facts by what they are of.
func groupsOf(facts []fact) *groups {
	all := &groups{at: map[key]int{}}
	for _, f := range facts {
		k := key{f.Object, f.Part}
		n, known := all.at[k]
		if !known {
			n = len(all.list)
			all.at[k], all.list = n, append(all.list, group{key: k})
		}
		g := &all.list[n]
		if f.Option == "" && k != (key{}) {
			g.present = &f
			continue
		}
		g.facts = append(g.facts, f)
	}
	return all
}

// find returns the group of a key, or nil.
func (all *groups) find(k key) *group {
	n, known := all.at[k]
	if !known {
		return nil
	}
	return &all.list[n]
}

// within reports whether a group belongs to one that is here and not among others.
func (all *groups) within(others *groups, k key) bool {
	for k, ok := k.parent(); ok; k, ok = k.parent() {
		if g := all.find(k); g != nil && g.present != nil && others.find(k) == nil {
			return true
		}
	}
	return false
}

// what names a group, and an option of it.
func (k key) path(option string) string {
	return strings.Join(slices.DeleteFunc([]string{k.of, k.part, option}, func(s string) bool { return s == "" }), " ")
}
