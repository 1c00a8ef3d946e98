package sqltext

import (
	"slices"
	"strconv"
	"strings"
)

// Dialect is how a database writes strings, names and comments.
type Dialect int

// The dialects.
const (
	SQLite Dialect = iota
	PostgreSQL
)

// Statement is one statement.
type Statement struct {
	// Text is the statement without the semicolon and the comments behind it.
	Text string
	// Parameters are the names of its parameters, each once, in order.
	Parameters []string
	// Verb is its first word, in upper case.
	Verb string
	uses []use
}

// use is a parameter at offsets of a text.
type use struct{ start, end int }

// Mistake is what keeps a text from being a statement.
type Mistake struct {
	// Offset is where it stands.
	Offset          int
	Summary, Detail string
}

// Error returns what is wrong and what to do.
func (m *Mistake) Error() string { return m.Summary + ": " + m.Detail }

// Parse reads the one statement that a text holds. Its error is a [*Mistake].
func Parse(text string, dialect Dialect) (*Statement, error) {
	l := lexer{text: text, dialect: dialect}
	s := &Statement{}
	last, over := 0, false
	for {
		t, mistake := l.next()
		switch {
		case mistake != nil:
			return nil, mistake
		case t.kind == end:
			if s.Text = strings.Trim(text[:last], spaces); s.Verb == "" {
				return nil, &Mistake{0, "there is no statement", "write one, such as SELECT name FROM users WHERE id = :id"}
			}
			lead := len(text) - len(strings.TrimLeft(text, spaces))
			for i := range s.uses {
				s.uses[i].start -= lead
				s.uses[i].end -= lead
			}
			return s, nil
		case t.kind == separator:
			over = true
			continue
		case over:
			return nil, &Mistake{t.start, "there is a second statement", "write one statement in each block"}
		}
		last = t.end
		s.take(text, t)
	}
}

// spaces are what a statement may begin and end with; the databases agree on them.
const spaces = " \t\n\v\f\r"

// take notices a token.
func (s *Statement) take(text string, t token) {
	if s.Verb == "" {
		s.Verb = "?"
		if t.kind == name {
			s.Verb = strings.ToUpper(text[t.start:t.end])
		}
	}
	if t.kind == parameter {
		s.uses = append(s.uses, use{t.start, t.end})
		if named := text[t.start+1 : t.end]; !slices.Contains(s.Parameters, named) {
			s.Parameters = append(s.Parameters, named)
		}
	}
}

// Numbered returns the statement with $1 for its first parameter, and so on.
func (s *Statement) Numbered() string {
	var b strings.Builder
	from := 0
	for _, u := range s.uses {
		b.WriteString(s.Text[from:u.start])
		b.WriteString("$" + strconv.Itoa(1+slices.Index(s.Parameters, s.Text[u.start+1:u.end])))
		from = u.end
	}
	b.WriteString(s.Text[from:])
	return b.String()
}
