package jsonguard

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
