package policylang

import (
	"cmp"
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/mcpd/mcpd/diag"
)

// The codes of the diagnostics.
const (
	codeSyntax     = "cel-syntax"
	codeTooComplex = "cel-too-complex"
	codeArgument   = "cel-unknown-argument"
	codeName       = "cel-unknown-name"
	codeType       = "cel-type"
	codeResult     = "cel-result"
	codeCost       = "cel-cost"
	codeSchema     = "cel-schema"
	codeClaimed    = "cel-claimed-identity"
	codeConstant   = "cel-constant"
	codeEnum       = "cel-enum"
	codeOptional   = "cel-optional-argument"
)

// mismatched is the summary for a type error of CEL without a more specific message.
const mismatched = "the types in this expression do not match"

// problem is the content of a diagnostic, without its range.
type problem struct {
	severity        diag.Severity
	code            string
	summary, detail string
	// dependsOnTool means that the problem depends on the tool, so a note names the tool.
	dependsOnTool bool
}

// report adds a diagnostic for the bytes from start up to end.
func (c *compiler) report(at *positions, start, end int, p problem) {
	d := diag.Diagnostic{
		Severity: p.severity, Code: p.code, Summary: p.summary, Detail: p.detail,
		Range: at.at(start, end),
	}
	if o := c.owner; o != nil {
		d.Notes = append(d.Notes, diag.Note{Range: o.where, Message: fmt.Sprintf("in %s %q", o.what, o.name)})
	}
	if p.dependsOnTool && c.tool != nil {
		d.Notes = append(d.Notes, diag.Note{
			Range: c.tool.Range, Message: c.toolName() + " " + c.argumentList(),
		})
	}
	c.diags = append(c.diags, d)
}

// reportNode is report for a full node.
func (c *compiler) reportNode(at *positions, e ast.Expr, p problem) {
	start, end := at.nodeRange(e)
	c.report(at, start, end, p)
}

// argumentList describes the arguments of the tool.
func (c *compiler) argumentList() string {
	args := c.scope.roots["args"]
	switch {
	case args == nil || args.fields == nil:
		return "takes any arguments"
	case len(args.fields) == 0:
		return "takes no arguments"
	}
	return "takes " + enumerate(args.names())
}

