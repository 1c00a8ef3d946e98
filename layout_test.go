package mcpd_test

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

// layout is the package table of docs/decisions/0002: which of our packages
// each package may import. A name that ends in "/..." stands for every package
// below it.
var layout = map[string][]string{
	"cmd/mcpd":                 {"engine", "serve", "diag", "identity", "scripting/worker", "scripting", "internal/watch", "internal/supervisor", "internal/power", "internal/apikey", "internal/audit", "internal/source", "internal/control", "internal/lockfile", "internal/systemd", "internal/replay", "internal/timerslack", "internal/compose", "internal/deployment", "internal/atomicfile"},
	"serve":                    {"engine", "diag", "identity", "internal/mcp", "internal/transport/...", "internal/authn", "internal/tasks", "internal/deadline", "internal/grant", "internal/host/egress", "internal/telemetry", "call"},
	"serve/conformance":        {"engine", "serve"},
	"engine":                   {"scripting", "policylang", "identity", "diag", "call", "internal/hclfile", "internal/host", "internal/host/...", "internal/jsongate", "internal/source", "internal/catalog", "internal/state", "internal/cputime", "internal/selftest", "internal/hooks", "internal/gofunc", "internal/ratelimit", "internal/power", "internal/audience", "internal/audit", "internal/codeact", "internal/federation", "internal/limitstore", "internal/nesting", "internal/pipeline", "internal/redact", "internal/telemetry", "internal/lockfile"},
	"call":                     {"identity"},
	"identity":                 {},
	"diag":                     {},
	"scripting":                {"diag", "internal/clip", "internal/cputime", "internal/toml", "internal/watchdog", "internal/yaml", "internal/wildcard"},
	"scripting/worker":         {"diag", "scripting", "internal/clip", "internal/cputime", "internal/deadline", "internal/jsongate", "internal/procgroup", "internal/sandbox", "internal/timerslack", "internal/watchdog"},
	"scripting/hosttest":       {"scripting"},
	"policylang":               {"diag", "identity", "internal/clip", "internal/jsongate", "internal/cputime"},
	"internal/hclfile":         {"diag", "internal/container", "internal/wildcard", "internal/grant", "internal/jsongate", "internal/cputime", "internal/uritemplate", "internal/sqltext"},
	"internal/source":          {"diag", "internal/hclfile"},
	"internal/selftest":        {"identity", "internal/asking", "internal/hclfile", "internal/host"},
	"internal/crossref":        {"diag", "internal/asking", "internal/hclfile", "internal/grant", "internal/uritemplate"},
	"internal/power":           {"diag", "internal/hclfile", "internal/grant"},
	"internal/pipeline":        {"call", "scripting", "policylang", "identity", "internal/telemetry", "internal/asking", "internal/audit", "internal/catalog", "internal/clip", "internal/content", "internal/deadline", "internal/gofunc", "internal/hclfile", "internal/hooks", "internal/host", "internal/jsongate", "internal/lanes", "internal/nesting", "internal/plain", "internal/ratelimit", "internal/redact", "internal/reply", "internal/schema", "internal/state"},
	"internal/replay":          {"call", "policylang", "internal/audit", "internal/pipeline", "internal/uritemplate"},
	"internal/clip":            {},
	"internal/plain":           {"internal/clip"},
	"internal/redact":          {"internal/clip", "internal/jsontext"},
	"internal/content":         {},
	"internal/cputime":         {},
	"internal/cputime/cputest": {"internal/cputime"},
	"internal/deadline":        {},
	"internal/catalog":         {"call", "scripting", "policylang", "identity", "diag", "internal/hclfile", "internal/schema", "internal/grant", "internal/source", "internal/crossref", "internal/hooks", "internal/host", "internal/host/secrets", "internal/reply", "internal/uritemplate", "internal/redact", "internal/ratelimit", "internal/clip", "internal/power", "internal/resultcache", "internal/host/modules", "internal/host/oauth"},
	"internal/hooks":           {"call", "scripting", "internal/host", "internal/host/...", "internal/grant", "internal/lanes", "internal/redact", "internal/telemetry"},
	"internal/gofunc":          {"scripting", "identity", "internal/catalog", "internal/watchdog", "diag", "internal/hclfile", "internal/schema", "internal/host/modules"},
	"internal/lanes":           {"identity"},
	"internal/lockfile":        {"internal/jsongate", "internal/plain", "internal/atomicfile"},
	"internal/nesting":         {"scripting"},
	"internal/audience":        {},
	"internal/audit":           {"identity", "internal/jsongate", "internal/redact", "internal/atomicfile"},
	"internal/ratelimit":       {},
	"internal/limitstore":      {"internal/ratelimit"},
	"internal/watchdog":        {},
	"internal/timerslack":      {},
	"internal/resultcache":     {},
	"internal/procgroup":       {},
	"internal/sandbox":         {},
	"internal/supervisor":      {"internal/procgroup", "internal/sandbox"},
	"internal/grant":           {},
	"internal/schema":          {"diag", "internal/jsontext"},
	"internal/jsongate":        {},
	"internal/jsontext":        {"internal/jsongate"},
	"internal/host":            {"call", "scripting", "internal/telemetry", "internal/wildcard", "identity", "internal/grant", "internal/host/...", "internal/redact", "internal/state"},
	"internal/host/execs":      {"scripting", "internal/grant", "internal/supervisor"},
	"internal/host/kv":         {"scripting", "identity", "internal/grant", "internal/state"},
	"internal/host/sqldb":      {"scripting", "internal/clip", "internal/grant", "internal/host/files", "internal/host/sqldb/lite", "internal/sqltext"},
	"internal/host/modules":    {"scripting", "identity"},
	"internal/host/oauth":      {"scripting", "internal/grant", "internal/jsongate"},
	"internal/host/secrets":    {"internal/clip", "internal/procgroup", "internal/redact", "internal/host/oauth"},
	"internal/host/...":        {"scripting", "internal/grant", "internal/jsontext", "internal/httpheader"},
	"internal/mcp":             {"identity", "internal/clip", "internal/jsongate", "internal/deadline", "call", "internal/jsontext", "internal/httpheader"},
	"internal/mcp/mcptest":     {"internal/mcp", "identity", "call"},
	"internal/transport/...":   {"internal/lanes", "internal/mcp", "internal/jsongate", "internal/authn", "internal/deadline", "identity", "internal/transport/gate", "internal/transport/exchange", "call", "internal/jsontext", "internal/httpheader"},
	"internal/authn":           {"identity", "internal/apikey", "internal/jsongate", "internal/wildcard", "internal/peercred", "internal/httpheader"},
	"internal/peercred":        {},
	"internal/httpheader":      {},
	"internal/apikey/keytest":  {"internal/apikey"},
	"internal/authn/idptest":   {},
	"internal/authn/certtest":  {},
	"internal/apikey":          {"identity", "internal/jsongate", "internal/atomicfile"},
	"internal/atomicfile":      {},
	"internal/telemetry":       {"internal/httpheader"},
	"internal/codeact":         {"call", "diag", "scripting", "internal/catalog", "internal/codemode", "internal/content", "internal/hclfile", "internal/reply", "internal/schema", "internal/jsontext"},
	"internal/federation":      {"diag", "scripting", "internal/catalog", "internal/clip", "internal/content", "internal/grant", "internal/hclfile", "internal/host", "internal/plain", "internal/reply", "internal/schema", "internal/upstream", "internal/uritemplate", "internal/lockfile"},
	"internal/upstream":        {"diag", "internal/clip", "internal/grant", "internal/jsongate", "internal/supervisor"},
	"internal/codemode":        {"diag", "internal/clip", "scripting"},
	"internal/watch":           {},
	"internal/compose":         {"internal/container", "internal/yaml"},
	"internal/compose/samples": {"internal/compose"},
	"internal/container":       {},
	"internal/deployment":      {"diag", "internal/compose", "internal/container", "internal/grant", "internal/hclfile", "internal/lockfile", "internal/power", "internal/source"},
	"internal/control":         {"internal/jsongate", "internal/transport/gate", "internal/peercred"},
	"internal/systemd":         {},
	"internal/state":           {"identity"},
	"internal/asking":          {"call", "diag", "internal/schema", "internal/state", "scripting"},
	"internal/tasks":           {"identity", "internal/asking", "internal/state", "internal/lanes", "call"},
	"internal/uritemplate":     {},
	"internal/sqltext":         {},
	"internal/toml":            {},
	"internal/wildcard":        {},
	"internal/yaml":            {"internal/jsontext"},
	"internal/reply":           {"scripting", "internal/jsontext"},
	"internal/state/statetest": {"internal/state", "identity"},
	"bench":                    {"engine", "serve", "identity", "internal/cputime", "scripting", "scripting/worker"},
	"testdata/federation/peer": {"engine", "identity", "serve", "internal/grant", "internal/upstream"},
	"examples/exampletest":     {"engine", "scripting"},
	"examples/observability":   {"internal/telemetry", "internal/yaml"},
	"examples/embed":           {"engine", "serve", "identity", "scripting", "scripting/worker"},
	"examples/...":             {"engine", "serve", "identity", "scripting"},
}

