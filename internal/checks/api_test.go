package checks_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// publicPackages are the packages that other modules may import. The packages below
// extensions/ are public too.
var publicPackages = []string{"engine", "serve", "call", "identity", "diag", "scripting", "scripting/hosttest", "scripting/worker", "policylang"}

// maxEngineNames is the maximum number of top-level names that engine exports. Only
// lower it, down to 60.
const maxEngineNames = 60

// internalInAPI lists the exported declarations that mention an internal package. Only
// remove entries.
var internalInAPI = []string{}

func TestPublicAPI_namesNoInternalType(t *testing.T) {
	offenders := map[string]string{}
	for _, api := range readPublicAPIs(t) {
		for name, mention := range api.internalMentions() {
			offenders[name] = mention
		}
	}
	for name, mention := range offenders {
		if !slices.Contains(internalInAPI, name) {
			t.Errorf("%s mentions %s, which other modules cannot import", name, mention)
		}
	}
	for _, name := range internalInAPI {
		if offenders[name] == "" {
			t.Errorf("%s no longer mentions an internal package: remove it from internalInAPI", name)
		}
	}
}

func TestPublicAPI_engineExportsFewNames(t *testing.T) {
	for _, api := range readPublicAPIs(t) {
		if api.dir != "engine" {
			continue
		}
		if names := api.exportedNames(); len(names) > maxEngineNames {
			t.Errorf("engine exports %d top-level names, more than %d: %v", len(names), maxEngineNames, names)
		} else if len(names) < maxEngineNames && maxEngineNames > 60 {
			t.Errorf("engine exports %d top-level names: set maxEngineNames to %d", len(names), max(len(names), 60))
		}
	}
}

// publicAPI holds the declarations of a public package.
type publicAPI struct {
	dir   string
	files []*ast.File
	// aliases maps the unexported aliases of the package to their types, with the file
	// of each.
	aliases map[string]aliasOf
}

type aliasOf struct {
	file *ast.File
	to   ast.Expr
}

func readPublicAPIs(t *testing.T) []*publicAPI {
	t.Helper()
	byDir := map[string]*publicAPI{}
	for _, file := range goFiles(t) {
		dir := path.Dir(file)
		if isTest(file) || !slices.Contains(publicPackages, dir) && !strings.HasPrefix(dir, "extensions/") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		api := byDir[dir]
		if api == nil {
			api = &publicAPI{dir: dir, aliases: map[string]aliasOf{}}
			byDir[dir] = api
		}
		api.files = append(api.files, parsed)
		for _, spec := range typeSpecs(parsed) {
			if spec.Assign.IsValid() && !spec.Name.IsExported() {
				api.aliases[spec.Name.Name] = aliasOf{parsed, spec.Type}
			}
		}
	}
	var apis []*publicAPI
	for _, dir := range publicPackages {
		if byDir[dir] == nil {
			t.Fatalf("missing public package %s", dir)
		}
	}
	for _, api := range byDir {
		apis = append(apis, api)
	}
	return apis
}

func typeSpecs(file *ast.File) []*ast.TypeSpec {
	var specs []*ast.TypeSpec
	for _, decl := range file.Decls {
		if decl, ok := decl.(*ast.GenDecl); ok {
			for _, spec := range decl.Specs {
				if spec, ok := spec.(*ast.TypeSpec); ok {
					specs = append(specs, spec)
				}
			}
		}
	}
	return specs
}

// exportedNames returns the names of the exported constants, variables, types and
// functions, without methods.
func (api *publicAPI) exportedNames() []string {
	var names []string
	for _, file := range api.files {
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if decl.Recv == nil && decl.Name.IsExported() {
					names = append(names, decl.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						if spec.Name.IsExported() {
							names = append(names, spec.Name.Name)
						}
					case *ast.ValueSpec:
						for _, name := range spec.Names {
							if name.IsExported() {
								names = append(names, name.Name)
							}
						}
					}
				}
			}
		}
	}
	return names
}

