package checks_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// noRequest lists the code that logs lines without a request, with what they concern
// instead. A key is a package, or a function where other lines of its package do have
// requests.
var noRequest = map[string]string{
	"engine New":                                          aServer,
	"engine Server.Audit":                                 aServer,
	"engine Server.DropUserTokens":                        anOperator,
	"engine Server.closeAudit":                            aLoad,
	"internal/execution/changes Changes.call":             aLoad,
	"engine Server.logLoad":                               aLoad,
	"internal/execution/catalog":                          aLoad,
	"engine Server.warnRestart":                           aLoad,
	"internal/ops/audit":                                  aServer,
	"internal/auth/authn issuer.publish":                  aProvider,
	"internal/auth/authn keyFile.publish":                 aLoad,
	"internal/auth/authn tlsFiles.reload":                 aLoad,
	"internal/auth/authn tlsFiles.logOnce":                aLoad,
	"internal/federation/overlay":                         anUpstream,
	"internal/host Options.tokenLost":                     aServer,
	"internal/execution/limitstore":                       aServer,
	"internal/execution/extension":                        aServer,
	"internal/protocol/mcp Conn.heartbeat":                aConnection,
	"internal/protocol/mcp Stream.terminate":              aConnection,
	"internal/base/state":                                 aServer,
	"internal/base/state/postgres":                        aServer,
	"internal/ops/bundle":                                 aServer,
	"internal/ops/lsp":                                    anEditor,
	"internal/ops/report":                                 aServer,
	"internal/ops/systemd":                                aServer,
	"internal/ops/telemetry":                              aServer,
	"internal/protocol/transport/websocket client.reject": aConnection,
	"internal/protocol/transport/websocket client.send":   aConnection,
	"internal/protocol/transport/websocket client.serve":  aConnection,
	"internal/federation/upstream":                        anUpstream,
	"internal/ops/watch":                                  aLoad,
	"scripting/worker Executor.removeExited":              aProcess,
	"scripting/worker Executor.startSpare":                aProcess,
	"serve Front.watchListenConfig":                       aLoad,
	"serve Front.permitted":                               anOperator,
	"serve Front.runHTTP":                                 aServer,
	"serve authManager.apply":                             aLoad,
	"serve authManager.resync":                            aLoad,
	"serve encodeCache.store":                             aLoad,
	"serve link.serve":                                    aServer,
}

// Subjects of lines without a request.
const (
	aLoad       = "a load of the files"
	aProcess    = "a process that runs scripts of several calls"
	aServer     = "the server, from its start to its end"
	anOperator  = "a command of the operator"
	aConnection = "a connection, which carries many requests"
	aProvider   = "what is fetched for all callers"
	anUpstream  = "a connection to another server, for all calls"
	anEditor    = "a session of an editor, which has no calls"
)

// logMethods maps the methods of a logger to the position of the message argument.
var logMethods = map[string]int{
	"Debug": 0, "Info": 0, "Warn": 0, "Error": 0, "DebugContext": 1, "InfoContext": 1, "WarnContext": 1, "ErrorContext": 1, "Log": 2, "LogAttrs": 2,
}

// TestLogs_nameTheirRequest requires that every function that logs mentions request_id,
// or logs below a host call whose context has the request. noRequest lists the
// exceptions.
func TestLogs_nameTheirRequest(t *testing.T) {
	used := map[string]bool{}
	for _, name := range goFiles(t) {
		if isTest(name) || strings.HasPrefix(name, "cmd/") || strings.HasPrefix(name, "bench/") || strings.HasPrefix(name, "examples/") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		folder := path.Dir(name)
		for _, declared := range parsed.Decls {
			lines := linesIn(declared)
			if len(lines) == 0 {
				continue
			}
			function := folder + " " + nameOf(declared)
			named := mentions(declared, `"request_id"`)
			for _, line := range lines {
				below := strings.HasPrefix(name, "internal/host/") && line.context
				switch {
				case noRequest[function] != "":
					used[function] = true
					if named || below {
						t.Errorf("%s names its request: remove it from noRequest", function)
					}
				case noRequest[folder] != "":
					used[folder] = true
				case !named && !below:
					t.Errorf("%s logs a line without request_id: %s", function, line.said)
				}
			}
		}
	}
	for key := range noRequest {
		if !used[key] {
			t.Errorf("%s logs nothing", key)
		}
	}
}

// nameOf returns the name of a function, with the receiver type for a method.
func nameOf(declared ast.Decl) string {
	f, ok := declared.(*ast.FuncDecl)
	if !ok {
		return ""
	}
	if f.Recv == nil {
		return f.Name.Name
	}
	receiver := f.Recv.List[0].Type
	if pointer, ok := receiver.(*ast.StarExpr); ok {
		receiver = pointer.X
	}
	return textOf(receiver) + "." + f.Name.Name
}

// mentions reports whether a declaration contains a literal.
func mentions(declared ast.Decl, literal string) (found bool) {
	ast.Inspect(declared, func(n ast.Node) bool {
		text, ok := n.(*ast.BasicLit)
		found = found || ok && text.Value == literal
		return !found
	})
	return found
}

// logged is a log call and whether it passes the context of its cause.
type logged struct {
	said    string
	context bool
}

// linesIn returns the log calls of a declaration.
func linesIn(declared ast.Decl) (lines []logged) {
	ast.Inspect(declared, func(n ast.Node) bool {
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
		lines = append(lines, logged{textOf(call.Args[at]), at > 0 && textOf(call.Args[0]) != "context.Background()"})
		return true
	})
	return lines
}

// isLogger reports whether an expression has the name of a logger.
func isLogger(x ast.Expr) bool {
	name := strings.TrimSuffix(textOf(x), "()")
	return slices.Contains([]string{"log", "logger"}, strings.ToLower(name[strings.LastIndex(name, ".")+1:]))
}

// textOf returns the source text of an expression, for the kinds used in logger calls.
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

// TestLogs_areInTheReference requires each constant message that the program logs in
// docs/reference/logs.md.
func TestLogs_areInTheReference(t *testing.T) {
	page, err := os.ReadFile("docs/reference/logs.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range goFiles(t) {
		if isTest(file) || strings.HasPrefix(file, "testdata/") || strings.HasPrefix(file, "examples/") || strings.HasPrefix(file, "internal/protocol/mcp/mcptest/") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declared := range parsed.Decls {
			for _, line := range linesIn(declared) {
				message, err := strconv.Unquote(line.said)
				if err != nil {
					continue // not a constant
				}
				found++
				if !strings.Contains(string(page), "`"+message+"`") {
					t.Errorf("%s logs %q, which docs/reference/logs.md does not list", file, message)
				}
			}
		}
	}
	if found < 60 {
		t.Errorf("found only %d messages", found)
	}
}