// doors names the only packages that may import a dependency; a prefix covers
// every package of that module. Tests may also use what testDoors lists.
var doors = map[string][]string{
	"github.com/dop251/goja":                {"scripting"},
	"github.com/evanw/esbuild":              {"scripting"},
	"github.com/google/cel-go":              {"policylang"},
	"github.com/hashicorp/hcl":              {"internal/hclfile"},
	"github.com/zclconf/go-cty":             {"internal/hclfile"},
	"github.com/santhosh-tekuri/jsonschema": {"internal/schema"},
	"github.com/google/jsonschema-go":       {"internal/schema"},
	"github.com/fsnotify/fsnotify":          {"internal/watch"},
	"github.com/gorilla/websocket":          {"internal/transport/websocket"},
	"github.com/spf13/cobra":                {"cmd/mcpd"},
	"golang.org/x/sys":                      {"internal/sandbox"},
	"golang.org/x/term":                     {"cmd/mcpd"},
	"github.com/BurntSushi/toml":            {"internal/toml"},
	"go.yaml.in/yaml":                       {"internal/yaml"},
	"modernc.org/":                          {"internal/state", "internal/host/sqldb", "internal/host/sqldb/lite"},
	"github.com/google/go-cmp":              {"internal/state/statetest"},
	"github.com/jackc/pgx":                  {"internal/host/sqldb"},
	"golang.org/x/oauth2":                   {"internal/host/oauth"},
	"github.com/coreos/go-oidc":             {"internal/authn"},
	"github.com/go-jose/go-jose":            {"internal/authn"},
	"go.opentelemetry.io/":                  {"internal/telemetry"},
	"github.com/prometheus/client_golang":   {"internal/telemetry"},
	"google.golang.org/protobuf":            {"internal/telemetry"},

	"github.com/rogpeppe/go-internal/diff":   {"internal/lockfile"},
	"golang.org/x/time":                      {"internal/upstream"},
	"github.com/modelcontextprotocol/go-sdk": {"internal/upstream"},
}

