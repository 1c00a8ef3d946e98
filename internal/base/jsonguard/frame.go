package jsonguard

import "bytes"

// few is how many names of an object are compared one by one; from there on a
// set takes over, so that an object costs linear time however many it has.
const few = 16

// A frame is an array or object that is open.
type frame struct {
	object bool
	// many says that the object has more than a few names and has the last of
	// scanner.sets for them when it is the innermost one that has.
	many bool
	// first is where the names of an object with few of them begin in scanner.names.
	first int
}

// A name is the place of an object's member name: in scanner.unescaped when it
// was written with an escape, in the text otherwise.
type name struct {
	start, end int
	escaped    bool
}

// spell returns the bytes of the name.
func (s *scanner) spell(n name) []byte {
	if n.escaped {
		return s.unescaped[n.start:n.end]
	}
	return s.data[n.start:n.end]
}

// enter adds the name to the innermost object. It reports false when the
// object has it already.
func (s *scanner) enter(n name) bool {
	f := s.frames.top()
	if f.many {
		return s.enterMany(n)
	}
	spelled := s.spell(n)
	for i := f.first; i < s.names.n; i++ {
		if bytes.Equal(s.spell(*s.names.at(i)), spelled) {
			return false
		}
	}
	if s.names.n-f.first < few {
		s.names.push(n)
		return true
	}
	f.many = true
	// Go seeds the hash of each map at random, so that names cannot be made to collide.
	s.sets = append(s.sets, make(map[string]struct{}, 4*few))
	for i := f.first; i < s.names.n; i++ {
		s.enterMany(*s.names.at(i))
	}
	s.names.cut(f.first)
	return s.enterMany(n)
}

// enterMany is enter for an object with many names.
func (s *scanner) enterMany(n name) bool {
	set, spelled := s.sets[len(s.sets)-1], s.spell(n)
	if _, seen := set[string(spelled)]; seen {
		return false
	}
	set[string(spelled)] = struct{}{}
	return true
}