// internalMentions maps each exported declaration that mentions an internal package to
// the first name it mentions.
func (api *publicAPI) internalMentions() map[string]string {
	mentions := map[string]string{}
	for _, file := range api.files {
		note := func(name string, nodes ...ast.Node) {
			for _, node := range nodes {
				if mention := api.mentionIn(file, node); mention != "" {
					mentions[api.dir+"."+name] = mention
				}
			}
		}
		for _, decl := range file.Decls {
			switch decl := decl.(type) {
			case *ast.FuncDecl:
				if receiver := receiverName(decl); decl.Name.IsExported() && (decl.Recv == nil || ast.IsExported(receiver)) {
					note(strings.TrimPrefix(receiver+"."+decl.Name.Name, "."), decl.Type)
				}
			case *ast.GenDecl:
				for _, spec := range decl.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						if spec.Name.IsExported() {
							noteType(spec, note)
						}
					case *ast.ValueSpec:
						for i, name := range spec.Names {
							if !name.IsExported() {
								continue
							}
							if spec.Type != nil {
								note(name.Name, spec.Type)
							}
							if i < len(spec.Values) && !strings.HasPrefix(name.Name, "Err") { // of type error
								note(name.Name, spec.Values[i])
							}
						}
					}
				}
			}
		}
	}
	return mentions
}

// noteType notes what an exported type exposes. Exported and embedded struct fields
// count under their own names. For other types everything counts.
func noteType(spec *ast.TypeSpec, note func(string, ...ast.Node)) {
	if spec.TypeParams != nil {
		note(spec.Name.Name, spec.TypeParams)
	}
	structure, ok := spec.Type.(*ast.StructType)
	if !ok {
		note(spec.Name.Name, spec.Type)
		return
	}
	for _, field := range structure.Fields.List {
		if len(field.Names) == 0 {
			note(spec.Name.Name, field.Type)
		}
		for _, name := range field.Names {
			if name.IsExported() {
				note(spec.Name.Name+"."+name.Name, field.Type)
			}
		}
	}
}

func receiverName(decl *ast.FuncDecl) string {
	if decl.Recv == nil {
		return ""
	}
	expr := decl.Recv.List[0].Type
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.IndexListExpr:
			expr = e.X
		case *ast.Ident:
			return e.Name
		default:
			return ""
		}
	}
}

// mentionIn returns the first name of an internal package that node mentions, directly
// or through an unexported alias. It ignores function bodies and unexported fields.
func (api *publicAPI) mentionIn(file *ast.File, node ast.Node) string {
	mention := ""
	ast.Inspect(node, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BlockStmt:
			return false
		case *ast.Field:
			if len(n.Names) > 0 && !slices.ContainsFunc(n.Names, (*ast.Ident).IsExported) && isStructField(node, n) {
				return false
			}
		case *ast.SelectorExpr:
			if pkg, ok := n.X.(*ast.Ident); ok && isInternalImport(file, pkg.Name) {
				mention = pkg.Name + "." + n.Sel.Name
			}
			return false
		case *ast.Ident:
			if alias, ok := api.aliases[n.Name]; ok {
				mention = api.mentionIn(alias.file, alias.to)
			}
		}
		return mention == ""
	})
	return mention
}

// isStructField reports whether field belongs to a struct type inside node.
func isStructField(node ast.Node, field *ast.Field) bool {
	found := false
	ast.Inspect(node, func(n ast.Node) bool {
		if structure, ok := n.(*ast.StructType); ok && slices.Contains(structure.Fields.List, field) {
			found = true
		}
		return !found
	})
	return found
}

// isInternalImport reports whether name refers to an internal package in file. A
// package name is the last element of its path unless the import renames it.
func isInternalImport(file *ast.File, name string) bool {
	return slices.ContainsFunc(file.Imports, func(spec *ast.ImportSpec) bool {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil || !strings.HasPrefix(imported, module+"internal/") {
			return false
		}
		if spec.Name != nil {
			return spec.Name.Name == name
		}
		return path.Base(imported) == name
	})
}
