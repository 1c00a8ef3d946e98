package loader_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/loader"
)

func toolText(name string) string {
	return fmt.Sprintf("tool %q {\n  run = <<JS\n    return 1;\n  JS\n}\n", name)
}

// config returns the config of a missing file.
func config(t *testing.T) *definition.Config {
	t.Helper()
	c := loader.ReadConfig(nil, "mcpd.hcl", nil)
	if c.Problems.HasErrors() {
		t.Fatal(c.Problems)
	}
	return c.Config
}

// names returns the names of all tools and the codes of all diagnostics.
func names(t *testing.T, tree *loader.Tree) (tools, codes []string) {
	t.Helper()
	defined, problems := tree.Definitions(config(t))
	for _, d := range defined {
		for _, tool := range d.Tools {
			tools = append(tools, tool.Name)
		}
	}
	for _, p := range problems {
		codes = append(codes, p.Severity.String()+" "+p.Code+" "+p.Range.File)
	}
	slices.Sort(codes)
	return tools, codes
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestTreeDefinitions_bytewiseOrder(t *testing.T) {
	tree := loader.New(fstest.MapFS{
		"b.hcl":     {Data: []byte(toolText("b")), Mode: 0o644},
		"a/z.hcl":   {Data: []byte(toolText("az")), Mode: 0o644},
		"a.hcl":     {Data: []byte(toolText("a")), Mode: 0o644},
		"notes.txt": {Data: []byte("not a tool"), Mode: 0o644},
	}, "tools.d")
	tree.Update(nil, true)
	tools, codes := names(t, tree)
	if diff := cmp.Diff([]string{"a", "az", "b"}, tools); diff != "" || codes != nil {
		t.Errorf("tools (-want +got)\n%s%v", diff, codes)
	}
}

func TestTreeUpdate_readsOnlyChangedFile(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "a.hcl"), toolText("a"))
	write(t, filepath.Join(folder, "b.hcl"), toolText("b"))
	tree := loader.New(loader.Dir(folder), "tools.d")
	tree.Update(nil, true)
	before := tree.Hash()
	write(t, filepath.Join(folder, "a.hcl"), toolText("a2"))
	write(t, filepath.Join(folder, "b.hcl"), toolText("unseen"))
	tree.Update([]string{"a.hcl"}, false)
	if tools, _ := names(t, tree); !slices.Equal(tools, []string{"a2", "b"}) {
		t.Errorf("tools %v", tools)
	}
	if tree.Hash() == before {
		t.Error("the hash did not change with the content")
	}
}

// A file whose own text is unchanged is evaluated again with the changed local of another file,
// and a syntax error in it is reported again.
func TestTreeUpdate_changedLocal(t *testing.T) {
	files := fstest.MapFS{
		"tool.hcl":   {Data: []byte("tool \"a\" {\n  description = local.text\n  run = <<JS\n    return 1;\n  JS\n}\ntool \"b\" {\n  description = \n}\n")},
		"locals.hcl": {Data: []byte("locals {\n  text = \"one\"\n}\n")},
	}
	tree := loader.New(files, "tools.d")
	tree.Update(nil, true)
	for _, want := range []string{"one", "two", "three"} {
		files["locals.hcl"] = &fstest.MapFile{Data: []byte("locals {\n  text = \"" + want + "\"\n}\n")}
		tree.Update([]string{"locals.hcl"}, false)
		var got []string
		defined, problems := tree.Definitions(config(t))
		for _, d := range defined {
			for _, tool := range d.Tools {
				got = append(got, tool.Description)
			}
		}
		if !slices.Equal(got, []string{want}) || len(problems) != 1 || !tree.Incomplete() {
			t.Errorf("descriptions %q, want %q; problems %v, incomplete %t", got, want, problems, tree.Incomplete())
		}
	}
}

