package mcpd_test

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

// ofNoRequest are the lines of the log that belong to no request, and what they belong to.
// All others name theirs by request_id. A line is known by its package and its message, or
// by what stands in the place of one.
var ofNoRequest = map[string]string{
	"scripting/worker no spare process can be started":          aProcess,
	"scripting/worker a process that runs bodies has ended":     aProcess,
	"serve the auth blocks cannot be applied: nobody is let in": aLoad,
	"serve a tool cannot be listed":                             aLoad,
	`serve "a "+m.Kind.String()+" cannot be listed"`:            aLoad,
	"serve the auth blocks let in who proves nothing, on an address that strangers reach: those from before stay in force until a restart": aLoad,
	"serve the listen block has changed; restart mcpd to make it take effect":                                                              aLoad,
	"serve the listen block is what it was at the start; no restart is needed":                                                             aLoad,
	"serve callers from other machines are told where bodies fail; remove expose_traces unless that is meant":                              aServer,
	"engine said":                     aLoad,
	"engine loaded":                   aLoad,
	"engine reloaded":                 aLoad,
	"engine the files have a warning": aLoad,
	"engine the files have more warnings; mcpd status shows them":                                      aLoad,
	"engine the audit block has changed; restart mcpd to make it take effect":                          aLoad,
	"engine dropped the token of a user":                                                               anOperator,
	"engine bodies run in this process":                                                                aServer,
	"engine what happens to the server cannot be written down":                                         aServer,
	"internal/limitstore the store of the limits has not taken a place back, which ends by itself":     aServer,
	"internal/audit the audit log is written, and its upkeep fails":                                    aServer,
	"internal/audit the audit log is written again":                                                    aServer,
	"internal/audit audit key is read-only":                                                            aServer,
	"internal/audit the audit log cannot be written":                                                   aServer,
	"internal/authn an identity provider answers again":                                                aProvider,
	"internal/authn an identity provider does not answer; what is known of its keys goes on for a day": aProvider,
	"internal/authn the file of keys is good again":                                                    aLoad,
	"internal/authn said": aLoad,
	"internal/authn the TLS files have changed: handshakes use them from now on": aLoad,
	"internal/authn message": aLoad,
	"internal/federation the tools of an upstream are pinned as it lists them now":                                       anUpstream,
	"internal/federation what upstreams offer is pinned in memory only, and anew at the next start":                      aServer,
	"internal/federation a change of a tool of an upstream is accepted":                                                  aLoad,
	"internal/federation a tool of an upstream is in quarantine until it is accepted; mcpd lock diff shows the change":   anUpstream,
	"internal/federation more tools of an upstream are in quarantine until they are accepted; mcpd lock diff shows them": anUpstream,
	"internal/host that the token of a user is lost cannot be written down":                                              aServer,
	"internal/mcp a client does not answer pings: its connection ends":                                                   aConnection,
	"internal/mcp a client does not answer pings: its stream ends":                                                       aConnection,
	"internal/state calls that wait, tasks and what tools keep are kept in memory, and a restart ends them":              aServer,
	"internal/state the state store cannot be swept":                                                                     aServer,
	"internal/systemd the server does not answer; systemd is not told that it is alive":                                  aServer,
	"internal/systemd systemd cannot be told that the server is alive":                                                   aServer,
	"internal/telemetry metrics are incomplete":                                                                          aServer,
	"internal/telemetry traces are lost until their collector takes them":                                                aServer,
	"internal/telemetry the collector takes traces again":                                                                aServer,
	"internal/transport/websocket a connection has panicked":                                                             aConnection,
	"internal/transport/websocket a client answers no pings: it is dropped":                                              aConnection,
	"internal/transport/websocket a client does not take what is sent to it: it is dropped":                              aConnection,
	"internal/federation an upstream server has not told yet what it offers":                                             anUpstream,
	"internal/upstream an upstream server cannot be reached":                                                             anUpstream,
	"internal/upstream an upstream server is ready":                                                                      anUpstream,
	"internal/upstream an upstream server does not log":                                                                  anUpstream,
	"internal/upstream an upstream server tells no more what changes":                                                    anUpstream,
	"internal/upstream an upstream server does not tell of a resource":                                                   anUpstream,
	"internal/upstream what": anUpstream,
	"internal/watch git is changing files: they are loaded when it is done":                                                     aLoad,
	"internal/watch git has held a lock for long: files are loaded without waiting for its end; remove the lock if no git runs": aLoad,
	"internal/watch notifications of file changes were lost: reading everything again":                                          aLoad,
	"internal/watch watching files by notifications again":                                                                      aLoad,
	"internal/watch watching files without notifications: looking every second":                                                 aLoad,
}

