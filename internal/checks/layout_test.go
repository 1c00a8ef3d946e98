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

// layout is the package table of docs/decisions/0002: which of our packages
// each package may import. A name that ends in "/..." stands for every package
// below it.
var layout = map[string][]string{
	"cmd/mcpd":                         {"engine", "serve", "diag", "identity", "scripting/worker", "scripting", "internal/ops/watch", "internal/process/supervisor", "internal/language/privdiff", "internal/auth/apikey", "internal/ops/audit", "internal/language/loader", "internal/ops/control", "internal/federation/lockfile", "internal/ops/systemd", "internal/ops/replay", "internal/process/timerslack", "internal/ops/compose", "internal/ops/deployment", "internal/base/atomicfile", "call"},
	"serve":                            {"engine", "diag", "identity", "internal/protocol/mcp", "internal/protocol/transport/...", "internal/auth/authn", "internal/protocol/tasks", "internal/base/lazyctx", "internal/language/grant", "internal/host/egress", "internal/ops/telemetry", "call"},
	"serve/conformance":                {"engine", "serve", "call"},
	"engine":                           {"scripting", "policylang", "identity", "diag", "call", "internal/language/hclfile", "internal/host", "internal/host/...", "internal/base/jsonguard", "internal/language/loader", "internal/execution/catalog", "internal/state", "internal/process/cputime", "internal/ops/tooltest", "internal/execution/hooks", "internal/execution/gofunc", "internal/execution/ratelimit", "internal/language/privdiff", "internal/execution/pubsub", "internal/ops/audit", "internal/codemode/codeact", "internal/federation", "internal/execution/limitstore", "internal/execution/calltree", "internal/execution/pipeline", "internal/base/redact", "internal/ops/telemetry", "internal/federation/lockfile"},
	"call":                             {"identity"},
	"identity":                         {},
	"diag":                             {},
	"scripting":                        {"diag", "internal/base/truncate", "internal/process/cputime", "internal/base/toml", "internal/base/watchdog", "internal/base/yaml", "internal/base/wildcard"},
	"scripting/worker":                 {"diag", "scripting", "internal/base/truncate", "internal/process/cputime", "internal/base/lazyctx", "internal/base/jsonguard", "internal/process/procgroup", "internal/process/sandbox", "internal/process/timerslack", "internal/base/watchdog"},
	"scripting/hosttest":               {"scripting"},
	"policylang":                       {"diag", "identity", "internal/base/truncate", "internal/base/jsonguard", "internal/process/cputime"},
	"internal/language/hclfile":        {"diag", "internal/ops/container", "internal/base/wildcard", "internal/language/grant", "internal/base/jsonguard", "internal/process/cputime", "internal/language/uritemplate", "internal/language/sqltext"},
	"internal/language/loader":         {"diag", "internal/language/hclfile"},
	"internal/ops/tooltest":            {"identity", "internal/execution/suspend", "internal/language/hclfile", "internal/host"},
	"internal/language/configcheck":    {"diag", "internal/execution/suspend", "internal/language/hclfile", "internal/language/grant", "internal/language/uritemplate"},
	"internal/language/privdiff":       {"diag", "internal/language/hclfile", "internal/language/grant"},
	"internal/execution/pipeline":      {"call", "scripting", "policylang", "identity", "internal/ops/telemetry", "internal/execution/suspend", "internal/ops/audit", "internal/execution/catalog", "internal/base/truncate", "internal/execution/content", "internal/base/lazyctx", "internal/execution/gofunc", "internal/language/hclfile", "internal/execution/hooks", "internal/host", "internal/base/jsonguard", "internal/base/workqueue", "internal/execution/calltree", "internal/base/safetext", "internal/execution/ratelimit", "internal/base/redact", "internal/execution/reply", "internal/language/schema", "internal/state"},
	"internal/ops/replay":              {"call", "policylang", "internal/ops/audit", "internal/execution/pipeline", "internal/language/uritemplate"},
	"internal/base/truncate":           {},
	"internal/base/safetext":           {"internal/base/truncate"},
	"internal/base/redact":             {"internal/base/truncate", "internal/base/jsontext"},
	"internal/execution/content":       {},
	"internal/process/cputime":         {},
	"internal/process/cputime/cputest": {"internal/process/cputime"},
	"internal/base/lazyctx":            {},
	"internal/execution/catalog":       {"call", "scripting", "policylang", "identity", "diag", "internal/language/hclfile", "internal/language/schema", "internal/language/grant", "internal/language/loader", "internal/language/configcheck", "internal/execution/hooks", "internal/host", "internal/host/secrets", "internal/execution/reply", "internal/language/uritemplate", "internal/base/redact", "internal/execution/ratelimit", "internal/base/truncate", "internal/language/privdiff", "internal/execution/resultcache", "internal/host/gomodule", "internal/host/oauth"},
	"internal/execution/hooks":         {"call", "scripting", "internal/host", "internal/host/...", "internal/language/grant", "internal/base/workqueue", "internal/base/redact", "internal/ops/telemetry"},
	"internal/execution/gofunc":        {"scripting", "identity", "internal/execution/catalog", "internal/base/watchdog", "diag", "internal/language/hclfile", "internal/language/schema", "internal/host/gomodule"},
	"internal/base/workqueue":          {"identity"},
	"internal/federation/lockfile":     {"internal/base/jsonguard", "internal/base/safetext", "internal/base/atomicfile"},
	"internal/execution/calltree":      {"scripting"},
	"internal/execution/pubsub":        {},
	"internal/ops/audit":               {"identity", "internal/base/jsonguard", "internal/base/redact", "internal/base/atomicfile"},
	"internal/execution/ratelimit":     {},
	"internal/execution/limitstore":    {"internal/execution/ratelimit"},
	"internal/base/watchdog":           {},
	"internal/process/timerslack":      {},
	"internal/execution/resultcache":   {},
	"internal/process/procgroup":       {},
	"internal/process/sandbox":         {},
	"internal/process/supervisor":      {"internal/process/procgroup", "internal/process/sandbox"},
	"internal/language/grant":          {},
	"internal/language/schema":         {"diag", "internal/base/jsontext"},
	"internal/base/jsonguard":          {},
	"internal/base/jsontext":           {"internal/base/jsonguard"},
	"internal/host":                    {"call", "scripting", "internal/ops/telemetry", "internal/base/wildcard", "identity", "internal/language/grant", "internal/host/...", "internal/base/redact", "internal/state"},
	"internal/host/execs":              {"scripting", "internal/language/grant", "internal/process/supervisor"},
	"internal/host/kv":                 {"scripting", "identity", "internal/language/grant", "internal/state"},
	"internal/host/sqldb":              {"scripting", "internal/base/truncate", "internal/language/grant", "internal/host/files", "internal/host/sqldb/sqlite", "internal/language/sqltext"},
	"internal/host/gomodule":           {"scripting", "identity"},
	"internal/host/oauth":              {"scripting", "internal/language/grant", "internal/base/jsonguard"},
	"internal/host/secrets":            {"internal/base/truncate", "internal/process/procgroup", "internal/base/redact", "internal/host/oauth"},
	"internal/host/...":                {"scripting", "internal/language/grant", "internal/base/jsontext", "internal/base/httpheader"},
	"internal/protocol/mcp":            {"identity", "internal/base/truncate", "internal/base/jsonguard", "internal/base/lazyctx", "call", "internal/base/jsontext", "internal/base/httpheader"},
	"internal/protocol/mcp/mcptest":    {"internal/protocol/mcp", "identity", "call"},
	"internal/protocol/transport/...":  {"internal/base/workqueue", "internal/protocol/mcp", "internal/base/jsonguard", "internal/auth/authn", "internal/base/lazyctx", "identity", "internal/protocol/transport/httpguard", "internal/protocol/transport/httpstream", "call", "internal/base/jsontext", "internal/base/httpheader"},
	"internal/auth/authn":              {"identity", "internal/auth/apikey", "internal/base/jsonguard", "internal/base/wildcard", "internal/auth/peercred", "internal/base/httpheader"},
	"internal/auth/peercred":           {},
	"internal/base/httpheader":         {},
	"internal/auth/apikey/keytest":     {"internal/auth/apikey"},
	"internal/auth/authn/idptest":      {},
	"internal/auth/authn/certtest":     {},
	"internal/auth/apikey":             {"identity", "internal/base/jsonguard", "internal/base/atomicfile"},
	"internal/base/atomicfile":         {},
	"internal/ops/telemetry":           {"internal/base/httpheader"},
	"internal/codemode/codeact":        {"call", "diag", "scripting", "internal/execution/catalog", "internal/codemode/toolprompt", "internal/execution/content", "internal/language/hclfile", "internal/execution/reply", "internal/language/schema", "internal/base/jsontext"},
	"internal/federation":              {"diag", "scripting", "internal/execution/catalog", "internal/base/truncate", "internal/execution/content", "internal/language/grant", "internal/language/hclfile", "internal/host", "internal/base/safetext", "internal/execution/reply", "internal/language/schema", "internal/federation/upstream", "internal/language/uritemplate", "internal/federation/lockfile"},
	"internal/federation/upstream":     {"diag", "internal/base/truncate", "internal/language/grant", "internal/base/jsonguard", "internal/process/supervisor"},
	"internal/codemode/toolprompt":     {"diag", "internal/base/truncate", "scripting"},
	"internal/ops/watch":               {},
	"internal/ops/compose":             {"internal/ops/container", "internal/base/yaml"},
	"internal/ops/compose/samples":     {"internal/ops/compose"},
	"internal/ops/container":           {},
	"internal/ops/deployment":          {"diag", "internal/ops/compose", "internal/ops/container", "internal/language/grant", "internal/language/hclfile", "internal/federation/lockfile", "internal/language/privdiff", "internal/language/loader"},
	"internal/ops/control":             {"internal/base/jsonguard", "internal/protocol/transport/httpguard", "internal/auth/peercred"},
	"internal/ops/systemd":             {},
	"internal/state":                   {"identity"},
	"internal/execution/suspend":       {"call", "diag", "internal/language/schema", "internal/state", "scripting"},
	"internal/protocol/tasks":          {"identity", "internal/execution/suspend", "internal/state", "internal/base/workqueue", "call"},
	"internal/language/uritemplate":    {},
	"internal/language/sqltext":        {},
	"internal/base/toml":               {},
	"internal/base/wildcard":           {},
	"internal/base/yaml":               {"internal/base/jsontext"},
	"internal/execution/reply":         {"scripting", "internal/base/jsontext"},
	"internal/state/statetest":         {"internal/state", "identity"},
	"bench":                            {"engine", "serve", "identity", "internal/process/cputime", "scripting", "scripting/worker", "call"},
	"testdata/federation/peer":         {"call", "engine", "identity", "serve", "internal/language/grant", "internal/federation/upstream"},
	"examples/exampletest":             {"engine", "scripting"},
	"examples/observability":           {"internal/ops/telemetry", "internal/base/yaml"},
	"examples/embed":                   {"engine", "serve", "identity", "scripting", "scripting/worker"},
	"examples/...":                     {"engine", "serve", "identity", "scripting", "call"},
}

