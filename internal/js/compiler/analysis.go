package compiler

import (
	"slices"
	"strings"

	"github.com/dop251/goja/ast"
	"github.com/dop251/goja/file"
	"github.com/dop251/goja/token"

	"github.com/mcpd/mcpd/internal/js/syntax"
	"github.com/mcpd/mcpd/scripting/source"
)

// analysis is the result of one walk over the syntax tree of a script.
type analysis struct {
	root ast.Node // the tree; nil if only tokens were read

	references
	declarations
	sharing
	promises
	agentCode
	engineLimits
}

// references are the uses of names and properties.
type references struct {
	// refs has the identifiers that are read or called, with the position of the first use.
	refs map[string]file.Idx
	// typeofTested has the operands of typeof, which may be undefined.
	typeofTested map[string]bool
	// names has all identifiers, property names and strings of the script.
	names map[string]bool
	// hasComputedAccess is set if the script may access a property that is not in names.
	hasComputedAccess bool
	members           []member
	// mentions counts the uses of each name as a value, and read the uses that only read a
	// member of it.
	mentions, read map[string]int
}

// declarations are the names that a script declares or assigns values to.
type declarations struct {
	// bound has the names that are declared anywhere in the script. A name that is in refs
	// too may mean either, so the checks report nothing about it.
	bound map[string]bool
	// redeclared has the names in bound that are declared more than once.
	redeclared map[string]bool
	// aliases maps variables that are declared with the object of another name to that name.
	aliases map[string]string
	// targets has the names that any assignment changes: =, += and ++ too.
	targets map[string]bool
	// reassigned counts the assignments of each name by =.
	reassigned map[string]int
}

// sharing records the objects that may change in ways that the analysis does not follow.
type sharing struct {
	// assigned has the members that the script sets, as in log.trace = f.
	assigned map[string]bool
	// shared has the names of objects that other code may change: they are passed to functions of
	// the script, or assigned to a variable.
	shared map[string]bool
	// written has the names of objects with a member that is assigned or deleted.
	written map[string]bool
}

// promises are the uses of the promises that granted objects return, and of their results.
type promises struct {
	// promiseMembers has members of promises: http.crm.get(url).text, elicit(form).content.
	promiseMembers []member
	// promiseDestructured has members that a pattern takes from promises: const { text } =
	// http.crm.get(url).
	promiseDestructured []member
	// promiseUses has promises, and variableUses variables, that are used as text or as a list.
	promiseUses, variableUses []misuse
	// promiseArguments has arguments of functions that use their arguments in this way.
	promiseArguments []argument
	// promiseVars maps variables that are declared with a promise to the object that returns it:
	// const r = http.crm.get(url).
	promiseVars map[string]string
	// resultMembers has members of results: (await elicit(form)).content, const { text } = await
	// http.crm.get(url).
	resultMembers []member
	// resultVars maps variables that are declared with a result to the object that returns it.
	resultVars map[string]string
}

// agentCode has what is analyzed only in code that an agent wrote.
type agentCode struct {
	// groups has the globals with methods that return promises, as in
	// crm.get_customer(args).
	groups map[string]bool
	// groupCalls has the calls of groups themselves, as in crm(args).
	groupCalls []*ast.CallExpression
	// keywords has the calls with an assignment among the arguments, as in find(name=value).
	keywords []*ast.CallExpression
	// undeclared has the names in reassigned that the code does not declare.
	undeclared map[string]bool
}

// engineLimits are the uses of features that the JavaScript engine lacks.
type engineLimits struct {
	// patterns is set if a method may compile a string as a regular expression.
	patterns bool
	// unicode has the regular expressions with \p{…}.
	unicode []ast.Expression
	// locales has the names of the called methods that format by locale.
	locales []*ast.Identifier
}

// member is a use of a property of a global: vars.stage, vars["stage"], or const { stage } = vars.
// The object of crypto.subtle.sign is crypto.subtle.
type member struct {
	object, name string
	start, end   file.Idx
}

// misuse is a use of a promise as a result. Its object is the variable or the object that returns
// the promise.
type misuse struct {
	object, message string
	start, end      file.Idx
}

// analysisOf returns the analysis of a tree, which may be nil.
func analysisOf(body ast.Node) *analysis {
	a := newAnalysis()
	a.root = body
	a.node(body)
	return a
}

func newAnalysis() *analysis {
	return &analysis{
		references: references{
			refs: map[string]file.Idx{}, typeofTested: map[string]bool{}, names: map[string]bool{},
			mentions: map[string]int{}, read: map[string]int{},
		},
		declarations: declarations{
			bound: map[string]bool{}, redeclared: map[string]bool{}, aliases: map[string]string{},
			targets: map[string]bool{}, reassigned: map[string]int{},
		},
		sharing:  sharing{assigned: map[string]bool{}, shared: map[string]bool{}, written: map[string]bool{}},
		promises: promises{promiseVars: map[string]string{}, resultVars: map[string]string{}},
	}
}