func TestTreeUpdate_addedAndRemoved(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "a.hcl"), toolText("a"))
	write(t, filepath.Join(folder, "sub", "b.hcl"), toolText("b"))
	tree := loader.New(loader.Dir(folder), "tools.d")
	tree.Update(nil, true)
	for _, step := range []struct {
		do    func()
		paths []string
		want  []string
	}{
		{func() { os.Remove(filepath.Join(folder, "a.hcl")) }, []string{"a.hcl"}, []string{"b"}},
		{func() { os.RemoveAll(filepath.Join(folder, "sub")) }, []string{"sub"}, nil},
		{func() { write(t, filepath.Join(folder, "x", "y", "c.hcl"), toolText("c")) }, []string{"x"}, []string{"c"}},
		{func() { write(t, filepath.Join(folder, "d.hcl"), toolText("d")) }, []string{"d.hcl", "gone.js"}, []string{"d", "c"}},
	} {
		step.do()
		tree.Update(step.paths, false)
		if tools, codes := names(t, tree); !slices.Equal(tools, step.want) {
			t.Errorf("after %v: tools %v, want %v; %v", step.paths, tools, step.want, codes)
		}
	}
}

func TestTreeUpdate_rejectedFiles(t *testing.T) {
	folder, outside := t.TempDir(), t.TempDir()
	write(t, filepath.Join(outside, "evil.hcl"), toolText("evil"))
	write(t, filepath.Join(folder, ".hidden.hcl"), toolText("hidden"))
	write(t, filepath.Join(folder, "backup.hcl~"), toolText("backup"))
	write(t, filepath.Join(folder, "..data", "k8s.hcl"), toolText("k8s"))
	write(t, filepath.Join(folder, "open.hcl"), toolText("open"))
	for name, target := range map[string]string{
		"escape.hcl": filepath.Join(outside, "evil.hcl"), "dangling.hcl": "nowhere.hcl", "linked.hcl": "..data/k8s.hcl", "loop": ".",
	} {
		if err := os.Symlink(target, filepath.Join(folder, name)); err != nil {
			t.Skipf("SKIPPED: this system has no links: %v", err)
		}
	}
	if err := os.Chmod(filepath.Join(folder, "open.hcl"), 0o666); err != nil {
		t.Fatal(err)
	}
	tree := loader.New(loader.Dir(folder), "tools.d")
	tree.Update(nil, true)
	tools, codes := names(t, tree)
	for _, tool := range tools {
		if tool != "k8s" {
			t.Errorf("tool %s was loaded", tool)
		}
	}
	for _, want := range []string{
		"error bad-link tools.d/dangling.hcl", "error bad-link tools.d/escape.hcl",
		"error unreadable-file tools.d/open.hcl", "warning hidden-file tools.d/.hidden.hcl", "warning hidden-file tools.d/backup.hcl~",
	} {
		if !slices.Contains(codes, want) {
			t.Errorf("no %q in\n%s", want, strings.Join(codes, "\n"))
		}
	}
	if !slices.ContainsFunc(codes, func(code string) bool { return strings.HasPrefix(code, "error folder-too-deep") }) {
		t.Error("the cyclic link was not reported")
	}
}

func TestTreeHash_referencedFile(t *testing.T) {
	folder := fstest.MapFS{
		"a.hcl": {Data: []byte("tool \"a\" {\n  run = file(\"a.js\")\n}\n"), Mode: 0o644},
		"a.js":  {Data: []byte("return 1;"), Mode: 0o644},
	}
	tree := loader.New(folder, "tools.d")
	tree.Update(nil, true)
	body := func() string {
		defined, problems := tree.Definitions(config(t))
		if problems.HasErrors() {
			t.Fatal(problems)
		}
		return defined[0].Tools[0].Run.Text.Body()
	}
	if got := body(); got != "return 1;" {
		t.Fatalf("body %q", got)
	}
	before := tree.Hash()
	folder["a.js"] = &fstest.MapFile{Data: []byte("return 2;"), Mode: 0o644}
	tree.Update([]string{"a.js"}, false)
	if got := body(); got != "return 2;" {
		t.Errorf("body %q after the change", got)
	}
	if tree.Hash() == before {
		t.Error("the hash did not change")
	}
}

