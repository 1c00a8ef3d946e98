package checks_test

import (
	"go/parser"
	"go/token"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/mcpd/mcpd/"

// layout lists the allowed imports of each group of packages, as in the table of
// docs/project/decisions/0002. A name ending in "/..." covers a package and all below
// it.
var layout = map[string][]string{
	"cmd/mcpd":                 {"serve", "engine", "extensions/...", "call", "identity", "diag", "scripting", "scripting/worker", "internal/auth/...", "internal/base/...", "internal/codemode/scripttypes", "internal/execution/pipeline", "internal/federation/...", "internal/language/...", "internal/ops/...", "internal/process/..."},
	"extensions/...":           {"diag", "engine", "scripting", "internal/auth/oidc", "internal/base/observe", "internal/codemode/codeact", "internal/execution/catalog", "internal/federation", "internal/federation/overlay", "internal/js/esbuild", "internal/host/sqldb/...", "internal/language/definition", "internal/ops/telemetry", "internal/base/state/..."},
	"serve/...":                {"serve", "engine", "call", "identity", "diag", "internal/auth/...", "internal/base/...", "internal/protocol/...", "internal/host/egress", "internal/language/grant", "internal/process/osproc"},
	"engine":                   {"call", "identity", "diag", "scripting", "policylang", "internal/base/...", "internal/execution/...", "internal/federation/...", "internal/host/...", "internal/language/...", "internal/ops/audit", "internal/ops/recent", "internal/ops/tooltest"},
	"call":                     {"identity"},
	"identity":                 {},
	"diag":                     {},
	"scripting":                {"diag", "internal/base/...", "internal/js/...", "scripting/source"},
	"scripting/hosttest":       {"scripting"},
	"scripting/source":         {"diag", "scripting/transpile"},
	"scripting/transpile":      {"diag"},
	"scripting/worker":         {"diag", "scripting", "internal/base/...", "internal/process/..."},
	"policylang":               {"diag", "identity", "internal/base/..."},
	"internal/codemode/...":    {"call", "diag", "scripting", "internal/base/...", "internal/execution/...", "internal/language/..."},
	"internal/federation/...":  {"call", "diag", "scripting", "internal/base/...", "internal/execution/...", "internal/host/...", "internal/language/...", "internal/process/..."},
	"internal/execution/...":   {"call", "identity", "diag", "scripting", "policylang", "internal/auth/idp", "internal/base/...", "internal/federation", "internal/host/...", "internal/language/...", "internal/ops/audit", "internal/ops/recent"},
	"internal/protocol/...":    {"call", "identity", "internal/auth/...", "internal/base/...", "internal/execution/suspend"},
	"internal/auth/...":        {"identity", "internal/base/..."},
	"internal/host/...":        {"call", "identity", "scripting", "internal/base/...", "internal/language/...", "internal/process/..."},
	"internal/language/...":    {"diag", "internal/base/...", "internal/execution/suspend"},
	"internal/ops/...":         {"call", "identity", "diag", "policylang", "internal/base/...", "internal/language/...", "internal/js/syntax", "internal/auth/peercred", "internal/execution/pipeline", "internal/execution/suspend", "internal/federation/lockfile", "internal/host", "internal/protocol/transport/httpguard"},
	"internal/js/...":          {"diag", "internal/base/...", "scripting/source", "scripting/transpile"},
	"internal/process/...":     {},
	"internal/base/...":        {"identity"},
	"bench":                    {"engine", "serve", "call", "identity", "scripting", "scripting/worker"},
	"testdata/federation/peer": {"call", "engine", "extensions/federation", "identity", "serve", "internal/language/grant", "internal/federation/upstream"},
	"examples/observability":   {"internal/base/observe", "internal/ops/telemetry", "internal/base/yaml"},
	"examples/embed":           {"engine", "serve", "identity", "scripting", "scripting/worker"},
	"examples/...":             {"engine", "serve", "identity", "scripting", "call"},

	"internal/base/state/postgres": {"call"},
}

// doors lists the only packages that may import a dependency. A prefix covers every
// package of that module. Tests may also use testDoors.
var doors = map[string][]string{
	"github.com/dop251/goja":              {"scripting", "internal/js/builtins", "internal/js/compiler", "internal/js/jsvalue", "internal/js/syntax"},
	"github.com/evanw/esbuild":            {"internal/js/esbuild"},
	"github.com/google/cel-go":            {"policylang"},
	"github.com/hashicorp/hcl":            {"internal/language/hclfile"},
	"github.com/zclconf/go-cty":           {"internal/language/hclfile"},
	"github.com/google/jsonschema-go":     {"internal/language/schema"},
	"github.com/fsnotify/fsnotify":        {"internal/ops/watch"},
	"github.com/creachadair/jrpc2":        {"internal/ops/lsp"},
	"github.com/gorilla/websocket":        {"internal/protocol/transport/websocket"},
	"github.com/spf13/cobra":              {"cmd/mcpd"},
	"golang.org/x/sys":                    {"internal/process/sandbox"},
	"golang.org/x/term":                   {"cmd/mcpd"},
	"github.com/BurntSushi/toml":          {"internal/base/toml"},
	"go.yaml.in/yaml":                     {"internal/base/yaml"},
	"modernc.org/":                        {"internal/base/state/sqlite", "internal/host/sqldb/sqlite"},
	"github.com/jackc/pgx":                {"internal/base/state/postgres", "internal/host/sqldb/postgres"},
	"oras.land/":                          {"internal/ops/bundle/oci"},
	"github.com/opencontainers/":          {"internal/ops/bundle/oci"},
	"golang.org/x/oauth2":                 {"internal/host/oauth"},
	"github.com/coreos/go-oidc":           {"internal/auth/oidc"},
	"github.com/go-jose/go-jose":          {"internal/auth/oidc", "internal/ops/bundle"},
	"go.opentelemetry.io/":                {"internal/ops/telemetry"},
	"github.com/prometheus/client_golang": {"internal/ops/telemetry"},
	"google.golang.org/protobuf":          {"internal/ops/telemetry"},

	"github.com/rogpeppe/go-internal/diff":   {"internal/federation/lockfile", "internal/ops/openapi"},
	"golang.org/x/time":                      {"internal/federation/upstream"},
	"github.com/modelcontextprotocol/go-sdk": {"internal/federation/upstream"},
}

// testKits are packages of ours that any test may import.
var testKits = []string{"extensions/...", "scripting/worker", "internal/js/esbuild", "internal/auth/authn/idptest", "internal/auth/authn/certtest", "internal/protocol/mcp/mcptest", "internal/base/postgrestest", "internal/base/state/sqlite", "internal/base/state/statetest", "internal/execution/extension", "internal/ops/compose/samples", "internal/process/cputest", "internal/process/osproc"}

// testDoors are dependencies that only tests may import.
var testDoors = []string{
	"github.com/google/go-cmp", "go.uber.org/goleak", "github.com/jackc/pgx",
	"github.com/rogpeppe/go-internal", "golang.org/x/tools/txtar",
	"github.com/modelcontextprotocol/go-sdk", "github.com/gorilla/websocket", "github.com/santhosh-tekuri/jsonschema",
	"github.com/google/go-containerregistry/pkg/registry", "golang.org/x/net/html",
}

// TestLayout_imports reads every Go file itself instead of using the go tool, so a
// cached result never hides a forbidden import.
func TestLayout_imports(t *testing.T) {
	for _, file := range goFiles(t) {
		for _, imported := range importsOf(t, file) {
			checkImport(t, file, imported)
		}
	}
}

// TestLayout_noUnusedImports finds allowed imports that nothing uses.
func TestLayout_noUnusedImports(t *testing.T) {
	type arrow struct{ from, to string }
	unused := map[arrow]bool{}
	for from, allowed := range layout {
		for _, to := range allowed {
			unused[arrow{from, module + to}] = true
		}
	}
	for to, packages := range doors {
		for _, from := range packages {
			unused[arrow{from, to + "..."}] = true
		}
	}
	for _, file := range goFiles(t) {
		for _, imported := range importsOf(t, file) {
			for a := range unused {
				if matches([]string{a.from}, path.Dir(file)) && matches([]string{a.to}, imported) {
					delete(unused, a)
				}
			}
		}
	}
	for a := range unused {
		t.Errorf("%s may import %s, and does not", a.from, a.to)
	}
}

// TestLayout_inDecision compares the documented table with the enforced one.
func TestLayout_inDecision(t *testing.T) {
	decision, err := os.ReadFile("docs/project/decisions/0002-packages.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string][]string{}
	for line := range strings.Lines(string(decision)) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || !strings.Contains(cells[1], "`") {
			continue
		}
		for _, name := range quoted(cells[1]) {
			shown[name] = quoted(cells[3])
		}
	}
	for name, allowed := range layout {
		if got, want := slices.Sorted(slices.Values(shown[name])), slices.Sorted(slices.Values(allowed)); !slices.Equal(got, want) {
			t.Errorf("the decision shows %v for %s, the layout %v", got, name, want)
		}
		delete(shown, name)
	}
	if len(shown) > 0 {
		t.Errorf("the decision shows packages that the layout lacks: %v", shown)
	}
}

// quoted returns the texts between backquotes.
func quoted(text string) []string {
	var names []string
	for i, part := range strings.Split(text, "`") {
		if i%2 == 1 {
			names = append(names, part)
		}
	}
	return names
}

func TestLayout_packagesExist(t *testing.T) {
	var dirs []string
	for _, file := range goFiles(t) {
		dirs = append(dirs, path.Dir(file))
	}
	for pattern, allowed := range layout {
		for _, name := range append(slices.Clone(allowed), pattern) {
			if !slices.ContainsFunc(dirs, func(dir string) bool { return matches([]string{name}, dir) }) {
				t.Errorf("the layout of %[2]s names missing package %[1]s", name, pattern)
			}
		}
	}
}

func TestLayout_documented(t *testing.T) {
	documented := map[string]bool{}
	for _, file := range goFiles(t) {
		if isTest(file) {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		dir := path.Dir(file)
		documented[dir] = documented[dir] || parsed.Doc != nil
	}
	for dir, ok := range documented {
		if !ok {
			t.Errorf("package %s has no package comment", dir)
		}
	}
}

func TestEngine_size(t *testing.T) {
	lines := 0
	for _, file := range goFiles(t) {
		if path.Dir(file) == "engine" && !isTest(file) {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			lines += strings.Count(string(source), "\n")
		}
	}
	if lines >= 2500 {
		t.Errorf("engine has %d lines, more than 2500: move code into a package named after its domain", lines)
	}
}

func checkImport(t *testing.T, file, imported string) {
	t.Helper()
	dir := path.Dir(file)
	if ours, ok := strings.CutPrefix(imported, module); ok {
		allowed, known := allowedIn(dir)
		switch {
		case dir == "internal/checks":
		case !known:
			t.Errorf("%s: package %s is not in the layout table", file, dir)
		case ours == dir || sameGroup(dir, ours) || matches(allowed, ours):
		case isTest(file) && matches(testKits, ours):
		case isTest(file) && dir == "extensions" && ours == "serve": // examples are whole programs
		default:
			t.Errorf("%s: %s may not import %s", file, dir, ours)
		}
		return
	}
	if !strings.Contains(strings.Split(imported, "/")[0], ".") {
		return
	}
	if isTest(file) && slices.ContainsFunc(testDoors, func(door string) bool { return strings.HasPrefix(imported, door) }) {
		return
	}
	for door, packages := range doors {
		if strings.HasPrefix(imported, door) {
			if !slices.Contains(packages, dir) {
				t.Errorf("%s: %s is imported in %s only", file, imported, strings.Join(packages, ", "))
			}
			return
		}
	}
	t.Errorf("%s: dependency %s has no door in the layout table", file, imported)
}

// sameGroup reports whether two internal packages belong to the same group.
func sameGroup(a, b string) bool {
	group := func(dir string) []string { return strings.SplitN(dir, "/", 3) }
	one, other := group(a), group(b)
	return len(one) > 1 && len(other) > 1 && one[0] == "internal" && slices.Equal(one[:2], other[:2])
}

func allowedIn(dir string) (allowed []string, known bool) {
	if allowed, known = layout[dir]; known {
		return allowed, true
	}
	for pattern, list := range layout {
		if matches([]string{pattern}, dir) {
			return list, true
		}
	}
	return nil, false
}

func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		prefix, tree := strings.CutSuffix(pattern, "...")
		return pattern == name || tree && strings.HasPrefix(name+"/", prefix)
	})
}