// testKits are packages of ours that tests alone may import, wherever they stand.
var testKits = []string{"internal/apikey/keytest", "internal/authn/idptest", "internal/authn/certtest", "internal/cputime/cputest", "internal/mcp/mcptest", "internal/state/statetest", "internal/compose/samples", "examples/exampletest"}

// testDoors are dependencies that tests alone may import.
var testDoors = []string{
	"github.com/google/go-cmp", "go.uber.org/goleak",
	"github.com/rogpeppe/go-internal", "golang.org/x/tools/txtar",
	"github.com/modelcontextprotocol/go-sdk", "github.com/gorilla/websocket",
}

// TestImportsFollowTheLayout reads every Go file itself rather than asking the
// go tool, so that a cached result never hides a forbidden import.
func TestImportsFollowTheLayout(t *testing.T) {
	for _, file := range goFiles(t) {
		for _, imported := range importsOf(t, file) {
			checkImport(t, file, imported)
		}
	}
}

// TestNothingIsAllowedThatNobodyImports closes doors and takes out arrows that
// are of no use any more.
func TestNothingIsAllowedThatNobodyImports(t *testing.T) {
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

// TestTheDecisionShowsTheLayout keeps the table that people read and the one
// that is enforced the same.
func TestTheDecisionShowsTheLayout(t *testing.T) {
	decision, err := os.ReadFile("docs/decisions/0002-packages-beside-the-table.md")
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

// quoted returns what stands between backquotes.
func quoted(text string) []string {
	var names []string
	for i, part := range strings.Split(text, "`") {
		if i%2 == 1 {
			names = append(names, part)
		}
	}
	return names
}

func TestEveryPackageOfTheLayoutExists(t *testing.T) {
	var dirs []string
	for _, file := range goFiles(t) {
		dirs = append(dirs, path.Dir(file))
	}
	for pattern, allowed := range layout {
		for _, name := range append(slices.Clone(allowed), pattern) {
			if !slices.ContainsFunc(dirs, func(dir string) bool { return matches([]string{name}, dir) }) {
				t.Errorf("there is no package %s, which the layout of %s names", name, pattern)
			}
		}
	}
}

func TestEveryPackageOfTheLayoutIsDocumented(t *testing.T) {
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

func TestTheEngineStaysSmall(t *testing.T) {
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
		t.Errorf("engine has %d lines; what grows past 2500 moves into a package with a name of the domain", lines)
	}
}

func checkImport(t *testing.T, file, imported string) {
	t.Helper()
	dir := path.Dir(file)
	if ours, ok := strings.CutPrefix(imported, module); ok {
		allowed, known := allowedIn(dir)
		switch {
		case dir == ".":
		case !known:
			t.Errorf("%s: package %s is not in the layout table", file, dir)
		case ours == dir || matches(allowed, ours):
		case isTest(file) && slices.Contains(testKits, ours):
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
		return pattern == name || tree && strings.HasPrefix(name, prefix)
	})
}