func TestTreeOpen_tooLarge(t *testing.T) {
	tree := loader.New(fstest.MapFS{"a.json": {Data: make([]byte, 4<<20+1), Mode: 0o644}}, "tools.d")
	if content, _, err := tree.Open("a.json"); err == nil || len(content) > 0 {
		t.Errorf("read %d bytes, %v", len(content), err)
	}
}

func TestTreeOpen_missingAndUnreadable(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "sub", "a.js"), "")
	tree := loader.New(loader.Dir(folder), "tools.d")
	if _, _, err := tree.Open("gone.js"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if _, _, err := tree.Open("sub"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("directory: %v", err)
	}
}

func TestTreeOpen_outsideDirectory(t *testing.T) {
	parent := t.TempDir()
	write(t, filepath.Join(parent, "secret.js"), "return 'secret';")
	write(t, filepath.Join(parent, "tools", ".env"), "secret")
	for _, path := range []string{"../secret.js", "/etc/passwd", "a/../../secret.js", ".env", "x/../.env"} {
		write(t, filepath.Join(parent, "tools", "a.hcl"), fmt.Sprintf("tool \"a\" {\n  run = file(%q)\n}\n", path))
		tree := loader.New(loader.Dir(filepath.Join(parent, "tools")), "tools.d")
		tree.Update(nil, true)
		defined, problems := tree.Definitions(config(t))
		if !problems.HasErrors() {
			t.Errorf("%s was read: %q", path, defined[0].Tools[0].Run.Text.Body())
		}
	}
}

func TestReadConfig_neverNil(t *testing.T) {
	for _, text := range []string{"", "server {", "\xff\xfe", "nonsense { }"} {
		c := loader.ReadConfig(fstest.MapFS{"mcpd.hcl": {Data: []byte(text), Mode: 0o644}}, "etc/mcpd.hcl", nil)
		if c.Config == nil {
			t.Errorf("%q: no config", text)
		}
		if (text != "") != c.Problems.HasErrors() {
			t.Errorf("%q: problems %v", text, c.Problems)
		}
		for _, p := range c.Problems {
			if p.Range.File != "etc/mcpd.hcl" || p.Severity != diag.Error {
				t.Errorf("%q: %v", text, p)
			}
		}
	}
}

func TestReadConfig_variableFiles(t *testing.T) {
	folder := fstest.MapFS{
		"mcpd.hcl":   {Data: []byte("variable \"stage\" { type = string }\nvariable \"size\" { type = integer }\n"), Mode: 0o644},
		"a.mcpdvars": {Data: []byte("stage = \"dev\"\nsize = 1\n"), Mode: 0o644},
		"b.mcpdvars": {Data: []byte("stage = \"prod\"\n"), Mode: 0o644},
	}
	c := loader.ReadConfig(folder, "mcpd.hcl", definition.VarValues{"size": {Text: "2", Origin: "--var size"}})
	if c.Problems.HasErrors() {
		t.Fatal(c.Problems)
	}
	if got := string(c.Config.VarsJSON()); got != `{"size":2,"stage":"prod"}` {
		t.Errorf("variables %s", got)
	}
	folder["c.mcpdvars"] = &fstest.MapFile{Data: []byte("stgae = 1\n"), Mode: 0o644}
	if c := loader.ReadConfig(folder, "mcpd.hcl", nil); !c.Problems.HasErrors() {
		t.Error("a value for an undeclared variable was accepted")
	}
}

