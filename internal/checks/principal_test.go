package checks_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// principalMakers lists the packages and files that may create principals, with the
// reason. A principal created elsewhere could bypass authentication.
var principalMakers = map[string]string{
	"internal/auth/authn":               "authenticates callers",
	"internal/auth/apikey/key.go":       "maps keys to principals for internal/auth/authn",
	"identity":                          "declares principals and creates the anonymous one",
	"internal/ops/audit/line.go":        "reads recorded callers for replay",
	"internal/ops/tooltest/tooltest.go": "creates the caller of a test block",
	"cmd/mcpd/explainflags.go":          "describes a hypothetical caller",
	"cmd/mcpd/controlcaller.go":         "makes calls of the console for other principals, which are audited",
	"internal/ops/console/caller.go":    "describes the caller that the operator chooses; the server decides",
}

// TestPrincipals_onlyAuthn finds principals created or changed elsewhere.
func TestPrincipals_onlyAuthn(t *testing.T) {
	unused := map[string]bool{}
	for maker := range principalMakers {
		unused[maker] = true
	}
	for _, file := range goFiles(t) {
		if isTest(file) || strings.HasPrefix(file, "testdata/") {
			continue
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, made := range principalsMade(parsed) {
			maker := file
			if principalMakers[maker] == "" {
				maker = path.Dir(file)
			}
			if delete(unused, maker); principalMakers[maker] == "" {
				t.Errorf("%s: a principal is %s, which only internal/auth/authn may do", fset.Position(made.Pos()), made.how)
			}
		}
	}
	for maker := range unused {
		t.Errorf("%s may create principals but does not", maker)
	}
}

// TestPrincipals_creationFound tests the search itself.
func TestPrincipals_creationFound(t *testing.T) {
	for _, row := range []struct{ code, want string }{
		{`p := id.Principal{ID: "root"}; use(p)`, "made"},
		{`use(&id.Principal{ID: "root"})`, "made"},
		{`use([]id.Principal{{ID: "root"}})`, "made"},
		{`use([]*id.Principal{{ID: "root"}})`, "made"},
		{`use(map[string]id.Principal{"a": {ID: "root"}})`, "made"},
		{`use(id.Caller{Principal: id.Principal{Kind: id.KindLocal}})`, "made"},
		{`use(id.Principal(other))`, "made"},
		{`var p id.Principal; p.ID = "root"`, "changed"},
		{`p := id.Principal{}; p.Scopes = nil`, "changed"},
		{`p := new(id.Principal); p.Kind = kind`, "changed"},
		{`p := id.Anonymous(); p.ID, p.Kind = "root", kind`, "changed changed"},
		{`p := caller.Principal; p.Groups = append(p.Groups, "admins")`, "changed"},
		{`p := &caller.Principal; p.Claims["role"] = "admin"`, "changed"},
		{`caller.Principal.Scopes = nil`, "changed"},
		{`caller.Principal.Scopes[0] = "all"`, "changed"},
		{`var p id.Principal; json.Unmarshal(raw, &p)`, "decoded"},
		{`p := id.Anonymous(); jsonOf(text, &p)`, "decoded"},
		{`d.Decode(&caller.Principal)`, "decoded"},
		{`p := id.Principal{}; use(p); use(id.Anonymous()); use(&caller.Principal)`, ""},
		{`other.ID = "x"; other.Agent.ID = "y"; caller.Principal = proved`, ""},
		{`p := id.Agent{AgentID: "x"}; p.Model = "m"`, ""},
	} {
		parsed, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nimport id \""+module+"identity\"\nfunc f(caller id.Caller) {\n"+row.code+"\n}\n", parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, made := range principalsMade(parsed) {
			got = append(got, made.how)
		}
		if strings.Join(got, " ") != row.want {
			t.Errorf("%s: got %v, want %q", row.code, got, row.want)
		}
	}
}

// principalFields are the fields of identity.Principal.
var principalFields = []string{"ID", "Kind", "Issuer", "Scopes", "Groups", "Claims", "Agent"}

// principalMade is a place that creates, changes or decodes a principal.
type principalMade struct {
	ast.Node
	how string
}

// principals is the search in one file. It goes by names, not types, and takes the type
// of a variable from its declaration in the file.
type principals struct {
	name  string // name of package identity in the file, "" in the package itself
	known map[string]bool
	found []principalMade
}

func principalsMade(file *ast.File) []principalMade {
	p := principals{known: map[string]bool{}}
	for _, spec := range file.Imports {
		if imported, _ := strconv.Unquote(spec.Path.Value); imported == module+"identity" {
			p.name = "identity"
			if spec.Name != nil {
				p.name = spec.Name.Name
			}
		}
	}
	if p.name == "" && file.Name.Name != "identity" {
		return nil
	}
	for _, declared := range file.Decls {
		clear(p.known)
		ast.Inspect(declared, func(n ast.Node) bool { p.look(n); return true })
	}
	return p.found
}

func (p *principals) look(n ast.Node) {
	switch n := n.(type) {
	case *ast.Field:
		for _, name := range n.Names {
			p.known[name.Name] = p.isType(n.Type)
		}
	case *ast.ValueSpec:
		for i, name := range n.Names {
			p.known[name.Name] = n.Type != nil && p.isType(n.Type) || i < len(n.Values) && p.is(n.Values[i])
		}
	case *ast.AssignStmt:
		p.assign(n)
	case *ast.CompositeLit:
		p.literal(n)
	case *ast.CallExpr:
		p.call(n)
	}
}

func (p *principals) find(n ast.Node, how string) {
	p.found = append(p.found, principalMade{n, how})
}

// assign finds assignments to fields and learns the types of variables.
func (p *principals) assign(n *ast.AssignStmt) {
	for i, to := range n.Lhs {
		if at, ok := to.(*ast.IndexExpr); ok {
			to = at.X
		}
		if field, ok := to.(*ast.SelectorExpr); ok && slices.Contains(principalFields, field.Sel.Name) && p.is(field.X) {
			p.find(n, "changed")
		}
		if name, ok := to.(*ast.Ident); ok && n.Tok == token.DEFINE && len(n.Lhs) == len(n.Rhs) {
			p.known[name.Name] = p.is(n.Rhs[i])
		}
	}
}

// literal finds non-empty literals, including those without a type in lists.
func (p *principals) literal(n *ast.CompositeLit) {
	if p.isType(n.Type) && len(n.Elts) > 0 {
		p.find(n, "made")
	}
	var of ast.Expr
	switch list := n.Type.(type) {
	case *ast.ArrayType:
		of = list.Elt
	case *ast.MapType:
		of = list.Value
	}
	if !p.isType(of) {
		return
	}
	for _, element := range n.Elts {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			element = pair.Value
		}
		if inner, ok := element.(*ast.CompositeLit); ok && inner.Type == nil && len(inner.Elts) > 0 {
			p.find(inner, "made")
		}
	}
}

