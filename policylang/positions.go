package policylang

import (
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/common/ast"

	"github.com/mcpd/mcpd/diag"
)

// places knows where the parts of an expression stand. It is immutable once
// it is bound to a tree.
type places struct {
	role   role
	text   diag.Text
	tokens []token
	tree   ast.Expr
	info   *ast.SourceInfo
	// wide holds the byte offset of every code point, and is nil when the text
	// is all ASCII.
	wide []int
}

// bind ties the places to the tree that was parsed from the text.
func (p *places) bind(tree *ast.AST) {
	p.tree, p.info = tree.Expr(), tree.SourceInfo()
	body := p.text.Body()
	if utf8.RuneCountInString(body) == len(body) {
		return
	}
	for i := range body {
		p.wide = append(p.wide, i)
	}
	p.wide = append(p.wide, len(body))
}

// forLater returns the places without the tree, for as long as the program
// lives.
func (p *places) forLater() *places {
	kept := *p
	kept.tree = nil
	return &kept
}

// byteOffset turns CEL's count of code points into bytes.
func (p *places) byteOffset(runes int) int {
	if p.wide == nil {
		return max(0, min(runes, len(p.text.Body())))
	}
	return p.wide[max(0, min(runes, len(p.wide)-1))]
}

// offset returns the byte that CEL says node id stands at: for a member its
// dot, for an operator the sign, for a call its bracket.
func (p *places) offset(id int64) (int, bool) {
	if p.info == nil {
		return 0, false
	}
	r, ok := p.info.GetOffsetRange(id)
	if !ok {
		return 0, false
	}
	return p.byteOffset(int(r.Start)), true
}

// tokenAt returns the index of the token at or before offset.
func (p *places) tokenAt(offset int) int {
	i := sort.Search(len(p.tokens), func(i int) bool { return p.tokens[i].start > offset })
	return max(0, i-1)
}

func (p *places) word(i int) string {
	if i < 0 || i >= len(p.tokens) {
		return ""
	}
	return p.text.Body()[p.tokens[i].start:p.tokens[i].end]
}

// extent returns the bytes that e is written in.
func (p *places) extent(e ast.Expr) (start, end int) {
	first, last := len(p.tokens), -1
	visit(e, func(part ast.Expr) {
		if offset, ok := p.offset(part.ID()); ok {
			i := p.tokenAt(offset)
			first, last = min(first, i), max(last, i)
			if part.Kind() == ast.SelectKind && p.word(i) == "." {
				last = max(last, i+1)
			}
		}
	})
	if last < 0 {
		return 0, len(p.text.Body())
	}
	first, last = p.balance(first, min(last, len(p.tokens)-1))
	return p.tokens[first].start, p.tokens[last].end
}

// balance widens a run of tokens until it closes what it opens and opens what
// it closes.
func (p *places) balance(first, last int) (int, int) {
	depth, lowest := 0, 0
	for i := first; i <= last; i++ {
		depth += bracket(p.word(i))
		lowest = min(lowest, depth)
	}
	for depth > 0 && last+1 < len(p.tokens) {
		last++
		depth += bracket(p.word(last))
	}
	for lowest < 0 && first > 0 {
		first--
		lowest += bracket(p.word(first))
	}
	return first, last
}

func bracket(word string) int {
	switch word {
	case "(", "[", "{":
		return 1
	case ")", "]", "}":
		return -1
	}
	return 0
}

// point returns the bytes of the one token that tells node id best: the name
// of a member or function, or else the token that CEL means.
func (p *places) point(id int64) (start, end int) {
	offset, ok := p.offset(id)
	if !ok || len(p.tokens) == 0 {
		return 0, len(p.text.Body())
	}
	i := p.tokenAt(offset)
	switch {
	case p.word(i) == "." && i+1 < len(p.tokens):
		i++
		if p.word(i) == "?" && i+1 < len(p.tokens) {
			i++
		}
	case p.word(i) == "(" && i > 0 && p.tokens[i-1].kind == tokenIdent:
		i--
	}
	return p.tokens[i].start, p.tokens[i].end
}

// member returns the name of the member that node id reads, or "".
func (p *places) member(id int64) string {
	offset, ok := p.offset(id)
	if !ok {
		return ""
	}
	i := p.tokenAt(offset)
	if p.word(i) != "." || i+1 >= len(p.tokens) || p.tokens[i+1].kind != tokenIdent {
		return ""
	}
	return strings.Trim(p.word(i+1), "`")
}

// at returns the range in the file of the bytes from start up to end.
func (p *places) at(start, end int) diag.Range { return p.text.Range(start, end) }