func TestTreeHash_independentOfHistory(t *testing.T) {
	const inline, byFile = "tool \"a\" {\n  run = \"return 1;\"\n}\n", "tool \"a\" {\n  run = file(\"a.js\")\n}\n"
	folder := fstest.MapFS{
		"a.hcl": {Data: []byte(byFile), Mode: 0o644}, "a.js": {Data: []byte("return 1;"), Mode: 0o644}, "lib.js": {Data: []byte("1"), Mode: 0o644},
	}
	tree := loader.New(folder, "tools.d")
	load := func(tree *loader.Tree, imports ...string) loader.Hash {
		tree.Definitions(config(t))
		for _, name := range imports {
			if _, _, err := tree.Open(name); err != nil {
				t.Fatal(err)
			}
		}
		return tree.Hash()
	}
	tree.Update(nil, true)
	withBoth := load(tree, "lib.js")
	_, old, _ := tree.Open("lib.js")

	tree.Update(nil, false)
	if !tree.Unchanged(map[string]loader.Hash{"lib.js": old}) || load(tree) != withBoth {
		t.Error("the hash changed although the files are cached and unchanged")
	}
	tree.Update(nil, false)
	if tree.Unchanged(map[string]loader.Hash{"lib.js": old, "a.js": {}}) {
		t.Error("a changed file was not noticed")
	}
	if load(tree) == withBoth {
		t.Error("the hash includes a file that is no longer read")
	}

	folder["a.hcl"] = &fstest.MapFile{Data: []byte(inline), Mode: 0o644}
	tree.Update([]string{"a.hcl"}, false)
	fresh := loader.New(folder, "tools.d")
	fresh.Update(nil, true)
	if load(tree) != load(fresh) {
		t.Error("the hash depends on a file read earlier")
	}
	sources := tree.Sources()
	if content, ok := sources.Content("tools.d/a.hcl"); !ok || string(content) != inline {
		t.Errorf("a.hcl is %q, %t", content, ok)
	}
	if content, ok := sources.Content("tools.d/lib.js"); ok {
		t.Errorf("lib.js is %q, want no file", content)
	}
}

// counting counts the listings of directories.
type counting struct {
	fstest.MapFS
	listed int
}

func (c *counting) ReadDir(name string) ([]fs.DirEntry, error) {
	c.listed++
	return c.MapFS.ReadDir(name)
}

func TestTreeUpdate_backupFileWarning(t *testing.T) {
	folder := &counting{MapFS: fstest.MapFS{
		"a.hcl": {Data: []byte(toolText("a")), Mode: 0o644}, "sub/b.hcl~": {Data: []byte("old"), Mode: 0o644},
	}}
	tree := loader.New(folder, "tools.d")
	tree.Update(nil, true)
	scans := folder.listed
	for _, step := range []struct {
		do   func()
		path string
		want []string
	}{
		{func() { folder.MapFS["a.hcl~"] = &fstest.MapFile{Mode: 0o644} }, "a.hcl~", []string{"warning hidden-file tools.d/a.hcl~", "warning hidden-file tools.d/sub/b.hcl~"}},
		{func() { folder.MapFS["a.hcl"].Data = []byte(toolText("a2")) }, "a.hcl", []string{"warning hidden-file tools.d/a.hcl~", "warning hidden-file tools.d/sub/b.hcl~"}},
		{func() { folder.MapFS[".git/x.hcl~"] = &fstest.MapFile{Mode: 0o644} }, ".git/x.hcl~", []string{"warning hidden-file tools.d/a.hcl~", "warning hidden-file tools.d/sub/b.hcl~"}},
		{func() { delete(folder.MapFS, "a.hcl~") }, "a.hcl~", []string{"warning hidden-file tools.d/sub/b.hcl~"}},
	} {
		step.do()
		tree.Update([]string{step.path}, false)
		if _, codes := names(t, tree); !slices.Equal(codes, step.want) {
			t.Errorf("after %s: %v", step.path, codes)
		}
	}
	if folder.listed != scans {
		t.Errorf("directories were listed %d more times", folder.listed-scans)
	}
	delete(folder.MapFS, "sub/b.hcl~")
	tree.Update([]string{"sub"}, false)
	if _, codes := names(t, tree); codes != nil {
		t.Errorf("after the directory was removed: %v", codes)
	}
}

// growing is a directory of files that are longer than their info says.
type growing struct{ fstest.MapFS }

func (g growing) Open(name string) (fs.File, error) {
	file, err := g.MapFS.Open(name)
	return endless{file}, err
}

