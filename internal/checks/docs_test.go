package checks_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/codemode"
	"github.com/mcpd/mcpd/extensions/federation"
	"github.com/mcpd/mcpd/extensions/oidc"
	"github.com/mcpd/mcpd/extensions/postgres"
	"github.com/mcpd/mcpd/extensions/sqlite"
	"github.com/mcpd/mcpd/extensions/typescript"
	"github.com/mcpd/mcpd/internal/language/hclfile"
	"github.com/mcpd/mcpd/serve"
)

// The documentation is code: every hcl block of README.md and of the pages in
// docs is loaded and its test blocks are run. The rules:
//
//   - A block is a whole file, named by its first line: "# mcpd.hcl",
//     "# x.mcpdvars", "# tools.d/x.hcl", "// tools.d/x.js", and in JSON a member "//".
//   - The blocks of a page are files of one folder, in the order of the page. A
//     block of the same name takes the place of the one before. The comment
//     <!-- new folder --> starts an empty directory.
//   - HCL has the layout of mcpd fmt. After each block, or a row of blocks with
//     nothing in between, the folder must load without warnings but of roots, and all of its
//     tests must pass.
//   - A block that is followed by a console block of "$ mcpd check" must make
//     exactly the diagnostics that are shown there, and is forgotten again.
//   - A block marked "hcl elsewhere" is a file of another folder, for the commands
//     of the page.
//   - A block marked "js fragment" is compiled as the script of a tool that is
//     granted http.crm, and need not use it. Every other js or ts block must be a file.
func TestTheDocumentationIsTrue(t *testing.T) {
	for _, page := range pages(t) {
		t.Run(page, func(t *testing.T) {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			d := document{page: page, blocks: blocksOf(string(text)), folder: fstest.MapFS{}}
			for i := range d.blocks {
				d.visit(t, i)
			}
		})
	}
}

// TestNoPageHoldsBothSidesOfAMerge reads what people read, decisions and the changelog
// among it.
func TestNoPageHoldsBothSidesOfAMerge(t *testing.T) {
	decisions, err := filepath.Glob("docs/project/decisions/*.md")
	if err != nil || len(decisions) == 0 {
		t.Fatalf("%d decisions, %v", len(decisions), err)
	}
	side := regexp.MustCompile(`(?m)^(?:<<<<<<<|>>>>>>>) .+$`)
	for _, page := range slices.Concat(pages(t), decisions, []string{"CHANGELOG.md"}) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range side.FindAllIndex(text, -1) {
			t.Errorf("%s:%d: merge conflict is not resolved", page, 1+bytes.Count(text[:at[0]], []byte("\n")))
		}
	}
}

// TestGoBlocks_areCodeThatRuns: every go block of a page is part of an example, which go test
// or go build compiles.
func TestGoBlocks_areCodeThatRuns(t *testing.T) {
	code := ""
	for _, file := range goFiles(t) {
		if isExample(file) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			code += string(text)
		}
	}
	found := 0
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range blocksOf(string(text)) {
			if b.info != "go" {
				continue
			}
			found++
			if !strings.Contains(code, b.text) {
				t.Errorf("%s:%d: the block is in no file that is compiled", page, b.line)
			}
		}
	}
	if found == 0 {
		t.Error("there is no go block")
	}
}

// isExample reports whether a Go file may hold examples: tests of the public packages, and the
// programs below examples/.
func isExample(file string) bool {
	public := !strings.HasPrefix(file, "internal/") && !strings.HasPrefix(file, "cmd/")
	return public && isTest(file) || path.Base(file) == "main.go" && strings.HasPrefix(file, "examples/")
}

var exampleLink = regexp.MustCompile("`(Example\\w*)` in \\[[^]]*\\]\\(([^)]*)\\)")

// TestExamples_ofThePagesExist: a page that names an example links the file that has it, and
// docs/embedding.md names all examples of the public packages.
func TestExamples_ofThePagesExist(t *testing.T) {
	named := map[string]bool{}
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, link := range exampleLink.FindAllStringSubmatch(string(text), -1) {
			named[path.Join(path.Dir(page), link[2])+" "+link[1]] = page == "docs/embedding.md"
		}
	}
	declared := regexp.MustCompile(`(?m)^func (Example\w*)\(`)
	for _, file := range goFiles(t) {
		if !isExample(file) {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, example := range declared.FindAllStringSubmatch(string(text), -1) {
			name := file + " " + example[1]
			if !named[name] {
				t.Errorf("docs/embedding.md does not name %s", name)
			}
			delete(named, name)
		}
	}
	for name := range named {
		t.Errorf("there is no %s", name)
	}
}