// analyze returns the analysis of a script. Names that agent code assigns without declaring them
// count as declared.
func (c *compilation) analyze(function *ast.FunctionLiteral) *analysis {
	if c.src.Kind != source.Code {
		return analysisOf(function.Body)
	}
	a := newAnalysis()
	a.root = function.Body
	a.groups = map[string]bool{}
	for _, group := range c.names().groups {
		a.groups[group] = true
	}
	a.node(function.Body)
	a.undeclared = c.undeclared(function, a)
	for _, statement := range c.statements(function) {
		a.declaredByValue(statement)
	}
	for name := range a.undeclared {
		a.bound[name] = true
	}
	return a
}

// globalRef returns the position of a reference to a global, and whether there is one.
func (a *analysis) globalRef(name string) (file.Idx, bool) {
	at, ok := a.refs[name]
	return at, ok && !a.bound[name]
}

// isReferenced reports whether a name is used as a value, which may be the global.
func (a *analysis) isReferenced(name string) bool {
	_, ok := a.refs[name]
	return ok
}

func (a *analysis) node(n ast.Node) {
	switch n := n.(type) {
	case *ast.Identifier:
		a.reference(n)
	case *ast.Binding:
		a.declare(n.Target)
		if n.Initializer != nil {
			if alias, plain := n.Target.(*ast.Identifier); plain {
				a.alias(alias.Name.String(), n.Initializer)
			} else {
				a.countReads(n.Initializer)
			}
			a.destructured(n.Target, n.Initializer)
			a.visitDestructuring(n.Target, n.Initializer)
			a.noteResult(n)
			a.node(n.Initializer)
		}
	case *ast.CatchStatement:
		a.declare(n.Parameter)
		a.node(n.Body)
	case *ast.FunctionLiteral:
		a.name(n.Name)
		syntax.Children(n, a.node)
	case *ast.ClassLiteral:
		a.name(n.Name)
		syntax.Children(n, a.node)
	case *ast.AssignExpression:
		a.destructured(n.Left, n.Right)
		a.visitDestructuring(n.Left, n.Right)
		a.assigned[staticPath(n.Left)] = true
		a.noteShared(n.Right)
		if key, ok := n.Left.(*ast.BracketExpression); ok {
			a.noteShared(key.Left)
		}
		eachTarget(n.Left, func(name string) { a.targets[name] = true })
		a.noteWrites(n.Left)
		if n.Operator == token.ASSIGN {
			a.reassign(n.Left)
		}
		syntax.Children(n, a.node)
	case *ast.ForIntoExpression:
		a.reassign(n.Expression)
		a.noteWrites(n.Expression)
		syntax.Children(n, a.node)
	default:
		a.expression(n)
		syntax.Children(n, a.node)
	}
}

func (a *analysis) expression(n ast.Node) {
	switch n := n.(type) {
	case *ast.DotExpression:
		name := n.Identifier.Name.String()
		a.names[name] = true
		a.countReads(n.Left)
		a.member(n.Left, name, n.Identifier.Idx, n.Identifier.Idx1())
		a.noteMember(n.Left, name, n.Identifier.Idx, n.Identifier.Idx1())
	case *ast.BracketExpression:
		a.countReads(n.Left)
		a.bracket(n)
	case *ast.TemplateLiteral, *ast.BinaryExpression, *ast.ForOfStatement, *ast.SpreadElement:
		a.visitUse(n)
	case *ast.StringLiteral:
		a.names[n.Value.String()] = true
	case *ast.PropertyKeyed:
		a.hasComputedAccess = a.hasComputedAccess || n.Computed && !isLiteralKey(n.Key)
	case *ast.UnaryExpression:
		switch n.Operator {
		case token.INCREMENT, token.DECREMENT:
			eachTarget(n.Operand, func(name string) { a.targets[name] = true })
			a.noteWrites(n.Operand)
		case token.DELETE:
			a.noteWrites(n.Operand)
		}
		if id, ok := n.Operand.(*ast.Identifier); ok && n.Operator == token.TYPEOF {
			a.typeofTested[id.Name.String()] = true
		}
	case *ast.RegExpLiteral:
		a.pattern(n, n.Pattern, n.Flags)
	case *ast.NewExpression:
		a.constructed(n, n.Callee, n.ArgumentList)
		a.noteShared(n.ArgumentList...)
	case *ast.CallExpression:
		if leavesUnchanged(n.Callee) {
			a.countReads(n.ArgumentList...)
		} else {
			a.noteShared(n.ArgumentList...)
		}
		a.constructed(n, n.Callee, n.ArgumentList)
		a.call(n)
		a.visitArguments(n)
		if id, ok := n.Callee.(*ast.Identifier); ok && (id.Name == "tools" || a.groups[id.Name.String()]) {
			a.groupCalls = append(a.groupCalls, n)
		}
		if slices.ContainsFunc(n.ArgumentList, isKeyword) {
			a.keywords = append(a.keywords, n)
		}
	}
}

