package checks_test

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// batteries are packages that a program links only if it imports a package below
// extensions/.
var batteries = []string{
	"database/sql",
	"github.com/coreos/go-oidc",
	"github.com/evanw/esbuild",
	"github.com/fsnotify/fsnotify",
	"github.com/go-jose/go-jose",
	"github.com/jackc/pgx",
	"github.com/modelcontextprotocol/go-sdk",
	"github.com/prometheus/",
	"go.opentelemetry.io/",
	"golang.org/x/time",
	"modernc.org/",
}

// ballast are packages that no server program needs: libraries of the command line and
// of tests, and packages that make the linker keep the methods of other types.
var ballast = []string{
	"encoding/gob",
	"expvar",
	"github.com/google/go-cmp",
	"github.com/opencontainers/",
	"github.com/santhosh-tekuri/jsonschema",
	"github.com/spf13/",
	"golang.org/x/term",
	"golang.org/x/tools",
	"html/template",
	"net/http/pprof",
	"oras.land/",
	"testing",
	"text/template",
}

func TestEmbed_linksNoBatteries(t *testing.T) {
	imports := map[string][]string{}
	for _, file := range goFiles(t) {
		if !isTest(file) {
			imports[path.Dir(file)] = append(imports[path.Dir(file)], importsOf(t, file)...)
		}
	}
	from := map[string]string{"examples/embed": ""}
	for next := []string{"examples/embed"}; len(next) > 0; next = next[1:] {
		for _, imported := range imports[next[0]] {
			for _, battery := range slices.Concat(batteries, ballast) {
				if strings.HasPrefix(imported, battery) {
					t.Errorf("examples/embed links %s by %s, which %s imports", imported, next[0], from[next[0]])
				}
			}
			ours, ok := strings.CutPrefix(imported, module)
			if _, seen := from[ours]; ok && !seen {
				from[ours] = next[0]
				next = append(next, ours)
			}
		}
	}
	if len(from) < 20 {
		t.Errorf("examples/embed imports only %d packages of ours", len(from))
	}
}
