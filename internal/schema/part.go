package schema

// A part is one schema within a schema.
type part struct {
	// at is its JSON pointer from the root.
	at string
	// base is the URI that its references are relative to.
	base string
	// dialect is that of the whole.
	dialect dialect
	// keys are its members; nil when it is true or false.
	keys map[string]any
	// never is the schema false.
	never bool
	// subs are the parts within it, by keyword.
	subs map[string][]sub
	// ref is what $ref refers to.
	ref *part
	// dynamic are what $dynamicRef or $recursiveRef may refer to.
	dynamic []*part

	node  *node
	guide *guide
}

// A sub is a part within another, and its key or index there.
type sub struct {
	name string
	part *part
}

// only returns the part under a keyword that takes one schema.
func (p *part) only(keyword string) *part {
	if list := p.subs[keyword]; len(list) > 0 {
		return list[0].part
	}
	return nil
}

// text returns the value of a keyword that is a string, or "".
func (p *part) text(keyword string) string {
	s, _ := p.keys[keyword].(string)
	return s
}

// refAlone reports whether a reference is all that counts, as it was before
// draft 2019-09.
func (p *part) refAlone() bool { return p.ref != nil && p.dialect < draft2019 }

// same returns the parts that are held against the same value, except for
// those in dynamic, of which one is.
func (p *part) same() []*part {
	if p.refAlone() {
		return []*part{p.ref}
	}
	var list []*part
	if p.ref != nil {
		list = append(list, p.ref)
	}
	for _, name := range sortedNames(p.subs) {
		if keywords[name].how == inPlace {
			for _, s := range p.subs[name] {
				list = append(list, s.part)
			}
		}
	}
	return list
}