// What lines belong to that belong to no request.
const (
	aLoad       = "a load of the files"
	aProcess    = "a process that runs bodies of several calls"
	aServer     = "the server, from its start to its end"
	anOperator  = "a command of the operator"
	aConnection = "a connection, which carries many requests"
	aProvider   = "what is fetched for all callers"
	anUpstream  = "a connection to another server, for all calls"
)

// logMethods are those of a logger, and the place of the message among their arguments.
var logMethods = map[string]int{
	"Debug": 0, "Info": 0, "Warn": 0, "Error": 0, "DebugContext": 1, "InfoContext": 1, "WarnContext": 1, "ErrorContext": 1, "Log": 2, "LogAttrs": 2,
}

// TestEveryLineOfTheLogNamesItsRequest: in its function stands request_id, or it is written
// below a host call, whose context names the request. Lines of no request are listed.
func TestEveryLineOfTheLogNamesItsRequest(t *testing.T) {
	found := map[string]bool{}
	for _, name := range goFiles(t) {
		if isTest(name) || strings.HasPrefix(name, "cmd/") || strings.HasPrefix(name, "bench/") || strings.HasPrefix(name, "examples/") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range parsed.Decls {
			for _, line := range linesIn(declared) {
				key := path.Dir(name) + " " + line.said
				_, listed := ofNoRequest[key]
				found[key] = found[key] || listed
				if below := strings.HasPrefix(name, "internal/host/") && line.context; listed == (line.named || below) {
					t.Errorf("%s: %q belongs to a request and does not name it, or is in the list of lines of none and does", name, key)
				}
			}
		}
	}
	for key := range ofNoRequest {
		if !found[key] {
			t.Errorf("nothing logs %q", key)
		}
	}
}

// logged is a line that a declaration logs.
type logged struct {
	said string
	// named says that request_id stands in the declaration, and context that the line has
	// the context of what it is logged for.
	named, context bool
}

// linesIn returns what a declaration logs.
func linesIn(declared ast.Decl) (lines []logged) {
	named := false
	ast.Inspect(declared, func(n ast.Node) bool {
		if text, ok := n.(*ast.BasicLit); ok && text.Value == `"request_id"` {
			named = true
		}
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !isLogger(method.X) {
			return true
		}
		at, ok := logMethods[method.Sel.Name]
		if !ok || len(call.Args) <= at {
			return true
		}
		said := textOf(call.Args[at])
		if whole, err := strconv.Unquote(said); err == nil {
			said = whole
		}
		lines = append(lines, logged{said: said, context: at > 0 && textOf(call.Args[0]) != "context.Background()"})
		return true
	})
	for i := range lines {
		lines[i].named = named
	}
	return lines
}

// isLogger reports whether an expression is what is called a logger here.
func isLogger(x ast.Expr) bool {
	name := strings.TrimSuffix(textOf(x), "()")
	return slices.Contains([]string{"log", "logger"}, strings.ToLower(name[strings.LastIndex(name, ".")+1:]))
}

// textOf returns an expression as it is written, of the kinds that stand in calls of loggers.
func textOf(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.BasicLit:
		return x.Value
	case *ast.SelectorExpr:
		return textOf(x.X) + "." + x.Sel.Name
	case *ast.CallExpr:
		return textOf(x.Fun) + "()"
	case *ast.BinaryExpr:
		return textOf(x.X) + x.Op.String() + textOf(x.Y)
	}
	return "?"
}
