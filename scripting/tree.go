package scripting

import "github.com/dop251/goja/ast"

// children calls visit for each node directly below n, in source order. The
// names of plain properties and labels are not nodes; keys are.
func children(n ast.Node, visit func(ast.Node)) {
	switch n := n.(type) {
	// Both are statements to goja, though they stand nowhere on their own.
	case *ast.CaseStatement:
		one(visit, n.Test)
		many(visit, n.Consequent)
	case *ast.CatchStatement:
		one(visit, n.Parameter)
		visit(n.Body)
	case ast.Statement:
		statementChildren(n, visit)
	case ast.Property:
		propertyChildren(n, visit)
	case ast.Expression:
		expressionChildren(n, visit)
	case *ast.ExpressionBody:
		visit(n.Expression)
	case ast.ClassElement:
		classChildren(n, visit)
	case ast.ForLoopInitializer:
		loopChildren(n, visit)
	case ast.ForInto:
		intoChildren(n, visit)
	}
}

// one visits a node that may be absent.
func one[N interface {
	ast.Node
	comparable
}](visit func(ast.Node), n N) {
	var none N
	if n != none {
		visit(n)
	}
}

func many[N interface {
	ast.Node
	comparable
}](visit func(ast.Node), list []N) {
	for _, n := range list {
		one(visit, n)
	}
}

func statementChildren(n ast.Statement, visit func(ast.Node)) {
	switch n := n.(type) {
	case *ast.BlockStatement:
		many(visit, n.List)
	case *ast.ExpressionStatement:
		visit(n.Expression)
	case *ast.IfStatement:
		visit(n.Test)
		visit(n.Consequent)
		one(visit, n.Alternate)
	case *ast.ReturnStatement:
		one(visit, n.Argument)
	case *ast.ThrowStatement:
		visit(n.Argument)
	case *ast.VariableStatement:
		many(visit, n.List)
	case *ast.LexicalDeclaration:
		many(visit, n.List)
	case *ast.FunctionDeclaration:
		visit(n.Function)
	case *ast.ClassDeclaration:
		visit(n.Class)
	case *ast.LabelledStatement:
		visit(n.Statement)
	case *ast.TryStatement:
		visit(n.Body)
		one(visit, n.Catch)
		one(visit, n.Finally)
	case *ast.SwitchStatement:
		visit(n.Discriminant)
		many(visit, n.Body)
	case *ast.WithStatement:
		visit(n.Object)
		visit(n.Body)
	default:
		iterationChildren(n, visit)
	}
}

func iterationChildren(n ast.Statement, visit func(ast.Node)) {
	switch n := n.(type) {
	case *ast.ForStatement:
		one(visit, n.Initializer)
		one(visit, n.Test)
		one(visit, n.Update)
		visit(n.Body)
	case *ast.ForInStatement:
		visit(n.Into)
		visit(n.Source)
		visit(n.Body)
	case *ast.ForOfStatement:
		visit(n.Into)
		visit(n.Source)
		visit(n.Body)
	case *ast.WhileStatement:
		visit(n.Test)
		visit(n.Body)
	case *ast.DoWhileStatement:
		visit(n.Body)
		visit(n.Test)
	}
}

func loopChildren(n ast.ForLoopInitializer, visit func(ast.Node)) {
	switch n := n.(type) {
	case *ast.ForLoopInitializerExpression:
		one(visit, n.Expression)
	case *ast.ForLoopInitializerVarDeclList:
		many(visit, n.List)
	case *ast.ForLoopInitializerLexicalDecl:
		many(visit, n.LexicalDeclaration.List)
	}
}

func intoChildren(n ast.ForInto, visit func(ast.Node)) {
	switch n := n.(type) {
	case *ast.ForIntoVar:
		visit(n.Binding)
	case *ast.ForDeclaration:
		// A binding marks the target as a declaration.
		visit(&ast.Binding{Target: n.Target})
	case *ast.ForIntoExpression:
		visit(n.Expression)
	}
}

func classChildren(n ast.ClassElement, visit func(ast.Node)) {
	switch n := n.(type) {
	case *ast.FieldDefinition:
		visit(n.Key)
		one(visit, n.Initializer)
	case *ast.MethodDefinition:
		visit(n.Key)
		visit(n.Body)
	case *ast.ClassStaticBlock:
		visit(n.Block)
	}
}

func propertyChildren(n ast.Property, visit func(ast.Node)) {
	switch n := n.(type) {
	case *ast.PropertyShort:
		visit(&n.Name)
		one(visit, n.Initializer)
	case *ast.PropertyKeyed:
		visit(n.Key)
		visit(n.Value)
	case *ast.SpreadElement:
		visit(n.Expression)
	}
}

func expressionChildren(n ast.Expression, visit func(ast.Node)) {
	switch n := n.(type) {
	case *ast.ArrayLiteral:
		many(visit, n.Value)
	case *ast.ObjectLiteral:
		many(visit, n.Value)
	case *ast.AssignExpression:
		visit(n.Left)
		visit(n.Right)
	case *ast.BinaryExpression:
		visit(n.Left)
		visit(n.Right)
	case *ast.UnaryExpression:
		visit(n.Operand)
	case *ast.ConditionalExpression:
		visit(n.Test)
		visit(n.Consequent)
		visit(n.Alternate)
	case *ast.SequenceExpression:
		many(visit, n.Sequence)
	case *ast.TemplateLiteral:
		one(visit, n.Tag)
		many(visit, n.Expressions)
	case *ast.AwaitExpression:
		one(visit, n.Argument)
	case *ast.YieldExpression:
		one(visit, n.Argument)
	case *ast.SpreadElement:
		visit(n.Expression)
	default:
		memberChildren(n, visit)
		functionChildren(n, visit)
		patternChildren(n, visit)
	}
}

func memberChildren(n ast.Expression, visit func(ast.Node)) {
	switch n := n.(type) {
	case *ast.CallExpression:
		visit(n.Callee)
		many(visit, n.ArgumentList)
	case *ast.NewExpression:
		visit(n.Callee)
		many(visit, n.ArgumentList)
	case *ast.DotExpression:
		visit(n.Left)
	case *ast.PrivateDotExpression:
		visit(n.Left)
	case *ast.BracketExpression:
		visit(n.Left)
		visit(n.Member)
	case *ast.OptionalChain:
		visit(n.Expression)
	case *ast.Optional:
		visit(n.Expression)
	}
}

func functionChildren(n ast.Expression, visit func(ast.Node)) {
	parameters := func(list *ast.ParameterList) {
		many(visit, list.List)
		if list.Rest != nil {
			rest, _ := list.Rest.(ast.BindingTarget)
			visit(&ast.Binding{Target: rest})
		}
	}
	switch n := n.(type) {
	case *ast.FunctionLiteral:
		parameters(n.ParameterList)
		visit(n.Body)
	case *ast.ArrowFunctionLiteral:
		parameters(n.ParameterList)
		visit(n.Body)
	case *ast.ClassLiteral:
		one(visit, n.SuperClass)
		many(visit, n.Body)
	}
}

func patternChildren(n ast.Expression, visit func(ast.Node)) {
	switch n := n.(type) {
	case *ast.Binding:
		one(visit, n.Target)
		one(visit, n.Initializer)
	case *ast.ArrayPattern:
		many(visit, n.Elements)
		one(visit, n.Rest)
	case *ast.ObjectPattern:
		many(visit, n.Properties)
		one(visit, n.Rest)
	}
}