// enumerate joins names, and abbreviates a long list.
func enumerate(names []string) string {
	const most = 12
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// reportSyntaxError reports the first error of CEL's parser. Its further errors are guesses.
func (c *compiler) reportSyntaxError(at *positions, err *common.Error) {
	offset := len(at.text.Body())
	if err.Location.Line() > 0 {
		offset = at.text.Offset(err.Location.Line(), err.Location.Column()+1)
	}
	i := at.tokenAt(offset)
	p := problem{code: codeSyntax}
	p.summary, p.detail = syntaxWords(at, i, err.Message)
	c.report(at, at.tokens[i].start, at.tokens[i].end, p)
}

func syntaxWords(at *positions, i int, message string) (summary, detail string) {
	switch {
	case strings.HasPrefix(message, "reserved identifier: "):
		name := strings.TrimPrefix(message, "reserved identifier: ")
		if name == "var" {
			return "there is no \"var\" here", "in policies, write vars.* for variables"
		}
		return fmt.Sprintf("%q is a reserved word", name), "use another name"
	case strings.Contains(message, "recursion limit"):
		return "the expression is nested too deeply", "split it into several policies, or use a list"
	case strings.Contains(message, "invalid argument to has()"):
		return "has() needs a member, such as args.amount", "write has(args.name)"
	case strings.Contains(message, "must be a simple name"), strings.Contains(message, "is not an identifier"),
		strings.Contains(message, "must be a simple identifier"), strings.Contains(message, "must be simple identifiers"):
		return "the first argument here must be a name for the elements", "such as x in exists(x, x == 'a')"
	case strings.Contains(message, "literal"):
		return fmt.Sprintf("%s is not a valid number", shorten(at.word(i))), "integers go up to 9223372036854775807"
	case at.tokens[i].kind == tokenEOF:
		return "the expression ends too early", fmt.Sprintf("add what is missing after %s", shorten(at.word(i-1)))
	case strings.HasPrefix(message, "Syntax error:"):
		return "unexpected " + shorten(at.word(i)), "an operand or an operator is missing before it"
	}
	return "this is not a valid expression", "CEL says: " + message
}

// shorten quotes a part of the expression, and truncates it if it is long.
func shorten(word string) string {
	const most = 32
	if runes := []rune(word); len(runes) > most {
		word = string(runes[:most]) + "…"
	}
	return quote(word)
}

// typeName describes a type in the terms of the tool language, with an article.
func typeName(t *types.Type) string { return typeWords(t.String()) }

// typeWords is typeName for a type in the notation of CEL's messages.
func typeWords(t string) string {
	name, inner, _ := strings.Cut(strings.TrimSuffix(t, ")"), "(")
	switch name {
	case "list":
		return "a list" + elementWords[inner]
	case "map":
		_, values, _ := strings.Cut(inner, ", ")
		return "a map" + elementWords[values]
	case "wrapper":
		return typeWords(inner) + " or null"
	}
	return cmp.Or(simpleTypes[name], "an object")
}

// simpleTypes describe types without parameters; elementWords describe element types of lists
// and maps.
var (
	simpleTypes = map[string]string{
		"bool": "true or false", "int": "an integer", "uint": "an unsigned integer", "double": "a number",
		"string": "a string", "bytes": "bytes", "null": "null", "null_type": "null", "type": "a type",
		"timestamp": "a timestamp", "google.protobuf.Timestamp": "a timestamp",
		"duration": "a duration", "google.protobuf.Duration": "a duration",
		"optional_type": "an optional value", "net.IP": "an IP address", "net.CIDR": "a network",
		"dyn": "a value of any type", "any": "a value of any type", "error": "a value of any type", "!error!": "a value of any type",
	}
	elementWords = map[string]string{"int": " of integers", "double": " of numbers", "string": " of strings", "bool": " of bools"}
)

// signOf returns the sign of a binary operator, or "".
func signOf(function string) string {
	if function == operators.In {
		return "in"
	}
	sign, ok := operators.FindReverseBinaryOperator(function)
	if !ok {
		return ""
	}
	return sign
}

// positions maps the parts of an expression to positions. It is immutable after bind.
type positions struct {
	role   role
	text   diag.Text
	tokens []token
	tree   ast.Expr
	info   *ast.SourceInfo
	// wide holds the byte offset of each code point. It is nil if the text is ASCII.
	wide []int
}

// bind attaches the tree parsed from the text.
func (p *positions) bind(tree *ast.AST) {
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

// withoutTree returns a copy without the tree, to keep as long as the program.
func (p *positions) withoutTree() *positions {
	kept := *p
	kept.tree = nil
	return &kept
}

// byteOffset converts an offset in code points, as CEL counts, to bytes.
func (p *positions) byteOffset(runes int) int {
	if p.wide == nil {
		return max(0, min(runes, len(p.text.Body())))
	}
	return p.wide[max(0, min(runes, len(p.wide)-1))]
}

// offset returns the byte offset that CEL records for a node: the dot of a member, the sign of
// an operator, the bracket of a call.
func (p *positions) offset(id int64) (int, bool) {
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
func (p *positions) tokenAt(offset int) int {
	i := sort.Search(len(p.tokens), func(i int) bool { return p.tokens[i].start > offset })
	return max(0, i-1)
}

func (p *positions) word(i int) string {
	if i < 0 || i >= len(p.tokens) {
		return ""
	}
	return p.text.Body()[p.tokens[i].start:p.tokens[i].end]
}

// nodeRange returns the byte range of e.
func (p *positions) nodeRange(e ast.Expr) (start, end int) {
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

// balance extends a token range until its brackets are balanced.
func (p *positions) balance(first, last int) (int, int) {
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

// tokenRange returns the byte range of the token that identifies a node best: the name of a
// member or function, or else the token at CEL's offset.
func (p *positions) tokenRange(id int64) (start, end int) {
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

// member returns the name of the member that a node reads, or "".
func (p *positions) member(id int64) string {
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
func (p *positions) at(start, end int) diag.Range { return p.text.Range(start, end) }
