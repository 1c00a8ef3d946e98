package scripting

import "strings"

// piece is a statement, a member of a class or a clause of a switch: the
// smallest part of a text that can be left out without touching the others.
type piece struct {
	start, end int
	// outer is the piece around this one, or -1.
	outer int
	// done says that the piece ends with ; or }, so that nothing is missing
	// behind it.
	done bool
	// fill is what can stand in its place.
	fill string
}

// holds says what stands inside of a bracket.
type holds int

const (
	holdsExpressions holds = iota
	holdsStatements
	holdsMembers // of a class
	holdsClauses // of a switch
	holdsHeader  // of a loop or a condition, or the parameters of a function
)

// nook is the inside of a bracket while pieces are cut.
type nook struct {
	holds holds
	// now is the piece that is being read, and outer the one that the bracket
	// stands in; -1 says that there is none.
	now, outer int
	// next is what a word such as class says of the next { here.
	next holds
	// first is the word that the piece begins with, and lacking says that it
	// needs another word behind its block.
	first   string
	lacking bool
	fill    string // of a header
}

// cutter cuts a text into pieces.
type cutter struct {
	lexer
	pieces []piece
	nooks  []nook
	// past and before are the token before the present one, and the one before that.
	past, before lexeme
}

// cutUp cuts a text as far as it can be read. The pieces of the result are in
// the order in which they begin.
func cutUp(text string, language Language) *cutter {
	c := &cutter{lexer: lexer{src: text, ts: language == TS}}
	c.nooks = []nook{{holds: holdsStatements, now: -1, outer: -1}}
	for t := c.next(); t.kind != tokenEnd; t = c.next() {
		c.token(t)
		c.before, c.past = c.past, t
	}
	for _, n := range c.nooks {
		if n.now >= 0 {
			c.pieces[n.now].end = c.past.end
		}
	}
	return c
}

func (c *cutter) token(t lexeme) {
	for len(c.nooks) > len(c.braces)+1 {
		c.end(&c.nooks[len(c.nooks)-1])
		c.nooks = c.nooks[:len(c.nooks)-1]
	}
	n := &c.nooks[len(c.nooks)-1]
	opened := len(c.nooks) < len(c.braces)+1
	switch {
	case n.holds == holdsExpressions || n.holds == holdsHeader && n.now >= 0:
	case t.kind == tokenSemicolon && n.holds != holdsHeader:
		if n.now >= 0 {
			c.pieces[n.now].end, c.pieces[n.now].done = t.end, true
			n.now, n.next = -1, holdsExpressions
		}
	case t.kind == tokenClose:
	case n.now < 0 || c.begins(t, n):
		c.end(n)
		c.begin(t, n)
	}
	c.announced(t, n)
	if opened {
		outer := n.now
		if n.holds == holdsExpressions {
			outer = n.outer
		}
		inner := nook{holds: c.inside(t, n), now: -1, outer: outer}
		if fill, ok := c.header(t); ok {
			inner.holds, inner.fill = holdsHeader, fill
		}
		c.nooks = append(c.nooks, inner)
	}
}

// begin begins a piece.
func (c *cutter) begin(t lexeme, n *nook) {
	fill := ";"
	switch n.holds {
	case holdsClauses:
		fill = ""
	case holdsHeader:
		fill = n.fill
	}
	c.pieces = append(c.pieces, piece{start: t.start, outer: n.outer, fill: fill})
	n.now, n.next, n.first, n.lacking = len(c.pieces)-1, holdsExpressions, t.text, t.text == "do" || t.text == "try"
}

// header says what can stand in the bracket that the token opens, if it belongs
// to a statement with a block of its own.
func (c *cutter) header(t lexeme) (fill string, ok bool) {
	switch {
	case t.text != "(":
		return "", false
	case c.past.text == "for" && !c.past.member || c.past.text == "await" && c.before.text == "for":
		return ";;", true
	case c.past.kind == tokenKeyword && (controls(c.past.text) || c.past.text == "switch"):
		return "0", true
	}
	return "", c.past.text == "function" || c.before.text == "function"
}