// pages returns the Markdown files that the rules apply to: README.md, CONTRIBUTING.md and docs
// without docs/project/decisions, whose pages are records of their day.
func pages(t *testing.T) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir("docs", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && filepath.ToSlash(name) == "docs/project/decisions":
			return filepath.SkipDir
		case filepath.Ext(name) == ".md":
			found = append(found, filepath.ToSlash(name))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < 20 {
		t.Fatalf("docs has only %d pages", len(found))
	}
	for _, name := range []string{"README.md", "CONTRIBUTING.md"} {
		if _, err := os.Stat(name); err == nil {
			found = append(found, name)
		}
	}
	return found
}

// reference returns the text of all pages below docs/reference.
func reference(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	for _, page := range pages(t) {
		if strings.HasPrefix(page, "docs/reference/") {
			content, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			text.Write(content)
			text.WriteString("\n")
		}
	}
	return text.String()
}

// block is a fenced block, or the comment that starts a new directory.
type block struct {
	line      int
	info      string
	text      string
	newFolder bool
	// joined says that nothing stands between this block and the next.
	joined bool
}

var fence = regexp.MustCompile("(?ms)^(```+)([^\n`]*)\n(.*?)^```+[ ]*$|^<!-- new folder -->$")

func blocksOf(page string) []block {
	var blocks []block
	end := 0
	for _, at := range fence.FindAllStringSubmatchIndex(page, -1) {
		if len(blocks) > 0 {
			blocks[len(blocks)-1].joined = strings.TrimSpace(page[end:at[0]]) == ""
		}
		end = at[1]
		b := block{line: 1 + strings.Count(page[:at[0]], "\n"), newFolder: at[2] < 0}
		if !b.newFolder {
			b.info, b.text = strings.TrimSpace(page[at[4]:at[5]]), page[at[6]:at[7]]
		}
		blocks = append(blocks, b)
	}
	return blocks
}

// document is a page on the way through its blocks.
type document struct {
	page   string
	blocks []block
	folder fstest.MapFS
}

// fileName is what the first line of a block, or its "//" member, may say.
var fileName = regexp.MustCompile(`\A(?:# |// |\{\s*"//": ")(mcpd\.hcl|\w+\.mcpdvars|tools\.d/[\w./-]+)(?:"|\n)`)

func (d *document) visit(t *testing.T, i int) {
	t.Helper()
	b := d.blocks[i]
	if b.newFolder {
		d.folder = fstest.MapFS{}
		return
	}
	name := b.file()
	switch {
	case b.info == "js fragment":
		d.compileFragment(t, b)
	case name == "" && slices.Contains([]string{"hcl", "js", "ts"}, b.info):
		t.Errorf("%s:%d: the first line of a block of %s must name its file", d.page, b.line, b.info)
	case name == "":
	case b.joined && i+1 < len(d.blocks) && d.blocks[i+1].file() != "":
		d.add(t, b, name)
	default:
		d.load(t, i, name)
	}
}

// file returns the name of the file that the block is, or "".
func (b block) file() string {
	name := fileName.FindStringSubmatch(b.text)
	if name == nil || !slices.Contains([]string{"hcl", "js", "ts", "json"}, b.info) {
		return ""
	}
	return name[1]
}

// add puts a block into the folder. What is HCL has the layout of mcpd fmt.
func (d *document) add(t *testing.T, b block, name string) {
	t.Helper()
	d.folder["tools.d"] = &fstest.MapFile{Mode: fs.ModeDir | 0o755} // also where a page shows the operator's file alone
	d.folder[name] = &fstest.MapFile{Data: []byte(b.text), Mode: 0o644}
	if !strings.HasPrefix(b.info, "hcl") {
		return
	}
	if formatted, _ := hclfile.Format(hclfile.Source{Path: name, Bytes: []byte(b.text)}); string(formatted) != b.text {
		t.Errorf("%s:%d: mcpd fmt would change %s (-page +mcpd):\n%s", d.page, b.line, name, cmp.Diff(b.text, string(formatted)))
	}
}