func (a *analysis) reference(id *ast.Identifier) {
	name := id.Name.String()
	a.names[name] = true
	a.mentions[name]++
	if _, ok := a.refs[name]; !ok {
		a.refs[name] = id.Idx
	}
	switch name {
	case "globalThis", "Object", "Reflect":
		a.hasComputedAccess = true
	}
}

func (a *analysis) bracket(n *ast.BracketExpression) {
	if s, ok := n.Member.(*ast.StringLiteral); ok {
		a.member(n.Left, s.Value.String(), s.Idx, s.Idx1())
		a.noteMember(n.Left, s.Value.String(), s.Idx, s.Idx1())
		return
	}
	if _, ok := n.Member.(*ast.NumberLiteral); ok {
		a.noteUse(n.Left, "a promise has no elements")
	}
	a.hasComputedAccess = a.hasComputedAccess || !isLiteralKey(n.Member)
}

// noteShared records the names among expressions that other code may access.
func (a *analysis) noteShared(expressions ...ast.Expression) {
	for _, e := range expressions {
		if id, ok := e.(*ast.Identifier); ok {
			a.shared[id.Name.String()] = true
		}
	}
}

// leavesUnchanged reports whether a function certainly does not change its arguments.
func leavesUnchanged(callee ast.Expression) bool {
	switch n := callee.(type) {
	case *ast.Identifier:
		switch n.Name {
		case "String", "Number", "Boolean", "structuredClone", "progress", "elicit", "sample":
			return true
		}
	case *ast.DotExpression:
		object, _, _ := strings.Cut(staticPath(n.Left), ".")
		switch object {
		case "JSON", "Array", "console", "log", "content", "http", "kv", "sql", "fs", "exec", "modules", "tools", "yaml", "toml", "csv":
			return true
		case "Object":
			switch n.Identifier.Name {
			case "keys", "values", "entries", "freeze", "hasOwn", "getOwnPropertyNames":
				return true
			}
		}
	}
	return false
}

// isLiteralKey reports whether a key is a literal.
func isLiteralKey(key ast.Expression) bool {
	switch key.(type) {
	case *ast.StringLiteral, *ast.NumberLiteral:
		return true
	}
	return false
}

func (a *analysis) member(object ast.Expression, name string, start, end file.Idx) {
	if path := staticPath(object); path != "" {
		a.members = append(a.members, member{path, name, start, end})
	}
}

// staticPath returns the text of a name, or of two names with a dot; empty for other expressions.
func staticPath(n ast.Expression) string {
	switch n := n.(type) {
	case *ast.Optional:
		return staticPath(n.Expression)
	case *ast.Identifier:
		return n.Name.String()
	case *ast.DotExpression:
		if id, ok := n.Left.(*ast.Identifier); ok {
			return id.Name.String() + "." + n.Identifier.Name.String()
		}
	}
	return ""
}

// call records text.match(pattern) and similar calls, which compile a string, and methods that
// format by locale.
func (a *analysis) call(n *ast.CallExpression) {
	method, ok := n.Callee.(*ast.DotExpression)
	if !ok {
		return
	}
	switch method.Identifier.Name.String() {
	case "toLocaleString", "toLocaleDateString", "toLocaleTimeString":
		a.locales = append(a.locales, &method.Identifier)
	}
	if len(n.ArgumentList) == 0 {
		return
	}
	if _, literal := n.ArgumentList[0].(*ast.RegExpLiteral); literal {
		return
	}
	switch method.Identifier.Name.String() {
	case "match", "matchAll", "search":
		a.patterns = true
	}
}

// contains reports whether is returns true for n or a node below it. Nodes for which skip returns
// true are skipped.
func contains(n ast.Node, is, skip func(ast.Node) bool) bool {
	if skip(n) {
		return false
	}
	found := is(n)
	if !found {
		syntax.Children(n, func(n ast.Node) { found = found || contains(n, is, skip) })
	}
	return found
}

// awaits reports whether the function itself uses await.
func awaits(function *ast.FunctionLiteral) bool {
	return contains(function.Body, func(n ast.Node) bool { _, is := n.(*ast.AwaitExpression); return is }, isFunction)
}

// pattern records a regular expression that the engine misinterprets.
func (a *analysis) pattern(at ast.Expression, pattern, flags string) {
	if strings.ContainsAny(flags, "uv") && strings.Contains(strings.ToLower(pattern), `\p{`) {
		a.unicode = append(a.unicode, at)
	}
}

// constructed records RegExp("…", "u") and new RegExp("…", "u").
func (a *analysis) constructed(at, callee ast.Expression, arguments []ast.Expression) {
	if id, ok := callee.(*ast.Identifier); !ok || id.Name != "RegExp" || len(arguments) != 2 {
		return
	}
	pattern, written := arguments[0].(*ast.StringLiteral)
	flags, literal := arguments[1].(*ast.StringLiteral)
	if written && literal {
		a.pattern(at, pattern.Value.String(), flags.Value.String())
	}
}
