// Package checks imports real OpenAPI documents, and compares how mcpd reads them with kin-openapi.
package checks

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/mcpd/mcpd/internal/ops/openapi"
	"github.com/mcpd/mcpd/internal/ops/openapi/spec"
)

// document is a real document in an npm package.
type document struct {
	name, pkg, version, file string
	tags                     []string
	// path is the path of its server.
	path string
	// operations is the number of selected operations, and left the number that no tool can serve.
	operations, left int
}

// documents have more than 50 operations each. The first one is part of every run, the others need
// MCPD_LONG.
var documents = []document{
	{name: "readme", pkg: "@readme/oas-examples", version: "8.2.2", file: "3.1/json/readme.json", path: "/v2", operations: 54, left: 4},
	{name: "blockfrost", pkg: "@blockfrost/openapi", version: "0.1.93", file: "openapi.yaml", path: "/api/v0", operations: 129, left: 3},
	{name: "stapi", pkg: "@readme/oas-examples", version: "8.2.2", file: "3.0/json/star-trek.json", path: "/api", operations: 120},
	{name: "github", pkg: "@octokit/openapi", version: "23.0.2", file: "generated/api.github.com.json", tags: []string{"issues", "pulls"}, operations: 92},
}

// TestImport imports each document, runs the tests of the import, serves the tools, and calls each
// of them twice: with the required inputs and with all inputs. kin-openapi validates the requests
// and the responses.
func TestImport(t *testing.T) {
	mcpd := build(t)
	for i, d := range documents {
		t.Run(d.name, func(t *testing.T) {
			if i > 0 && os.Getenv("MCPD_LONG") == "" {
				t.Skip("needs MCPD_LONG=1")
			}
			text := d.download(t)
			compare(t, text)
			d.call(t, mcpd, text)
		})
	}
}

// build builds mcpd.
func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "mcpd")
	cmd := exec.Command("go", "build", "-o", program, "./cmd/mcpd")
	cmd.Dir = "../../../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// download returns the document.
func (d document) download(t *testing.T) []byte {
	t.Helper()
	dir := os.Getenv("MCPD_OPENAPI_CACHE")
	if dir == "" {
		dir = t.TempDir()
	}
	dir = filepath.Join(dir, strings.ReplaceAll(d.pkg, "/", "+")+"@"+d.version)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "package", filepath.FromSlash(d.file))
	if _, err := os.Stat(file); err != nil {
		run(t, dir, "npm", "pack", "--silent", d.pkg+"@"+d.version)
		packed, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
		if err != nil || len(packed) != 1 {
			t.Fatalf("packages %v, %v", packed, err)
		}
		run(t, dir, "tar", "xzf", packed[0], "package/"+d.file)
		if err := os.Remove(packed[0]); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func run(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func load(t *testing.T, text []byte) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// compare compares the operations, parameters and bodies with those that kin-openapi reads.
func compare(t *testing.T, text []byte) {
	t.Helper()
	ours, err := spec.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	theirs := map[string]string{}
	doc := load(t, text)
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			parameters := openapi3.NewParameters()
			for _, p := range item.Parameters {
				if op.Parameters.GetByInAndName(p.Value.In, p.Value.Name) == nil {
					parameters = append(parameters, p)
				}
			}
			words := []string{op.OperationID}
			for _, p := range append(parameters, op.Parameters...) {
				words = append(words, fmt.Sprintf("%s %s %v", p.Value.In, p.Value.Name, p.Value.Required))
			}
			theirs[method+" "+path] = summary(words, op.RequestBody != nil)
		}
	}
	for _, op := range ours.Operations {
		words := []string{op.ID}
		for _, p := range op.Parameters {
			words = append(words, fmt.Sprintf("%s %s %v", p.In, p.Name, p.Required))
		}
		want, ok := theirs[op.Key()]
		if got := summary(words, op.Body != nil); !ok || got != want && op.Problem == "" {
			t.Errorf("%s: %s; kin-openapi: %s", op.Key(), got, want)
		}
		delete(theirs, op.Key())
	}
	for key := range theirs {
		t.Errorf("%s is missing", key)
	}
}

func summary(words []string, body bool) string {
	counts := map[string]int{}
	for _, word := range words[1:] {
		counts[word]++
	}
	return fmt.Sprint(words[0], counts, body)
}

// call imports the document with mcpd, and calls its tools.
func (d document) call(t *testing.T, mcpd string, text []byte) {
	doc := load(t, text)
	mock := newMock(t, doc, d.path)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "tools.d"), 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "document")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"import", "openapi", file, "--name", "api", "--server", mock.URL + d.path, "--yes"}
	options := openapi.Options{Name: "api", Server: mock.URL + d.path, Tags: d.tags}
	for _, tag := range d.tags {
		args = append(args, "--tag", tag)
	}
	run(t, dir, mcpd, args...)
	run(t, dir, mcpd, "check")
	run(t, dir, mcpd, "fmt", "--check")
	ours, err := spec.Read(text)
	if err != nil {
		t.Fatal(err)
	}
	generated, err := openapi.Generate(ours, options)
	if err != nil {
		t.Fatal(err)
	}
	if len(generated.Tools) != d.operations-d.left {
		t.Errorf("%d tools, want %d of %d", len(generated.Tools), d.operations-d.left, d.operations)
	}
	if out := run(t, dir, mcpd, "test"); !strings.Contains(out, fmt.Sprintf("%d passed, 0 failed", len(generated.Tools))) {
		t.Errorf("mcpd test: %s", out)
	}
	address := serve(t, mcpd, dir, generated.Secrets)
	for _, tool := range generated.Tools {
		for _, arguments := range []json.RawMessage{tool.Arguments, tool.AllArguments} {
			mock.expect(tool.Key)
			status, answer := execute(t, address, tool.Name, arguments)
			if problems := mock.problems(); len(problems) > 0 || status != http.StatusOK {
				t.Errorf("%s %.300s: status %d, %.500s\n%.700s", tool.Key, arguments, status, answer, strings.Join(problems, "\n"))
			}
		}
	}
}

// serve starts mcpd serve and returns its URL.
func serve(t *testing.T, mcpd, dir string, secrets []openapi.Secret) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, mcpd, "serve", "--listen", "127.0.0.1:0", "--control", "off", "--state", "memory")
	cmd.Dir, cmd.Env = dir, os.Environ()
	for _, s := range secrets {
		cmd.Env = append(cmd.Env, s.Variable+"=secret")
	}
	output, lines := io.Pipe()
	cmd.Stdout, cmd.Stderr = lines, lines
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	found := make(chan string, 1)
	reading.Go(func() {
		address := regexp.MustCompile(`serves .*(http://127\.0\.0\.1:\d+)`)
		for scanner := bufio.NewScanner(output); scanner.Scan(); {
			if m := address.FindStringSubmatch(scanner.Text()); m != nil {
				found <- m[1]
			}
		}
		close(found)
	})
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was killed
		_ = lines.Close()
		reading.Wait()
	})
	url, ok := <-found
	if !ok {
		t.Fatal("mcpd does not serve")
	}
	return url
}

// execute calls a tool.
func execute(t *testing.T, address, tool string, arguments json.RawMessage) (status int, answer string) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"tool": tool, "arguments": arguments})
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Post(address+"/mcp/execute", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}
