package compiler

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"strings"

	"github.com/dop251/goja"
	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/parser"
	"github.com/dop251/goja/unistring"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/js/jsvalue"
	"github.com/mcpd/mcpd/internal/js/syntax"
	"github.com/mcpd/mcpd/scripting/source"
)

// wrapperEnd is the end of a script that starts with [syntax.WrapperStart].
const wrapperEnd = "\n}})"

// wrapScript creates the source with the unchanged script, on the same lines as in its file.
func (c *compilation) wrapScript(async bool) {
	text := c.src.Text
	start := syntax.WrapperStart
	if !async {
		start = strings.Replace(start, "async ", "", 1)
	}
	if line := text.Pos(0).Line; line > 1 {
		start = strings.Repeat("\n", line-2) + start + "\n"
	}
	c.origin = Origin{
		src: start + c.text + c.end + wrapperEnd, text: text,
		body: segment{to: len(start), length: len(c.text)},
	}
}

// parseAndBuild passes the source to the engine. A panic of the engine becomes a diagnostic.
func (c *compilation) parseAndBuild() (p *Program) {
	defer func() {
		if bug := recover(); bug != nil {
			c.fail(c.src.Text.All(), "script-internal", "the script could not be compiled", fmt.Sprintf("the JavaScript engine failed on it: %v", bug))
		}
	}()
	function, tree := c.parse()
	if function == nil {
		return nil
	}
	return c.program(function, tree)
}

// parse returns the function of the source, and the tree.
func (c *compilation) parse() (*ast.FunctionLiteral, *ast.Program) {
	tree, err := parser.ParseFile(nil, compiledName, c.origin.src, 0, parser.WithDisableSourceMaps)
	if err != nil {
		c.syntaxError(err)
		return nil, nil
	}
	function := onlyFunction(tree)
	if function == nil {
		c.reject(diag.Diagnostic{
			Code: "script-syntax", Range: c.src.Text.Range(0, 0),
			Summary: "the " + c.kindName() + " is closed before its end", Detail: "remove the extra closing bracket",
		})
		return nil, nil
	}
	return function, tree
}

// onlyFunction returns the function literal of a tree. A script that closes the function around it
// creates more than one.
func onlyFunction(tree *ast.Program) *ast.FunctionLiteral {
	if len(tree.Body) != 1 {
		return nil
	}
	statement, ok := tree.Body[0].(*ast.ExpressionStatement)
	if !ok {
		return nil
	}
	function, ok := statement.Expression.(*ast.FunctionLiteral)
	if !ok || len(function.Body.List) != 1 {
		return nil
	}
	if _, ok := function.Body.List[0].(*ast.BlockStatement); !ok {
		return nil
	}
	return function
}

// program returns the program for a valid tree.
func (c *compilation) program(function *ast.FunctionLiteral, tree *ast.Program) *Program {
	if c.origin.lowered && !unwrapModule(function) {
		c.fail(c.src.Text.All(), "script-internal", "the script could not be compiled", "its lowered form has an unexpected shape")
		return nil
	}
	if c.src.Kind == source.Code {
		c.addImplicitReturn(function)
	}
	function.Async = awaits(function)
	found := c.analyze(function)
	var main *mainFunction
	if c.end != "" {
		if main = mainOf(function); !c.checkMain(main, found) {
			return nil
		}
		found = c.analyzeMain(main, found)
	}
	c.check(found)
	c.checkConcat(function.Body, found)
	switch {
	case main == nil && !c.checkShape(function):
		c.checkReturns(userStatements(function), found)
	case main != nil && main.body != nil:
		c.checkReturns(main.body.List, found)
	}
	p := &Program{
		Name: c.src.Name, Kind: c.src.Kind, Objects: c.src.Objects, Vars: c.src.Vars, BigInts: jsvalue.BigIntsAt(c.src.BigInts),
		Names: c.names(), uses: map[string]bool{}, Mentioned: found.names, computed: found.hasComputedAccess,
		Patterns: found.patterns, Origin: c.origin, Source: c.src, Imported: c.files, Size: c.read + len(c.src.Vars),
	}
	// A name that is declared somewhere may mean the global elsewhere.
	p.UsesGlobalThis = found.isReferenced("globalThis")
	p.Proxies = p.UsesGlobalThis || found.isReferenced("Proxy")
	p.Hosted = p.UsesGlobalThis || found.isReferenced("tools") || slices.ContainsFunc(c.names().groups, found.isReferenced)
	for _, name := range globalsOf(&c.src, c.names()) {
		if _, ok := found.refs[name]; ok {
			p.uses[name] = true
			p.Parameters = append(p.Parameters, name)
		}
	}
	if c.src.Kind == source.Code {
		p.MissingNames = c.missingNames(found)
		c.declareAssigned(function, found.undeclared)
	}
	if main != nil {
		c.passArguments(function, main, found)
	}
	if c.src.Coverage && c.src.Kind != source.Code {
		p.Statements = c.addCoverage(function)
		p.Parameters = append(p.Parameters, RanName)
	}
	disableFolding(function.Body)
	setParameters(function, p.Parameters)
	p.Code = c.code(tree)
	c.digest.Sum(p.Hash[:0])
	c.semantic.Sum(p.SemanticHash[:0])
	return p
}