// end ends the piece that is being read behind the token before.
func (c *cutter) end(n *nook) {
	if n.now >= 0 {
		c.pieces[n.now].end, c.pieces[n.now].done = c.past.end, c.past.text == "}" && !n.lacking
		n.now = -1
	}
}

// announced keeps what a word says of the next { of the same statement.
func (c *cutter) announced(t lexeme, n *nook) {
	if n.lacking && t.text != n.first && continues(t.text, n.first) {
		n.lacking = false
	}
	switch {
	case t.member:
	case t.text == "class":
		n.next = holdsMembers
	case t.text == "switch":
		n.next = holdsClauses
	case t.text == "function" || t.text == "namespace":
		n.next = holdsStatements
	}
}

// inside says what stands in the bracket that the token opens.
func (c *cutter) inside(t lexeme, n *nook) holds {
	if t.text != "{" {
		return holdsExpressions
	}
	next := n.next
	n.next = holdsExpressions
	switch last := c.past.text; {
	case last == "=>" || last == controlEnd || c.past.kind == tokenKeyword && opensBlock(last):
		return holdsStatements
	case last == ")" && next == holdsExpressions:
		return holdsStatements
	case last == "" || last == ";" || last == "{" || last == "}":
		if n.holds == holdsStatements {
			return holdsStatements
		}
	case c.past.kind != tokenOperator && c.past.kind != tokenComma && c.past.kind != tokenOpen:
		return next
	}
	return holdsExpressions
}

// opensBlock reports whether a block follows the keyword.
func opensBlock(keyword string) bool {
	switch keyword {
	case "else", "try", "finally", "do", "catch":
		return true
	}
	return false
}

// begins reports whether a piece begins at a token although no semicolon says so.
func (c *cutter) begins(t lexeme, n *nook) bool {
	word := t.kind == tokenWord || t.kind == tokenKeyword
	switch last := c.past; {
	case n.holds == holdsClauses:
		return t.kind == tokenKeyword && (t.text == "case" || t.text == "default")
	case word && (infix(t.text) || continues(t.text, n.first)):
		return false
	case last.text == "}":
		return word || t.kind == tokenOperand
	case !t.newline:
		return false
	case last.endsOperand() && !prefixes(last):
		return word || t.kind == tokenOperand
	default:
		return n.holds == holdsStatements && word && commands(t.text) && last.text != controlEnd && last.text != "=>" && last.text != ":" && last.text != "else" && last.text != "do"
	}
}

// continues reports whether a word goes on with the statement that begins with first.
func continues(word, first string) bool {
	switch word {
	case "catch", "finally", "except", "rescue":
		return first == "try"
	case "while":
		return first == "do"
	case "from":
		return first == "import" || first == "export"
	}
	return false
}

// commands reports whether a word can be nothing but the beginning of a
// statement where a line begins with it.
func commands(word string) bool {
	switch word {
	case "const", "let", "var", "if", "for", "while", "do", "switch", "try", "return", "throw", "break", "continue", "import", "export", "debugger":
		return true
	}
	return false
}

// at returns the innermost piece that holds the byte at an offset, or -1.
func (c *cutter) at(offset int) int {
	found := -1
	for i, p := range c.pieces {
		if p.start <= offset && offset < p.end {
			found = i
		}
	}
	return found
}

// endingAt returns the innermost piece behind which there is nothing but space
// up to an offset, or -1.
func (c *cutter) endingAt(offset int) int {
	end := behindSpace(c.src, offset)
	found := -1
	for i, p := range c.pieces {
		if p.end == end {
			found = i
		}
	}
	return found
}

// behindSpace returns where the white space in front of an offset begins.
func behindSpace(text string, offset int) int {
	return len(strings.TrimRight(text[:offset], " \t\r\n"))
}