// doors names the only packages that may import a dependency; a prefix covers
// every package of that module. Tests may also use what testDoors lists.
var doors = map[string][]string{
	"github.com/dop251/goja":                {"scripting"},
	"github.com/evanw/esbuild":              {"scripting"},
	"github.com/google/cel-go":              {"policylang"},
	"github.com/hashicorp/hcl":              {"internal/language/hclfile"},
	"github.com/zclconf/go-cty":             {"internal/language/hclfile"},
	"github.com/santhosh-tekuri/jsonschema": {"internal/language/schema"},
	"github.com/google/jsonschema-go":       {"internal/language/schema"},
	"github.com/fsnotify/fsnotify":          {"internal/ops/watch"},
	"github.com/gorilla/websocket":          {"internal/protocol/transport/websocket"},
	"github.com/spf13/cobra":                {"cmd/mcpd"},
	"golang.org/x/sys":                      {"internal/process/sandbox"},
	"golang.org/x/term":                     {"cmd/mcpd"},
	"github.com/BurntSushi/toml":            {"internal/base/toml"},
	"go.yaml.in/yaml":                       {"internal/base/yaml"},
	"modernc.org/":                          {"internal/state", "internal/host/sqldb", "internal/host/sqldb/sqlite"},
	"github.com/google/go-cmp":              {"internal/state/statetest"},
	"github.com/jackc/pgx":                  {"internal/host/sqldb"},
	"golang.org/x/oauth2":                   {"internal/host/oauth"},
	"github.com/coreos/go-oidc":             {"internal/auth/authn"},
	"github.com/go-jose/go-jose":            {"internal/auth/authn"},
	"go.opentelemetry.io/":                  {"internal/ops/telemetry"},
	"github.com/prometheus/client_golang":   {"internal/ops/telemetry"},
	"google.golang.org/protobuf":            {"internal/ops/telemetry"},

	"github.com/rogpeppe/go-internal/diff":   {"internal/federation/lockfile"},
	"golang.org/x/time":                      {"internal/federation/upstream"},
	"github.com/modelcontextprotocol/go-sdk": {"internal/federation/upstream"},
}

// testKits are packages of ours that tests alone may import, wherever they stand.
var testKits = []string{"internal/auth/apikey/keytest", "internal/auth/authn/idptest", "internal/auth/authn/certtest", "internal/process/cputime/cputest", "internal/protocol/mcp/mcptest", "internal/state/statetest", "internal/ops/compose/samples", "examples/exampletest"}

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
		case dir == "internal/checks":
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
