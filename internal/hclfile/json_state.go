package hclfile

// jsonState is what stands open at a place of a JSON text.
type jsonState struct {
	open []byte
	// text is where the string begins that the place is in, or -1.
	text int
	// key: the last string was the name of a member, and nothing follows it yet.
	key bool
	// member: the next string is the name of a member.
	member bool
}

func (s *jsonState) inObject() bool { return len(s.open) > 0 && s.open[len(s.open)-1] == '{' }

// state reads the text up to an offset.
func (m *jsonMender) state(at int) *jsonState {
	s := &jsonState{text: -1}
	for i := 0; i < at; i++ {
		i = s.read(m.text, i)
	}
	return s
}

// read takes in one byte, of a string two where they are an escape, and returns
// the offset of the last one.
func (s *jsonState) read(text []byte, i int) int {
	c := text[i]
	if s.text >= 0 {
		switch {
		case c == '\\':
			return i + 1
		case c == '"':
			s.key, s.member, s.text = s.member, false, -1
		}
		return i
	}
	switch c {
	case '"':
		s.text = i
	case '{', '[':
		s.open = append(s.open, c)
		s.member, s.key = c == '{', false
	case '}', ']':
		s.open = s.open[:max(len(s.open)-1, 0)]
		s.member, s.key = false, false
	case ',':
		s.member, s.key = s.inObject(), false
	case ':':
		s.key = false
	}
	return i
}

// memberEnd returns where the member ends that begins at an offset, or -1.
func (m *jsonMender) memberEnd(at int) int {
	s := &jsonState{text: -1}
	for i := at; i < len(m.text); i++ {
		if c := m.text[i]; s.text < 0 && len(s.open) == 0 && (c == ',' || c == '}' || c == ']') {
			return i
		}
		i = s.read(m.text, i)
	}
	return -1
}
