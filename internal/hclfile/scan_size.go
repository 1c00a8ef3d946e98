package hclfile

import "fmt"

// scanSize is what HCL's parser would have to do, in words: a token is one, and
// so are each wordBytes of its text.
type scanSize struct {
	// file is for the whole text, definition for what stands since the last
	// definition ended.
	file, definition int
	// began is where the current definition begins, or negative before that.
	began int
	// definitions is how many ended.
	definitions int
}

// weigh counts what was read since offset at, when there were so many heredocs.
// Blanks between tokens are free, and so is the text of literal heredocs.
func (s *scanner) weigh(at, heredocs int) {
	read := s.at - at
	if c := s.src[at]; read == 1 && (c == ' ' || c == '\t' || c == '\r') {
		return
	}
	for _, h := range s.heredocs[heredocs:] {
		read -= h.end - h.start
	}
	if c := s.src[at]; s.size.began < 0 && c != '\n' && c != '}' {
		s.size.began = at
	}
	words := 1 + read/wordBytes
	s.size.file += words
	s.size.definition += words
	switch {
	case s.size.definition > maxDefinition:
		s.refuse("too-large", max(s.size.began, 0), fmt.Sprintf("the definition that begins here holds more than %d words and signs", maxDefinition),
			fmt.Sprintf("split it, or put data into a file of its own, which a script imports; long text counts as one word for each %d bytes", wordBytes))
	case s.size.file > maxWords:
		s.refuse("too-large", at, fmt.Sprintf("the file holds more than %d words and signs before this place", maxWords), "split it into several files")
	}
}

// endDefinition notes that a brace closed at the top of the file.
func (s *scanner) endDefinition() {
	s.size.definition, s.size.began = 0, -1
	if s.size.definitions++; s.size.definitions > maxDefinitions {
		s.refuse("too-large", s.at, fmt.Sprintf("the file holds more than %d definitions", maxDefinitions), "split it into several files")
	}
}