func setParameters(function *ast.FunctionLiteral, names []string) {
	for _, name := range names {
		function.ParameterList.List = append(function.ParameterList.List, &ast.Binding{
			Target: &ast.Identifier{Name: unistring.NewFromString(name), Idx: function.ParameterList.Opening},
		})
	}
}

func (c *compilation) code(tree *ast.Program) *goja.Program {
	tree.File = file.NewFile(compiledName, "", 1) // without text to count lines in, so that stacks in scripts show neither a file nor a line
	code, err := goja.CompileAST(tree, true)
	if err != nil {
		c.syntaxError(err)
	}
	return code
}

// disableFolding prevents the engine from evaluating constant expressions when it compiles: this
// takes exponential time for 1 && 1 && …, and 9n ** 9n ** 9n cannot be interrupted. A constant in
// a sequence expression of one element is not constant for the engine, and has the same value.
// Literals with one sign stay constants.
func disableFolding(n ast.Node) {
	syntax.Children(n, disableFolding)
	switch n := n.(type) {
	case *ast.BinaryExpression:
		if constant(n.Left) {
			n.Left = &ast.SequenceExpression{Sequence: []ast.Expression{n.Left}}
		}
	case *ast.UnaryExpression:
		if _, nested := n.Operand.(*ast.UnaryExpression); nested && constant(n.Operand) {
			n.Operand = &ast.SequenceExpression{Sequence: []ast.Expression{n.Operand}}
		}
	}
}

// constant reports whether the engine treats an expression as a constant, after disableFolding.
func constant(n ast.Expression) bool {
	switch n := n.(type) {
	case *ast.NumberLiteral, *ast.StringLiteral, *ast.BooleanLiteral, *ast.NullLiteral:
		return true
	case *ast.UnaryExpression:
		return constant(n.Operand)
	}
	return false
}

// hashSource hashes everything that is known before imports are read.
func (c *compilation) hashSource() {
	s := c.src
	start, end := s.Text.Pos(0), s.Text.Pos(len(s.Text.Body()))
	objects, _ := json.Marshal(s.Objects)
	inputs, _ := json.Marshal(s.Inputs)
	for _, part := range []string{s.Name, s.Text.Body(), string(objects), string(inputs), string(s.Vars)} {
		c.hashPart(part)
	}
	if len(s.Members) > 0 {
		members, _ := json.Marshal(s.Members)
		c.hashPart(string(members))
	}
	if len(s.BigInts) > 0 || s.BigIntResult {
		places, _ := json.Marshal(s.BigInts)
		c.hashPart(string(places) + strconv.FormatBool(s.BigIntResult))
	}
	if s.Coverage {
		c.hashPart("coverage")
	}
	c.hashPart(string([]byte{byte(s.Kind), byte(s.Language)}))
	for _, part := range []string{s.Text.File(), s.Path} {
		writePart(c.digest, part)
	}
	for _, n := range []int{start.Line, start.Column, start.Byte, end.Line, end.Column, end.Byte} {
		_ = binary.Write(c.digest, binary.LittleEndian, int64(n))
	}
}

func (c *compilation) hashPart(part string) {
	writePart(c.digest, part)
	writePart(c.semantic, part)
}

func writePart(h hash.Hash, part string) {
	_ = binary.Write(h, binary.LittleEndian, int64(len(part)))
	h.Write([]byte(part))
}