// load loads the folder with a block in it, and compares what comes of it.
func (d *document) load(t *testing.T, i int, name string) {
	t.Helper()
	b := d.blocks[i]
	before := d.folder[name]
	d.add(t, b, name)
	server := newServer(t, d.folder)
	report, err := server.Load(t.Context())
	// The folder is not on the disk, so no root is there; nor are programs.
	report.Problems = slices.DeleteFunc(report.Problems, func(p diag.Diagnostic) bool {
		return p.Code == "missing-root" || p.Code == "missing-program"
	})
	got := printed(t, report)
	if shown, ok := d.shownProblems(i); ok {
		if diff := cmp.Diff(shown, got); diff != "" {
			t.Errorf("%s:%d: mcpd check prints something else (-page +mcpd):\n%s", d.page, b.line, diff)
		}
		d.folder[name] = before
		if before == nil {
			delete(d.folder, name)
		}
		return
	}
	if err != nil || got != "" {
		t.Errorf("%s:%d: %s does not load cleanly:\n%s", d.page, b.line, name, got)
		return
	}
	runTests(t, server, fmt.Sprintf("%s:%d", d.page, b.line))
}

// shownProblems returns what the console block behind block i shows of
// mcpd check, without the last line, which sums up.
func (d *document) shownProblems(i int) (string, bool) {
	if i+1 == len(d.blocks) || d.blocks[i+1].info != "console" {
		return "", false
	}
	shown, ok := strings.CutPrefix(d.blocks[i+1].text, "$ mcpd check\n")
	if at := strings.LastIndex(shown, "\nmcpd: "); at >= 0 {
		shown = shown[:at+1]
	}
	return shown, ok
}

func (d *document) compileFragment(t *testing.T, b block) {
	t.Helper()
	server := newServer(t, fstest.MapFS{
		"tools.d/fragment.js": {Data: []byte(b.text), Mode: 0o644},
		"tools.d/fragment.hcl": {Mode: 0o644, Data: []byte(`
			tool "fragment" {
			  allow {
			    http "crm" { hosts = ["crm.example.com:443"] }
			  }
			  run = file("fragment.js")
			}`)},
	})
	report, err := server.Load(t.Context())
	report.Problems = slices.DeleteFunc(report.Problems, func(p diag.Diagnostic) bool { return p.Code == "unused-grant" })
	if err != nil || len(report.Problems) > 0 {
		t.Errorf("%s:%d: the fragment does not compile:\n%s", d.page, b.line, printed(t, report))
	}
}

// newServer returns a server for a folder that holds mcpd.hcl and tools.d.
func newServer(t *testing.T, folder fs.FS) *engine.Server {
	t.Helper()
	tools, err := fs.Sub(folder, "tools.d")
	if err != nil {
		t.Fatal(err)
	}
	server, err := engine.New(engine.Options{Name: "mcpd", Extensions: []engine.Extension{codemode.New(), federation.New(), typescript.New(), oidc.New(), postgres.New(), sqlite.New()}, Files: engine.Files{Tools: tools, Config: folder}, Mode: engine.Offline, Front: serve.ToolChecks{}, Scripts: engine.Scripts{Modules: []engine.HostModule{ledger()}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close(context.Background()) })
	return server
}

// printed returns the diagnostics of a load as mcpd check prints them.
func printed(t *testing.T, report engine.Report) string {
	t.Helper()
	var out bytes.Buffer
	if err := (diag.Printer{Sources: report.Shown()}).Print(&out, report.Problems); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// runTests runs all test blocks of a server, and reports those that fail.
func runTests(t *testing.T, server *engine.Server, where string) []engine.TestResult {
	t.Helper()
	results, err := server.RunTests(t.Context(), nil)
	if err != nil {
		t.Errorf("%s: %v", where, err)
	}
	for _, r := range results {
		for _, failure := range r.Failures {
			t.Errorf("%s: %s: %s: %s", where, r.Range, r.Name, failure)
		}
	}
	return results
}

// ledger is the module that the manual speaks of.
func ledger() engine.HostModule {
	balance := func(context.Context, engine.HostCall, struct{ Account string }) (int, error) { return 0, nil }
	return engine.HostModule{
		Name: "ledger", Functions: []engine.HostFunc{engine.NewHostFunc("balance", balance)},
		Check: func(options json.RawMessage) error { return json.Unmarshal(options, &struct{ Accounts []string }{}) },
	}
}
