package schema

import "bytes"

// usualDepth is how deep most values go.
const usualDepth = 4

// Args decodes, completes and validates the arguments of a call. It returns
// the decoded value, its JSON text, and at most 50 violations ordered by path;
// when there are any, value and text are nil.
//
// raw is the text that the caller sent, which has passed a gate; nothing, or
// white space alone, stands for {}. Members that are absent and have a default are added:
// to the arguments, to objects inside them, and to those inside arrays, but
// not inside alternatives, of which nobody knows which one is meant. Then the
// whole is validated. Last, extra is added: values that the server supplies
// itself, under names that the caller must not use. They are not part of the
// schema and not validated here.
//
// In value, a number is an int64 where the schema says integer and a float64
// everywhere else; an integer that no int64 holds is a violation. The text is
// raw with additions written into it, and is raw itself when there are none.
func (s *Schema) Args(raw []byte, extra map[string]any) (value map[string]any, text []byte, v []Violation) {
	if len(bytes.TrimLeft(raw, " \t\r\n")) == 0 {
		raw = []byte("{}")
	}
	d := decoder{data: raw, fill: true, room: roomForDefaults, path: make(location, 0, usualDepth)}
	decoded, ok := d.document(s.guide)
	if !ok {
		return nil, nil, []Violation{{Message: d.flaw}}
	}
	faults := s.faults(decoded, len(raw), true)
	for _, path := range d.unheld {
		faults = append(faults, fault{path: path, message: unheld})
	}
	value, ok = decoded.(map[string]any)
	if !ok {
		return nil, nil, append(violations(faults), notArguments(faults, decoded)...)
	}
	if len(extra) > 0 {
		faults = append(faults, d.supply(value, extra)...)
	}
	if len(faults) > 0 {
		return nil, nil, violations(faults)
	}
	if len(d.patches) > 0 {
		raw = splice(raw, d.patches)
	}
	return value, raw, nil
}

// notArguments is the violation of a value that is no object, where the schema
// allows it.
func notArguments(faults []fault, v any) []Violation {
	if len(faults) > 0 {
		return nil
	}
	return []Violation{{Message: objectType.mustBe(typeOf(v))}}
}

// supply adds the values that the server supplies to the arguments, which the
// decoder has read.
func (d *decoder) supply(arguments map[string]any, extra map[string]any) []fault {
	var faults []fault
	brace := bytes.LastIndexByte(d.data, '}')
	for _, name := range sortedNames(extra) {
		at := location{member(name)}.pointer()
		if _, there := arguments[name]; there {
			r := run{arguments: true, path: location{member(name)}}
			faults = append(faults, fault{path: at, message: r.unknown(name, nil)})
			continue
		}
		text, err := appendMember(nil, name, extra[name])
		if err != nil {
			faults = append(faults, fault{path: at, message: "cannot be written as JSON"})
			continue
		}
		d.patches = append(d.patches, patch{at: brace, first: len(arguments) == 0, text: text})
		arguments[name] = extra[name]
	}
	return faults
}