type endless struct{ fs.File }

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

func TestTreeOpen_growingFile(t *testing.T) {
	tree := loader.New(growing{fstest.MapFS{"sub/a.hcl": {Data: []byte("x"), Mode: 0o644}}}, "tools.d")
	tree.Update([]string{"sub/a.hcl"}, false)
	if _, codes := names(t, tree); !slices.Equal(codes, []string{"error unreadable-file tools.d/sub/a.hcl"}) {
		t.Errorf("%v", codes)
	}
}

func TestTreeUpdate_linkedFile(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "real.txt"), toolText("first"))
	if err := os.Symlink("real.txt", filepath.Join(folder, "a.hcl")); err != nil {
		t.Skipf("SKIPPED: this system has no links: %v", err)
	}
	tree := loader.New(loader.Dir(folder), "tools.d")
	tree.Update(nil, true)
	write(t, filepath.Join(folder, "real.txt"), toolText("second"))
	tree.Update([]string{"real.txt"}, false)
	if tools, codes := names(t, tree); !slices.Equal(tools, []string{"second"}) {
		t.Errorf("tools %v, %v", tools, codes)
	}
}

func TestTreeUpdate_newLink(t *testing.T) {
	folder := t.TempDir()
	write(t, filepath.Join(folder, "docs", "real.txt"), toolText("first"))
	tree := loader.New(loader.Dir(folder), "tools.d")
	tree.Update(nil, true)
	if err := os.Symlink("docs/real.txt", filepath.Join(folder, "a.hcl")); err != nil {
		t.Skipf("SKIPPED: this system has no links: %v", err)
	}
	tree.Update([]string{"a.hcl"}, false)
	write(t, filepath.Join(folder, "docs", "real.txt"), toolText("second"))
	tree.Update([]string{"docs/real.txt"}, false)
	if tools, codes := names(t, tree); !slices.Equal(tools, []string{"second"}) {
		t.Errorf("tools %v, %v", tools, codes)
	}
	if err := os.Symlink("/etc/hosts", filepath.Join(folder, "docs", "out.txt")); err != nil {
		t.Fatal(err)
	}
	tree.Update([]string{"docs/out.txt"}, false)
	if _, codes := names(t, tree); !slices.Equal(codes, []string{"error bad-link tools.d/docs/out.txt"}) {
		t.Errorf("outside link: %v", codes)
	}
}

func TestTreeUpdate_cyclicLinks(t *testing.T) {
	folder := t.TempDir()
	for n := range 25 {
		if err := os.Symlink(".", filepath.Join(folder, fmt.Sprint("link", n))); err != nil {
			t.Skipf("SKIPPED: this system has no links: %v", err)
		}
	}
	tree := loader.New(loader.Dir(folder), "tools.d")
	tree.Update(nil, true)
	if _, codes := names(t, tree); len(codes) == 0 || len(codes) > 20 {
		t.Errorf("%d problems", len(codes))
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestParallel_nestedPanicKeepsStack(t *testing.T) {
	defer func() {
		cause, ok := recover().(*loader.WorkerPanic)
		if runtime.GOMAXPROCS(0) > 1 && (!ok || cause.Value != "boom" || !bytes.Contains(cause.Stack, []byte("panicInWorker"))) {
			t.Errorf("recovered %v", cause)
		}
	}()
	loader.Parallel(2, func(int) { loader.Parallel(2, panicInWorker) })
}

func panicInWorker(int) { panic("boom") }

func TestParallel_panicReachesCaller(t *testing.T) {
	var ran atomic.Int64
	defer func() {
		cause := recover()
		if worker, ok := cause.(*loader.WorkerPanic); ok {
			cause = worker.Value
		}
		if cause != "boom" || ran.Load() == 0 {
			t.Errorf("recovered %v after %d calls", cause, ran.Load())
		}
	}()
	loader.Parallel(100, func(i int) {
		if i == 50 {
			panic("boom")
		}
		ran.Add(1)
	})
}
