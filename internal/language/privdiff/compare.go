// Package privdiff compares two versions of the files of a server and reports the privileges
// that the second has and the first has not.
//
// A [Snapshot] is one version. Its definitions are described by facts, including those of
// package grant. Each fact gives privilege, limits it, bounds an amount, must be reviewed by a
// reader, or is neutral. [Compare] compares the facts of two snapshots by definition and name,
// and returns a [Change] for each difference.
//
// A difference that it cannot judge counts as more privilege. It does not read scripts: assume
// that a script uses all its grants.
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

// Compare returns the changes from one snapshot to the other: first those that add privilege,
// then those that remove it, then the rest, each sorted by kind and name of the definitions.
// The order, position and file of a definition do not matter.
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

// firstOf compares the heads of two sorted lists.
func firstOf(was, is []subject) int {
	switch {
	case len(was) == 0:
		return 1
	case len(is) == 0:
		return -1
	}
	return byName(was[0], is[0])
}

// comparison collects the changes.
type comparison struct{ changes []Change }

// additionEffect returns the effect of adding a fact or definition.
func additionEffect(s grant.Direction) Effect {
	switch s {
	case grant.Restricts:
		return Removes
	case grant.Describes, grant.Neutral:
		return Other
	default:
		return Adds
	}
}

// removalEffect returns the effect of removing a fact or definition.
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

func (c *comparison) removed(s *subject) {
	c.add(removalEffect(s.direction), s, "", "is removed", nil, true)
}

// added reports a new definition and the objects that it is granted.
func (c *comparison) added(s *subject) {
	c.add(additionEffect(s.direction), s, "", "is new", nil, false)
	groups := groupsOf(s.facts)
	for i := range groups.list {
		if g := &groups.list[i]; g.of != "" {
			c.group(s, s, nil, g)
		}
	}
}

// common compares two definitions with the same name. It reports nothing else about a removed
// object or part, and nothing about the parts of a new schema.
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

// group compares the facts of one object or part; nil means missing.
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

// Grants describes the objects that a definition is granted, as [Compare] describes the objects of a new
// definition. where is the range of the name of the definition, which is in a tool file.
func (s *Snapshot) Grants(where diag.Range) []string {
	var texts []string
	granted := func(sub subject) bool {
		if sub.where != where {
			return false
		}
		groups := groupsOf(sub.facts)
		for i := range groups.list {
			if g := &groups.list[i]; g.of != "" {
				texts = append(texts, g.path("")+g.describe())
			}
		}
		return true
	}
	for _, f := range s.Files {
		if findSubject(f.Tools, s.tool, granted) || findSubject(f.Resources, s.resource, granted) || findSubject(f.Templates, s.template, granted) || findSubject(f.Prompts, s.prompt, granted) {
			break
		}
	}
	return texts
}

// findSubject reports whether one of the definitions is the one that found accepts.
func findSubject[T any](list []T, of func(*T) subject, found func(subject) bool) bool {
	for i := range list {
		if found(of(&list[i])) {
			return true
		}
	}
	return false
}

// describe lists, in parentheses, the content of a new object.
func (g *group) describe() string {
	var texts []string
	for i, f := range g.facts {
		switch {
		case f.Direction != grant.Increases || f.Object == "":
		case f.Value == "":
			texts = append(texts, f.Option)
		case i > 0 && g.facts[i-1].Option == f.Option:
			texts[len(texts)-1] += " " + strconv.Quote(f.Value)
		default:
			texts = append(texts, f.Option+" "+strconv.Quote(f.Value))
		}
	}
	if texts == nil {
		return ""
	}
	return " (" + strings.Join(texts, ", ") + ")"
}

// optionKey identifies an option of a group.
type optionKey struct {
	option  string
	neutral bool
}

// options returns the distinct options of two lists of facts, in order.
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

// option compares the facts of one option.
func (c *comparison) option(was, is *subject, before, after []fact) {
	direction := grant.Increases
	for _, f := range slices.Concat(before, after) {
		if direction = f.Direction; direction == grant.Opaque {
			break
		}
	}
	switch direction {
	case grant.Limit:
		c.amount(was, is, before, after)
	case grant.Opaque:
		c.changed(was, is, before, after, Adds, "changed: review it")
	case grant.Neutral:
		c.changed(was, is, before, after, Other, "changed")
	default:
		c.members(was, is, before, after, direction)
	}
}

// changed reports a value that a reader must review.
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

