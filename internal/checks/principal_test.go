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

// principalMakers are the packages and the files that may say who somebody is, and why.
// What makes a principal elsewhere would let in whom nobody has proved.
var principalMakers = map[string]string{
	"internal/auth/authn":               "proves who callers are",
	"internal/auth/apikey/key.go":       "says whose a key is, which internal/auth/authn asks",
	"identity":                          "declares principals, and makes the one of whom nothing is proved",
	"internal/ops/audit/line.go":        "reads back who called, for calls that are judged again and not made",
	"internal/ops/tooltest/tooltest.go": "has a test block play a caller, in calls that mock what they touch",
	"cmd/mcpd/supposition.go":           "supposes a caller, for calls that are explained and not made",
}

// TestPrincipals_onlyAuthn finds principals that are made, or changed, elsewhere.
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
				t.Errorf("%s: a principal is %s, and only internal/auth/authn says who somebody is", fset.Position(made.Pos()), made.how)
			}
		}
	}
	for maker := range unused {
		t.Errorf("%s may make principals, and does not", maker)
	}
}

// TestPrincipals_creationFound holds the search to what it is to find.
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

// principalFields are those of identity.Principal.
var principalFields = []string{"ID", "Kind", "Issuer", "Scopes", "Groups", "Claims", "Agent"}

// principalMade is a place where a principal is made, changed or decoded.
type principalMade struct {
	ast.Node
	how string
}

// principals is the search for them in one file. It goes by names and not by types, and
// knows of a variable what the file says where it is declared.
type principals struct {
	name  string // of package identity in the file, "" in the package itself
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

// assign finds fields that are set, and learns what variables hold.
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

// literal finds literals with something in them, and those without a type in lists of them.
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

// call finds conversions, and what fills in a principal.
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
		// A variable is handed out to be filled in, and what a caller holds also to be read.
		if _, variable := at.X.(*ast.Ident); variable || decodes {
			p.find(n, "decoded")
		}
	}
}

// isType reports whether an expression is the type, or a pointer to it.
func (p *principals) isType(of ast.Expr) bool {
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	return p.names(of, "Principal")
}

// names reports whether an expression is something that package identity exports.
func (p *principals) names(e ast.Expr, name string) bool {
	if p.name == "" {
		plain, ok := e.(*ast.Ident)
		return ok && plain.Name == name
	}
	qualified, ok := e.(*ast.SelectorExpr)
	return ok && qualified.Sel.Name == name && fmt.Sprint(qualified.X) == p.name
}

// is reports whether an expression is known to be a principal.
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
