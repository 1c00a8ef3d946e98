package main

import (
	"context"
	"debug/buildinfo"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpd/mcpd/bench/peers/servers/workload"
)

// mode is a way to reach a server.
type mode struct {
	name      string
	title     string
	transport string // http, sse, websocket or stdio
	revision  string
	sessions  bool
}

var modes = []mode{
	{"http", "HTTP 2026-07-28", "http", modern, false},
	{"http-session", "HTTP 2025-11-25, session", "http", legacy, true},
	{"http-stateless", "HTTP 2025-11-25, no session", "http", legacy, false},
	{"sse", "HTTP+SSE 2025-11-25", "sse", legacy, true},
	{"websocket", "WebSocket 2026-07-28", "websocket", modern, false},
	{"stdio", "stdio 2026-07-28", "stdio", modern, false},
	{"stdio-legacy", "stdio 2025-11-25", "stdio", legacy, true},
}

func modeNamed(name string) mode {
	for _, m := range modes {
		if m.name == name {
			return m
		}
	}
	panic("unknown mode " + name) // names are constants
}

// server is a program in one configuration.
type server struct {
	name, title string
	program     string // bare, embedded, gosdk, mcpgo, mcpd or node
	modes       []string
	isolated    bool     // of bare: tools in another process
	executor    string   // of mcpd
	config      []string // blocks of mcpd.hcl
}

// Blocks of mcpd.hcl. They allow all calls.
const (
	policyBlock = `
policy "positive" {
  tools  = ["add"]
  deny   = "args.a < 0.0"
  reason = "Only positive numbers"
}
`
	limitBlock = `
limit "per_caller" {
  key   = "principal.id"
  rate  = "1000000/s"
  burst = 1000000
}
`
	auditBlock = `
audit {
  path = "audit/mcpd.jsonl"
}
`
)

var (
	mcpdModes = []string{"http", "http-session", "sse", "websocket", "stdio", "stdio-legacy"}
	sdkModes  = []string{"http", "http-session", "http-stateless", "sse", "stdio", "stdio-legacy"}
	bareModes = []string{"http", "http-session", "http-stateless", "stdio", "stdio-legacy"}
)

// baseline is the name of the server that the others are compared with.
const baseline = "bare"

// The HTTP of the bare handler does not depend on the revision: it is the baseline of
// HTTP+SSE and WebSocket too.
var servers = []server{
	{name: baseline, title: "bare handler", program: "bare", modes: append(bareModes, "sse", "websocket")},
	{name: "bare-isolated", title: "bare handler, tool in another process", program: "bare", isolated: true, modes: []string{"http", "stdio"}},
	{name: "mcpd-go", title: "mcpd, tool in Go", program: "embedded", modes: mcpdModes},
	{name: "mcpd-inline", title: "mcpd, script inline", program: "mcpd", executor: "inline", modes: mcpdModes},
	{name: "mcpd-worker", title: "mcpd, script in a worker", program: "mcpd", executor: "worker", modes: mcpdModes},
	{name: "go-sdk", title: "go-sdk", program: "gosdk", modes: sdkModes},
	{name: "mcp-go", title: "mcp-go", program: "mcpgo", modes: sdkModes},
	{name: "typescript", title: "TypeScript SDK", program: "node", modes: sdkModes},

	{name: "mcpd-go-policy", title: "mcpd, tool in Go, policy", program: "embedded", config: []string{policyBlock}},
	{name: "mcpd-go-limit", title: "mcpd, tool in Go, limit", program: "embedded", config: []string{limitBlock}},
	{name: "mcpd-go-audit", title: "mcpd, tool in Go, audit", program: "embedded", config: []string{auditBlock}},
	{name: "mcpd-go-all", title: "mcpd, tool in Go, all three", program: "embedded", config: []string{policyBlock, limitBlock, auditBlock}},
	{name: "mcpd-inline-policy", title: "mcpd, script inline, policy", program: "mcpd", executor: "inline", config: []string{policyBlock}},
	{name: "mcpd-inline-limit", title: "mcpd, script inline, limit", program: "mcpd", executor: "inline", config: []string{limitBlock}},
	{name: "mcpd-inline-audit", title: "mcpd, script inline, audit", program: "mcpd", executor: "inline", config: []string{auditBlock}},
	{name: "mcpd-inline-all", title: "mcpd, script inline, all three", program: "mcpd", executor: "inline", config: []string{policyBlock, limitBlock, auditBlock}},
	{name: "mcpd-worker-policy", title: "mcpd, script in a worker, policy", program: "mcpd", executor: "worker", config: []string{policyBlock}},
	{name: "mcpd-worker-limit", title: "mcpd, script in a worker, limit", program: "mcpd", executor: "worker", config: []string{limitBlock}},
	{name: "mcpd-worker-audit", title: "mcpd, script in a worker, audit", program: "mcpd", executor: "worker", config: []string{auditBlock}},
	{name: "mcpd-worker-all", title: "mcpd, script in a worker, all three", program: "mcpd", executor: "worker", config: []string{policyBlock, limitBlock, auditBlock}},
}

func serverNamed(name string) server {
	for _, s := range servers {
		if s.name == name {
			return s
		}
	}
	panic("unknown server " + name) // names are constants
}

// site is where the servers run.
type site struct {
	dir  string // directory for their files
	bin  string // directory with their programs
	node string // directory with the TypeScript server and its packages; empty without node
}

//go:embed servers/typescript/package.json servers/typescript/server.mjs
var typescript embed.FS

