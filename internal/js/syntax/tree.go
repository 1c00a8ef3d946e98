package syntax

import "github.com/dop251/goja/ast"

// eachNode visits the nodes that are not nil.
func eachNode[N interface {
	ast.Node
	comparable
}](visit func(ast.Node), nodes ...N) {
	var none N
	for _, n := range nodes {
		if n != none {
			visit(n)
		}
	}
}

// Children calls visit for each child of n, in source order. Names of plain properties and labels
// are not nodes; keys are.
func Children(n ast.Node, visit func(ast.Node)) {
	switch n := n.(type) {
	case *ast.BlockStatement:
		eachNode(visit, n.List...)
	case *ast.CaseStatement:
		eachNode(visit, n.Test)
		eachNode(visit, n.Consequent...)
	case *ast.CatchStatement:
		eachNode[ast.Node](visit, n.Parameter, n.Body)
	case *ast.ClassDeclaration:
		visit(n.Class)
	case *ast.DoWhileStatement:
		eachNode[ast.Node](visit, n.Body, n.Test)
	case *ast.ExpressionStatement:
		visit(n.Expression)
	case *ast.ForInStatement:
		eachNode[ast.Node](visit, n.Into, n.Source, n.Body)
	case *ast.ForOfStatement:
		eachNode[ast.Node](visit, n.Into, n.Source, n.Body)
	case *ast.ForStatement:
		eachNode[ast.Node](visit, n.Initializer, n.Test, n.Update, n.Body)
	case *ast.FunctionDeclaration:
		visit(n.Function)
	case *ast.IfStatement:
		eachNode[ast.Node](visit, n.Test, n.Consequent, n.Alternate)
	case *ast.LabelledStatement:
		visit(n.Statement)
	case *ast.LexicalDeclaration:
		eachNode(visit, n.List...)
	case *ast.ReturnStatement:
		eachNode(visit, n.Argument)
	case *ast.SwitchStatement:
		visit(n.Discriminant)
		eachNode(visit, n.Body...)
	case *ast.ThrowStatement:
		visit(n.Argument)
	case *ast.TryStatement:
		visit(n.Body)
		eachNode(visit, n.Catch)
		eachNode(visit, n.Finally)
	case *ast.VariableStatement:
		eachNode(visit, n.List...)
	case *ast.WhileStatement:
		eachNode[ast.Node](visit, n.Test, n.Body)
	case *ast.WithStatement:
		eachNode[ast.Node](visit, n.Object, n.Body)

	case *ast.ForDeclaration:
		visit(&ast.Binding{Target: n.Target}) // a binding marks the target as a declaration
	case *ast.ForIntoExpression:
		visit(n.Expression)
	case *ast.ForIntoVar:
		visit(n.Binding)
	case *ast.ForLoopInitializerExpression:
		eachNode(visit, n.Expression)
	case *ast.ForLoopInitializerLexicalDecl:
		eachNode(visit, n.LexicalDeclaration.List...)
	case *ast.ForLoopInitializerVarDeclList:
		eachNode(visit, n.List...)

	case *ast.ClassStaticBlock:
		visit(n.Block)
	case *ast.FieldDefinition:
		eachNode(visit, n.Key, n.Initializer)
	case *ast.MethodDefinition:
		eachNode[ast.Node](visit, n.Key, n.Body)
	case *ast.PropertyKeyed:
		eachNode(visit, n.Key, n.Value)
	case *ast.PropertyShort:
		eachNode[ast.Node](visit, &n.Name, n.Initializer)

	case *ast.ArrayLiteral:
		eachNode(visit, n.Value...)
	case *ast.ArrayPattern:
		eachNode(visit, n.Elements...)
		eachNode(visit, n.Rest)
	case *ast.ArrowFunctionLiteral:
		eachParameter(visit, n.ParameterList)
		visit(n.Body)
	case *ast.AssignExpression:
		eachNode(visit, n.Left, n.Right)
	case *ast.AwaitExpression:
		eachNode(visit, n.Argument)
	case *ast.BinaryExpression:
		eachNode(visit, n.Left, n.Right)
	case *ast.Binding:
		eachNode[ast.Node](visit, n.Target, n.Initializer)
	case *ast.BracketExpression:
		eachNode(visit, n.Left, n.Member)
	case *ast.CallExpression:
		visit(n.Callee)
		eachNode(visit, n.ArgumentList...)
	case *ast.ClassLiteral:
		eachNode(visit, n.SuperClass)
		eachNode(visit, n.Body...)
	case *ast.ConditionalExpression:
		eachNode(visit, n.Test, n.Consequent, n.Alternate)
	case *ast.DotExpression:
		visit(n.Left)
	case *ast.ExpressionBody:
		visit(n.Expression)
	case *ast.FunctionLiteral:
		eachParameter(visit, n.ParameterList)
		visit(n.Body)
	case *ast.NewExpression:
		visit(n.Callee)
		eachNode(visit, n.ArgumentList...)
	case *ast.ObjectLiteral:
		eachNode(visit, n.Value...)
	case *ast.ObjectPattern:
		eachNode(visit, n.Properties...)
		eachNode(visit, n.Rest)
	case *ast.Optional:
		visit(n.Expression)
	case *ast.OptionalChain:
		visit(n.Expression)
	case *ast.PrivateDotExpression:
		visit(n.Left)
	case *ast.SequenceExpression:
		eachNode(visit, n.Sequence...)
	case *ast.SpreadElement:
		visit(n.Expression)
	case *ast.TemplateLiteral:
		eachNode(visit, n.Tag)
		eachNode(visit, n.Expressions...)
	case *ast.UnaryExpression:
		visit(n.Operand)
	case *ast.YieldExpression:
		eachNode(visit, n.Argument)
	}
}

func eachParameter(visit func(ast.Node), list *ast.ParameterList) {
	eachNode(visit, list.List...)
	if list.Rest != nil {
		rest, _ := list.Rest.(ast.BindingTarget)
		visit(&ast.Binding{Target: rest})
	}
}