// call finds conversions and calls that fill in a principal.
func (p *principals) call(n *ast.CallExpr) {
	if p.isType(n.Fun) {
		p.find(n, "made")
	}
	decodes := false
	if function, ok := n.Fun.(*ast.SelectorExpr); ok {
		decodes = strings.HasPrefix(function.Sel.Name, "Unmarshal") || strings.HasPrefix(function.Sel.Name, "Decode")
	}
	for _, argument := range n.Args {
		at, ok := argument.(*ast.UnaryExpr)
		if !ok || at.Op != token.AND || !p.is(at.X) {
			continue
		}
		// A pointer to a variable lets the callee fill it in. A pointer to a field of a
		// caller may only be for reading.
		if _, variable := at.X.(*ast.Ident); variable || decodes {
			p.find(n, "decoded")
		}
	}
}

// isType reports whether an expression is the type or a pointer to it.
func (p *principals) isType(of ast.Expr) bool {
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	return p.names(of, "Principal")
}

// names reports whether an expression is an exported name of package identity.
func (p *principals) names(e ast.Expr, name string) bool {
	if p.name == "" {
		plain, ok := e.(*ast.Ident)
		return ok && plain.Name == name
	}
	qualified, ok := e.(*ast.SelectorExpr)
	return ok && qualified.Sel.Name == name && fmt.Sprint(qualified.X) == p.name
}

// is reports whether an expression is a known principal.
func (p *principals) is(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return p.known[e.Name]
	case *ast.SelectorExpr:
		return e.Sel.Name == "Principal" && !p.isType(e)
	case *ast.ParenExpr:
		return p.is(e.X)
	case *ast.StarExpr:
		return p.is(e.X)
	case *ast.UnaryExpr:
		return e.Op == token.AND && p.is(e.X)
	case *ast.CompositeLit:
		return p.isType(e.Type)
	case *ast.CallExpr:
		return p.names(e.Fun, "Anonymous") || fmt.Sprint(e.Fun) == "new" && len(e.Args) == 1 && p.isType(e.Args[0])
	}
	return false
}