// build compiles all programs. It must run in the directory of this module.
func (s *site) build(ctx context.Context) error {
	s.bin = filepath.Join(s.dir, "bin")
	for _, c := range [][]string{
		{"build", "-trimpath", "-ldflags=-s -w", "-o", s.bin + "/", "./servers/..."},
		{"build", "-C", "../..", "-trimpath", "-ldflags=-s -w", "-o", filepath.Join(s.bin, "mcpd"), "./cmd/mcpd"},
	} {
		cmd := exec.CommandContext(ctx, "go", c...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("go %s: %w\n%s", strings.Join(c, " "), err, out)
		}
	}
	return nil
}

// installNode puts the TypeScript server into a directory of the user's cache, with its
// packages. If install is false, it uses only packages that are there.
func (s *site) installNode(ctx context.Context, install bool) error {
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	dir := filepath.Join(cache, "mcpd-peers", "typescript")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	manifest, err := typescript.ReadFile("servers/typescript/package.json")
	if err != nil {
		return err
	}
	installed := filepath.Join(dir, "installed.json") // the manifest of node_modules
	if old, _ := os.ReadFile(installed); string(old) != string(manifest) {
		if !install {
			return errors.New("the packages are not installed")
		}
		if err := os.WriteFile(filepath.Join(dir, "package.json"), manifest, 0o644); err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, "npm", "install", "--no-audit", "--no-fund", "--loglevel=error")
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("npm install: %w\n%s", err, out)
		}
		if err := os.WriteFile(installed, manifest, 0o644); err != nil {
			return err
		}
	}
	program, err := typescript.ReadFile("servers/typescript/server.mjs")
	if err != nil {
		return err
	}
	s.node = dir
	return os.WriteFile(filepath.Join(dir, "server.mjs"), program, 0o644)
}

// available reports whether the program of a server exists.
func (s *site) available(v server) bool { return v.program != "node" || s.node != "" }

// size returns the size of a server's program in bytes. For the TypeScript SDK it is
// the size of node.
func (s *site) size(v server) (int64, error) {
	path := filepath.Join(s.bin, v.program)
	if v.program == "node" {
		path = s.nodeProgram()
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (s *site) nodeProgram() string {
	return filepath.Join(s.node, "node_modules", "node", "bin", "node")
}

// versions returns the compared libraries with their versions.
func (s *site) versions() (all []string, err error) {
	for program, path := range map[string]string{"gosdk": "github.com/modelcontextprotocol/go-sdk", "mcpgo": "github.com/mark3labs/mcp-go"} {
		info, err := buildinfo.ReadFile(filepath.Join(s.bin, program))
		if err != nil {
			return nil, err
		}
		for _, dep := range info.Deps {
			if dep.Path == path {
				all = append(all, dep.Path+" "+dep.Version)
			}
		}
	}
	if s.node != "" {
		var manifest struct{ Dependencies map[string]string }
		text, err := typescript.ReadFile("servers/typescript/package.json")
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, &manifest); err != nil {
			return nil, err
		}
		for _, name := range []string{"@modelcontextprotocol/server", "@modelcontextprotocol/sdk", "node"} {
			all = append(all, name+" "+manifest.Dependencies[name])
		}
	}
	slices.Sort(all)
	return all, nil
}

// command returns the command of a server with a number of tools.
func (s *site) command(v server, m mode, tools int) (*exec.Cmd, string, error) {
	work, err := os.MkdirTemp(s.dir, v.name+"-")
	if err != nil {
		return nil, "", err
	}
	if v.config != nil {
		if err := os.WriteFile(filepath.Join(work, "mcpd.hcl"), []byte(strings.Join(v.config, "")), 0o600); err != nil {
			return nil, "", err
		}
	}
	transport := m.transport
	if transport == "websocket" || transport == "sse" && (v.program == "bare" || v.program == "embedded") {
		transport = "http" // the same server
	}
	args := []string{"--transport", transport, "--tools", strconv.Itoa(tools)}
	if m.sessions && transport == "http" {
		args = append(args, "--sessions")
	}
	if v.isolated {
		args = append(args, "--isolated")
	}
	program := filepath.Join(s.bin, v.program)
	switch v.program {
	case "embedded":
		if v.config != nil {
			args = append(args, "--config", work)
		}
	case "node":
		program = s.nodeProgram()
		if args = append([]string{filepath.Join(s.node, "server.mjs")}, args...); m.revision == modern {
			args = append(args, "--modern")
		}
	case "mcpd":
		if err := writeTools(filepath.Join(work, "tools.d"), tools); err != nil {
			return nil, "", err
		}
		args = []string{"serve", "--executor", v.executor, "--state", "memory", "--control", "off"}
		if transport == "stdio" {
			args = append(args, "--stdio")
		} else {
			args = append(args, "--listen", "127.0.0.1:0")
		}
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = work
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+work, "NODE_ENV=production")
	return cmd, work, nil
}

// addTool is a tool file.
const addTool = `tool %q {
  description = %q

  input "a" { type = number }
  input "b" { type = number }
  output "sum" { type = number }

  run = <<JS
    return { sum: input.a + input.b };
  JS
}
`

// writeTools writes the tools of mcpd, one file each.
func writeTools(dir string, count int) error {
	files := map[string]string{
		"add": fmt.Sprintf(addTool, "add", workload.AddDescription),
		"blob": fmt.Sprintf("tool \"blob\" {\n  description = %q\n\n  run = <<JS\n    return %q.repeat(%d);\n  JS\n}\n",
			workload.BlobDescription, workload.Row, workload.Rows),
	}
	for _, name := range workload.Fillers(count) {
		files[name] = fmt.Sprintf(addTool, name, workload.FillerDescription)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name+".hcl"), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
