package jsonguard

import (
	"bytes"
)

// A scanner reads one text. What it keeps of the text it has read are the
// arrays and objects still open and the names of the objects among them.
type scanner struct {
	data   []byte
	limits Limits
	at     int // the next byte to read
	tokens int // structural characters read
	frames stack[frame]
	names  stack[name]           // of all open objects that have few, outermost first
	sets   []map[string]struct{} // of all open objects that have many, outermost first
	// unescaped holds the names that were written with an escape.
	unescaped []byte
}

// text reads the whole text: white space, one value, white space.
func (s *scanner) text() *Error {
	for {
		complete, err := s.value()
		for complete && err == nil {
			if s.frames.n == 0 {
				return s.end()
			}
			complete, err = s.follow()
		}
		if err != nil {
			return err
		}
	}
}

// end reads what follows the value, which must be white space.
func (s *scanner) end() *Error {
	if s.peek() != 0 || s.at < len(s.data) {
		return &Error{Kind: Trailing, Offset: s.at, Message: "something follows the JSON value; exactly one value is wanted"}
	}
	return nil
}

// value reads a scalar, or the beginning of an array or object. It reports
// whether the value is complete: if not, the next thing to read is a value too.
func (s *scanner) value() (complete bool, err *Error) {
	switch c := s.peek(); c {
	case '{', '[':
		return s.open(c)
	case '"':
		s.at++
		_, err := s.quoted()
		return true, err
	case 't':
		return true, s.word("true")
	case 'f':
		return true, s.word("false")
	case 'n':
		return true, s.word("null")
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return true, s.number()
	default:
		return false, s.missing("a value")
	}
}

// open reads the beginning of an array or object, up to its first value or to
// its end when it is empty.
func (s *scanner) open(bracket byte) (complete bool, err *Error) {
	if s.frames.n >= s.limits.Depth {
		return false, limited(TooDeep, s.at, s.limits.Depth, "arrays and objects are nested deeper than the limit of %d levels")
	}
	if err := s.structural(); err != nil {
		return false, err
	}
	s.frames.push(frame{object: bracket == '{', first: s.names.n})
	if s.peek() == bracket+2 { // '[' and '{' stand two before ']' and '}'
		return true, s.shut()
	}
	if bracket == '{' {
		return false, s.member()
	}
	return false, nil
}

// follow reads what follows a value inside an array or object: a comma, with
// the next name in an object, or the closing bracket.
func (s *scanner) follow() (complete bool, err *Error) {
	object := s.frames.top().object
	switch c := s.peek(); {
	case c == ',':
		if err := s.structural(); err != nil {
			return false, err
		}
		if object {
			return false, s.member()
		}
		return false, nil
	case c == '}' && object, c == ']' && !object:
		return true, s.shut()
	case object:
		return false, s.missing("a comma or a closing brace")
	default:
		return false, s.missing("a comma or a closing bracket")
	}
}

// shut reads the closing bracket of the innermost array or object.
func (s *scanner) shut() *Error {
	if err := s.structural(); err != nil {
		return err
	}
	f := *s.frames.top()
	s.frames.cut(s.frames.n - 1)
	s.names.cut(f.first)
	if f.many {
		s.sets = s.sets[:len(s.sets)-1]
	}
	return nil
}

// member reads the name of a member and the colon after it.
func (s *scanner) member() *Error {
	if s.peek() != '"' {
		return s.missing("a name in double quotes")
	}
	start := s.at
	s.at++
	escaped, err := s.quoted()
	if err != nil {
		return err
	}
	n := name{start: start + 1, end: s.at - 1}
	if escaped {
		n = s.unescape(n)
	}
	if !s.enter(n) {
		return &Error{Kind: DuplicateKey, Offset: start, Message: "an object has two members of the same name"}
	}
	if s.peek() != ':' {
		return s.missing("a colon")
	}
	return s.structural()
}

func (s *scanner) word(w string) *Error {
	for i := range len(w) {
		if s.at == len(s.data) || s.data[s.at] != w[i] {
			return s.missing("true, false or null")
		}
		s.at++
	}
	return nil
}

// structural reads and counts one structural character.
func (s *scanner) structural() *Error {
	if s.tokens >= s.limits.Tokens {
		return limited(TooMany, s.at, s.limits.Tokens, "the JSON text has more than the limit of %d structural characters (brackets, braces, colons and commas)")
	}
	s.tokens++
	s.at++
	return nil
}

// peek skips white space and returns the byte after it without reading it, or
// 0 at the end. A byte 0 in the text is no part of JSON either.
func (s *scanner) peek() byte {
	for s.at < len(s.data) {
		switch c := s.data[s.at]; c {
		case ' ', '\n', '\r', '\t':
			s.at++
		default:
			return c
		}
	}
	return 0
}

// missing returns the error for something else, or nothing, in the place of what.
func (s *scanner) missing(what string) *Error {
	if s.at == len(s.data) {
		return syntax(s.at, "the JSON text ends where "+what+" should be")
	}
	return syntax(s.at, "the JSON text has something else where "+what+" should be")
}

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

func (s *stack[T]) top() *T { return s.at(s.n - 1) }

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
