package jsonguard

import (
	"bytes"
)

// A scanner reads one text. It stores only the open arrays and objects, and the names
// in open objects.
type scanner struct {
	data   []byte
	limits Limits
	at     int // next byte to read
	tokens int // structural characters read
	frames stack[frame]
	names  stack[name]           // of open objects with few names, outermost first
	sets   []map[string]struct{} // of open objects with many names, outermost first
	// unescaped holds the names that contained escapes.
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

// end reads the rest after the value, which must be white space.
func (s *scanner) end() *Error {
	if s.peek() != 0 || s.at < len(s.data) {
		return &Error{Kind: Trailing, Offset: s.at, Message: "there is text after the JSON value; want exactly one value"}
	}
	return nil
}

// value reads a scalar, or the start of an array or object. If the value is not
// complete, another value follows.
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

// open reads the start of an array or object, up to its first value, or up to its end
// if it is empty.
func (s *scanner) open(bracket byte) (complete bool, err *Error) {
	if s.frames.n >= s.limits.Depth {
		return false, limited(TooDeep, s.at, s.limits.Depth, "arrays and objects are nested deeper than the limit of %d levels")
	}
	if err := s.structural(); err != nil {
		return false, err
	}
	s.frames.push(frame{object: bracket == '{', first: s.names.n})
	if s.peek() == bracket+2 { // '[' and '{' are two before ']' and '}'
		return true, s.shut()
	}
	if bracket == '{' {
		return false, s.member()
	}
	return false, nil
}

// follow reads the text after a value in an array or object: a comma, plus the next
// name in an object, or the closing bracket.
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

// member reads a member name and the colon after it.
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

// peek skips white space and returns the next byte without reading it, or 0 at the end.
// A zero byte in the text is not valid JSON either.
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

// missing returns the error for text where what is required.
func (s *scanner) missing(what string) *Error {
	if s.at == len(s.data) {
		return syntax(s.at, "the JSON text ends where "+what+" should be")
	}
	return syntax(s.at, "the JSON text has an unexpected character where "+what+" should be")
}

// few is the number of names in an object that are compared one by one. Above it a set
// is used, so that an object costs linear time.
const few = 16

// A frame is an open array or object.
type frame struct {
	object bool
	// many means that the names of the object are in a set. The innermost such object
	// uses the last element of scanner.sets.
	many bool
	// first is the index of the first name of the object in scanner.names.
	first int
}

// A name is the location of a member name: in scanner.unescaped if it contained
// escapes, otherwise in the text.
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

// enter adds the name to the innermost object, and returns false if it is a duplicate.
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
	// Go seeds the hash of each map randomly, so that collisions cannot be forced.
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

// near is the number of inline elements of a stack.
const near = 32

// A stack stores its first elements inline, so that a small scanner needs no heap.
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

// cut truncates the stack to n elements.
func (s *stack[T]) cut(n int) {
	s.n = n
	s.rest = s.rest[:max(0, n-near)]
}
