package schema

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// A translation turns the errors of the other validator into faults.
type translation struct {
	// guide is that of the whole value.
	guide *guide
	run   *run
	// found counts faults, of which a certain number is enough.
	found *int
}

func newTranslation(g *guide, arguments bool) translation {
	return translation{guide: g, run: &run{arguments: arguments}, found: new(int)}
}

func (t translation) faults(e *jsonschema.ValidationError) []fault {
	if *t.found++; *t.found > mostFaults {
		return nil
	}
	at := pointerTo(e.InstanceLocation)
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf:
		return nearest(at, t.branches(e))
	case *kind.OneOf:
		if k.Subschemas == nil {
			return nearest(at, t.branches(e))
		}
		return []fault{{path: at, message: ambiguous}}
	case *kind.Schema, *kind.Group, *kind.Reference, *kind.AllOf:
		var list []fault
		for _, cause := range e.Causes {
			list = append(list, t.faults(cause)...)
		}
		return list
	case *kind.Type:
		want := types(0)
		for _, name := range k.Want {
			want |= typeNamed(name)
		}
		got := typeNamed(k.Got)
		return []fault{{path: at, message: want.mustBe(got), want: want, got: got}}
	case *kind.Enum:
		return []fault{{path: at, message: listed(k.Want), choice: true}}
	case *kind.Const:
		return []fault{{path: at, message: listed([]any{k.Want}), choice: true}}
	}
	if list := t.inObject(e, at); list != nil {
		return list
	}
	return []fault{{path: at, message: simple(e.ErrorKind)}}
}

// branches returns the faults of each alternative, in an order that does not
// depend on chance.
func (t translation) branches(e *jsonschema.ValidationError) [][]fault {
	var list [][]fault
	for _, cause := range e.Causes {
		faults := t.faults(cause)
		slices.SortFunc(faults, compareFaults)
		list = append(list, faults)
	}
	return list
}

// inObject returns the faults of the members of an object.
func (t translation) inObject(e *jsonschema.ValidationError, at string) []fault {
	switch k := e.ErrorKind.(type) {
	case *kind.Required:
		return each(at, k.Missing, func(string) string { return isRequired })
	case *kind.DependentRequired:
		return each(at, k.Missing, func(string) string { return fmt.Sprintf(requiredBy, k.Prop) })
	case *kind.Dependency:
		return each(at, k.Missing, func(string) string { return fmt.Sprintf(requiredBy, k.Prop) })
	case *kind.AdditionalProperties:
		return each(at, k.Properties, func(name string) string { return t.unknown(e.InstanceLocation, name) })
	case *kind.PropertyNames:
		var list []fault
		for _, cause := range e.Causes {
			for _, f := range t.faults(cause) {
				list = append(list, each(at, []string{k.Property}, func(string) string { return badName + f.message })...)
			}
		}
		return list
	case *kind.FalseSchema:
		last := len(e.InstanceLocation) - 1
		if last >= 0 && t.guide.to(e.InstanceLocation[:last]).lacks(e.InstanceLocation[last]) {
			return []fault{{path: at, message: t.unknown(e.InstanceLocation[:last], e.InstanceLocation[last])}}
		}
	}
	return nil
}

// unknown is what is wrong with a member of the object at a place.
func (t translation) unknown(at []string, name string) string {
	t.run.path = make(location, len(at)+1)
	var declared []string
	if g := t.guide.to(at); g != nil {
		declared = sortedNames(g.members)
	}
	return t.run.unknown(name, declared[:min(len(declared), mostCandidates)])
}

func each(at string, names []string, words func(string) string) []fault {
	var list []fault
	for _, name := range names {
		list = append(list, fault{path: at + "/" + escapePointer(clip(name, longestSegment)), message: words(name)})
	}
	return list
}

// simple returns the words for a kind of error that stands alone.
func simple(e jsonschema.ErrorKind) string {
	switch k := e.(type) {
	case *kind.Minimum:
		return fmt.Sprintf(atLeast, inDigits(k.Want))
	case *kind.Maximum:
		return fmt.Sprintf(atMost, inDigits(k.Want))
	case *kind.ExclusiveMinimum:
		return fmt.Sprintf(greaterThan, inDigits(k.Want))
	case *kind.ExclusiveMaximum:
		return fmt.Sprintf(lessThan, inDigits(k.Want))
	case *kind.MultipleOf:
		return fmt.Sprintf(multipleOf, inDigits(k.Want))
	case *kind.MinLength:
		return count(k.Want, leastText, "character")
	case *kind.MaxLength:
		return count(k.Want, mostText, "character")
	case *kind.Pattern:
		return fmt.Sprintf(matching, k.Want)
	case *kind.Format:
		if f := formats[k.Want]; f != nil {
			return fmt.Sprintf(formatted, f.words)
		}
	case *kind.Not:
		return excluded
	}
	return counted(e)
}

// counted returns the words for a wrong count of items or members.
func counted(e jsonschema.ErrorKind) string {
	switch k := e.(type) {
	case *kind.MinItems:
		return count(k.Want, leastCount, "item")
	case *kind.MaxItems:
		return count(k.Want, mostCount, "item")
	case *kind.AdditionalItems:
		return "has more items than the schema allows"
	case *kind.UniqueItems:
		return fmt.Sprintf(equalItems, k.Duplicates[0], k.Duplicates[1])
	case *kind.Contains:
		return count(1, leastCount, "item") + " " + thatFits
	case *kind.MinContains:
		return count(k.Want, leastCount, "item") + " " + thatFits
	case *kind.MaxContains:
		return count(k.Want, mostCount, "item") + " " + thatFits
	case *kind.MinProperties:
		return count(k.Want, leastCount, "member")
	case *kind.MaxProperties:
		return count(k.Want, mostCount, "member")
	}
	return notAllowed
}

// inDigits returns a number in digits.
func inDigits(r *big.Rat) string {
	if r.IsInt() && len(r.Num().String()) <= 20 {
		return r.Num().String()
	}
	f, _ := r.Float64()
	return numeral(f)
}

func pointerTo(names []string) string {
	var b strings.Builder
	for _, name := range names {
		b.WriteByte('/')
		b.WriteString(escapePointer(clip(name, longestSegment)))
	}
	return b.String()
}

func compareFaults(a, b fault) int {
	return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.message, b.message))
}

// to returns the guide of the part at a place.
func (g *guide) to(names []string) *guide {
	for _, name := range names {
		switch {
		case g == nil:
			return nil
		case g.members[name] != nil:
			g = g.members[name].guide
		case g.rest != nil:
			g = g.rest
		default:
			i, err := strconv.Atoi(name)
			if err != nil || i < 0 {
				return nil
			}
			g = g.item(i)
		}
	}
	return g
}

// lacks reports whether the guide knows members, but none of this name.
func (g *guide) lacks(name string) bool {
	return g != nil && g.members != nil && g.members[name] == nil
}