// members compares two lists. Each member gives or limits privilege.
func (c *comparison) members(was, is *subject, before, after []fact, direction grant.Direction) {
	added, removed := notCovered(after, before), notCovered(before, after)
	if direction == grant.Restricts && len(before) == 1 && len(after) == 1 && len(added) == 1 && len(removed) == 1 {
		c.add(Adds, is, keyOf(after).path(after[0].Option), fmt.Sprintf("is %q and was %q: review it", after[0].Value, before[0].Value), &after[0], false)
		return
	}
	for _, f := range added {
		c.add(additionEffect(direction), is, keyOf(after).path(f.Option), memberChange(f, "is new"), &f, false)
	}
	for _, f := range removed {
		c.add(removalEffect(direction), was, keyOf(before).path(f.Option), memberChange(f, "is removed"), &f, true)
	}
}

// memberChange describes an added or removed member.
func memberChange(f fact, became string) string {
	switch {
	case f.Value == "":
		return became
	case f.Pattern && f.Value == "*":
		return "everything " + became
	}
	return strconv.Quote(f.Value) + " " + became
}

// notCovered returns the distinct members of list that no member of other covers.
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

// covers reports whether a pattern matches everything that other matches. A * in other is
// treated as a character that only * matches.
func covers(pattern, other fact) bool {
	return definition.Name{Text: pattern.Value}.Matches(other.Value)
}

// amount compares two limits.
func (c *comparison) amount(was, is *subject, before, after []fact) {
	if len(before) == 0 || len(after) == 0 {
		c.changed(was, is, before, after, Adds, "changed: review it")
		return
	}
	old, new := before[0], after[0]
	what := keyOf(after).path(new.Option)
	switch {
	case old.Amount == new.Amount || math.IsNaN(old.Amount) && math.IsNaN(new.Amount):
	case math.IsNaN(old.Amount) || math.IsNaN(new.Amount):
		c.add(Adds, is, what, fmt.Sprintf("is %s and was %s: review it", new.Value, old.Value), &new, false)
	case new.Amount > old.Amount:
		c.add(Adds, is, what, fmt.Sprintf("is %s and was %s", new.Value, old.Value), &new, false)
	default:
		c.add(Removes, is, what, fmt.Sprintf("is %s and was %s", new.Value, old.Value), &new, false)
	}
}

// Effect is the effect of a change on privilege. Changes are ordered by it.
type Effect string

const (
	// Adds means more privilege, or a change to review.
	Adds Effect = "adds_power"
	// Removes means less privilege.
	Removes Effect = "removes_power"
	// Other means no effect on privilege.
	Other Effect = "other"
)

// Symbol returns "+", "-" or "~".
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

// Change is a difference between two snapshots.
type Change struct {
	Effect Effect
	// Kind and Name identify the definition. A block that occurs once has no name.
	Kind, Name string
	// Part is the changed part of the definition, such as "http.crm hosts". It is empty for the
	// whole.
	Part string
	// Text describes the change in one line.
	Text string
	// Range is the position in the new files, or in the old files if Old is set.
	Range diag.Range
	Old   bool
}

// String returns the change on one line, without its symbol.
func (c Change) String() string {
	text := c.Kind
	if c.Name != "" {
		text += ` "` + c.Name + `"`
	}
	if c.Part != "" {
		text += ": " + c.Part
	}
	if where := c.Range.String(); where != "" {
		text = where + ": " + text
	}
	return text + ": " + c.Text
}

// MarshalJSON encodes the change for machines.
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

// Count returns the number of changes with an effect.
func Count(changes []Change, e Effect) int {
	n := 0
	for _, c := range changes {
		if c.Effect == e {
			n++
		}
	}
	return n
}

// effects are all effects, in order.
var effects = []Effect{Adds, Removes, Other}

// sorted sorts changes by effect. The sort is stable.
func sorted(changes []Change) []Change {
	slices.SortStableFunc(changes, func(a, b Change) int { return slices.Index(effects, a.Effect) - slices.Index(effects, b.Effect) })
	return changes
}

// key identifies a group.
type key struct{ of, part string }

// parent returns the group that contains this one: the granted object, or the containing value
// of a schema.
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
	// present is the fact that the group exists as a whole, or nil.
	present *fact
	facts   []fact
}

// groups are the groups of one definition, in the order of their first facts.
type groups struct {
	list []group
	at   map[key]int
}

// groupsOf groups facts by key.
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
func (g *groups) find(k key) *group {
	n, known := g.at[k]
	if !known {
		return nil
	}
	return &g.list[n]
}

// within reports whether an ancestor of a group exists here but not in others.
func (g *groups) within(others *groups, k key) bool {
	for k, ok := k.parent(); ok; k, ok = k.parent() {
		if own := g.find(k); own != nil && own.present != nil && others.find(k) == nil {
			return true
		}
	}
	return false
}

// path names an option of the group.
func (k key) path(option string) string {
	return strings.Join(slices.DeleteFunc([]string{k.of, k.part, option}, func(s string) bool { return s == "" }), " ")
}
