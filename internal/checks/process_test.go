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

// osPackages may use the arguments, environment, standard streams and signals of the
// process. Files in testdata do not count.
var osPackages = []string{"cmd/mcpd", "examples/embed"}

// ofTheProcess are the names of package os, and the packages, that access the process.
var ofTheProcess = []string{"Args", "Getenv", "LookupEnv", "Environ", "ExpandEnv", "Setenv", "Stdin", "Stdout", "Stderr", "Exit"}

var processPackages = []string{"flag", "os/signal", "os/user"}

// TestProcess_oneFolder finds uses of arguments, environment, standard streams and
// signals elsewhere.
func TestProcess_oneFolder(t *testing.T) {
	for _, file := range goFiles(t) {
		if isTest(file) || slices.Contains(osPackages, path.Dir(file)) || strings.HasPrefix(file, "testdata/") {
			continue
		}
		fset := token.NewFileSet()
		parsed, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, used := range processUses(parsed) {
			t.Errorf("%s: only %[3]s may use %[2]s", fset.Position(used.Pos()), used.what, osPackages[0])
		}
	}
}

// processUse is a place where a file uses the process.
type processUse struct {
	ast.Node
	what string
}

func processUses(file *ast.File) []processUse {
	var uses []processUse
	osName := ""
	for _, spec := range file.Imports {
		imported, _ := strconv.Unquote(spec.Path.Value)
		if slices.Contains(processPackages, imported) {
			uses = append(uses, processUse{spec, imported})
		}
		if imported == "os" {
			osName = "os"
			if spec.Name != nil {
				osName = spec.Name.Name
			}
		}
	}
	if osName == "." {
		return append(uses, processUse{file.Name, "a dot import of os"})
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && osName != "" && x.Name == osName && slices.Contains(ofTheProcess, s.Sel.Name) {
				uses = append(uses, processUse{s, "os." + s.Sel.Name})
			}
		}
		return true
	})
	return uses
}

func TestProcess_usesFound(t *testing.T) {
	for source, want := range map[string]string{
		"package p\nimport \"os\"\nvar a = os.Args":                          "os.Args",
		"package p\nimport system \"os\"\nfunc f() { system.Stdout.Sync() }": "os.Stdout",
		"package p\nimport _ \"os/signal\"":                                  "os/signal",
		"package p\nimport . \"os\"":                                         "a dot import of os",
		"package p\nimport \"os\"\nvar f = os.Open":                          "",
		"package p\nvar os struct{ Args int }\nvar a = os.Args":              "",
	} {
		parsed, err := parser.ParseFile(token.NewFileSet(), "p.go", source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, use := range processUses(parsed) {
			got += use.what
		}
		if got != want {
			t.Errorf("%s: found %q, want %q", source, got, want)
		}
	}
}
