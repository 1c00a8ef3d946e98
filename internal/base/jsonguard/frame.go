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

// near is how many elements a stack keeps within itself.
const near = 32

// A stack keeps its first elements within itself, so that a scanner that
// needs no more of them lives without the heap.
type stack[T any] struct {
	n     int
	first [near]T
	rest  []T
}

// at returns the element i, counted from the bottom.
func (s *stack[T]) at(i int) *T {
	if i < near {
		return &s.first[i]
	}
	return &s.rest[i-near]
}

// top returns the element on top.
func (s *stack[T]) top() *T { return s.at(s.n - 1) }

// push puts an element on top.
func (s *stack[T]) push(e T) {
	if s.n < near {
		s.first[s.n] = e
	} else {
		s.rest = append(s.rest, e)
	}
	s.n++
}

// cut takes elements off until n are left.
func (s *stack[T]) cut(n int) {
	s.n = n
	s.rest = s.rest[:max(0, n-near)]
}
