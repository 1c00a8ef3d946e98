package checks_test

import (
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
	"github.com/mcpd/mcpd/internal/base/toml"
)

// TestTheFunctionsOfTheManualExist calls every function that the manual lists.
func TestTheFunctionsOfTheManualExist(t *testing.T) {
	for _, name := range listed(t, "functions of HCL") {
		tool := fmt.Sprintf("tool \"t\" {\n  description = %s()\n  run = \"return 1;\"\n}", name)
		if unknownFunction(t, tool) {
			t.Errorf("HCL knows no function %s", name)
		}
	}
	for _, name := range listed(t, "functions of CEL") {
		const rule = "tool \"t\" {\n  run = \"return 1;\"\n}\npolicy \"p\" {\n  reason = \"x\"\n  deny = \"%s == 1\"\n}"
		// As a function, as a method, and as the macros that a name may be.
		forms := []string{name + "()", "dyn(1)." + name + "()", "[1]." + name + "(x, x)", name + "(x, 1, x)"}
		if !slices.ContainsFunc(forms, func(form string) bool { return !unknownFunction(t, fmt.Sprintf(rule, form)) }) {
			t.Errorf("CEL knows no function %s", name)
		}
	}
}

// TestTheManualNamesEveryCode reads the codes of diagnostics out of the
// packages that make them.
func TestTheManualNamesEveryCode(t *testing.T) {
	manual := reference(t)
	made := regexp.MustCompile(`(?:(?:fail|warn|refuse)\((?:(?:[^"()]|"[^"]*")*?, )?|\b[cC]ode[A-Za-z]*:? *=? *)"([a-z0-9]+(?:-[a-z0-9]+)*)"`)
	found := 0
	for _, file := range goFiles(t) {
		dir := path.Dir(file)
		if isTest(file) || !slices.Contains([]string{"engine", "scripting", "internal/js/compiler", "internal/js/syntax", "scripting/source", "policylang", "internal/language/hclfile", "internal/language/schema", "internal/language/loader", "internal/language/configcheck", "internal/execution/catalog", "internal/federation", "internal/federation/overlay"}, dir) {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, code := range made.FindAllStringSubmatch(string(source), -1) {
			found++
			if !strings.Contains(manual, "`"+code[1]+"`") {
				t.Errorf("%s makes diagnostics of the code %s, which the manual does not name", file, code[1])
			}
		}
	}
	if found < 60 {
		t.Errorf("found only %d codes: the pattern misses them", found)
	}
}

// TestTheManualNamesNoOtherCode looks for every code of the manual among the
// words of the program; some are made of a beginning and a kind of block.
func TestTheManualNamesNoOtherCode(t *testing.T) {
	manual := reference(t)
	var program strings.Builder
	for _, file := range goFiles(t) {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !isTest(file) {
			program.Write(source)
		}
	}
	_, table, _ := strings.Cut(manual, "<!-- codes -->")
	table, _, _ = strings.Cut(table, "<!-- end -->")
	codes := regexp.MustCompile("`([a-z0-9-]+)`").FindAllStringSubmatch(table, -1)
	if len(codes) < 60 {
		t.Fatalf("found only %d codes", len(codes))
	}
	for _, code := range codes {
		begin, kind, _ := strings.Cut(code[1], "-")
		made := slices.Contains([]string{"tool", "resource", "prompt", "policy", "limit", "hook"}, kind) && regexp.MustCompile(`"`+begin+`-" ?\+ ?n\.kind`).MatchString(program.String())
		if !made && !strings.Contains(program.String(), `"`+code[1]+`"`) {
			t.Errorf("nothing makes diagnostics of the code %s, which the manual names", code[1])
		}
	}
}

// listed returns the names in the tables of the reference between <!-- mark --> and <!-- end -->.
func listed(t *testing.T, mark string) []string {
	t.Helper()
	_, rest, _ := strings.Cut(reference(t), "<!-- "+mark+" -->")
	section, _, found := strings.Cut(rest, "<!-- end -->")
	if !found {
		t.Fatalf("no page of the reference has a section between <!-- %s --> and <!-- end -->", mark)
	}
	var names []string
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "|") {
			continue
		}
		for _, word := range regexp.MustCompile("`([a-zA-Z][a-zA-Z0-9_.]*)(\\([a-z, ]*\\))?`").FindAllStringSubmatch(line, -1) {
			if word[1] != "in" {
				names = append(names, word[1])
			}
		}
	}
	if len(names) < 40 {
		t.Fatalf("found only %d names below <!-- %s -->", len(names), mark)
	}
	return names
}

func unknownFunction(t *testing.T, tool string) bool {
	t.Helper()
	server := newServer(t, fstest.MapFS{"tools.d/t.hcl": {Data: []byte(tool), Mode: 0o644}})
	report, _ := server.Load(t.Context())
	return slices.ContainsFunc(report.Problems, func(d diag.Diagnostic) bool {
		return strings.Contains(d.Summary, "there is no function")
	})
}

// TestWhereIs_namesAreDeclaredInTheLinkedFiles holds each row of the table of
// docs/project/architecture.md to its links: a name is that of a function, a method, a type or a file.
func TestWhereIs_namesAreDeclaredInTheLinkedFiles(t *testing.T) {
	page, err := os.ReadFile("docs/project/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "## Where is …?")
	row, name, link := regexp.MustCompile(`(?m)^\| (.+?) \| (.+?) \| (.+?) \|$`), regexp.MustCompile("`((?:\\w+\\.)?\\w+)`"), regexp.MustCompile(`\]\(\.\./\.\./(\S+?\.go)\)`)
	found := 0
	for _, cells := range row.FindAllStringSubmatch(table, -1) {
		var declared []string
		for _, file := range link.FindAllStringSubmatch(cells[3], -1) {
			declared = append(declared, declaredIn(t, file[1])...)
		}
		for _, function := range name.FindAllStringSubmatch(cells[2], -1) {
			found++
			if !slices.Contains(declared, function[1]) {
				t.Errorf("%s: no file of the row declares %s", cells[1], function[1])
			}
		}
	}
	if found < 30 {
		t.Errorf("found only %d names: the table has another form", found)
	}
}

// declaredIn returns what the table may call a file, its functions and its types: name and
// package.name, or Type.name of a method.
func declaredIn(t *testing.T, file string) []string {
	t.Helper()
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{path.Base(file)}
	for _, d := range regexp.MustCompile(`(?m)^(?:func|type) (?:\((?:\w+ )?\*?(\w+).*?\) )?(\w+)`).FindAllStringSubmatch(string(source), -1) {
		if d[1] != "" {
			names = append(names, d[1]+"."+d[2])
		} else {
			names = append(names, d[2], path.Base(path.Dir(file))+"."+d[2])
		}
	}
	return names
}

// TestRelativeLinksLeadSomewhere looks at every Markdown file of the tree.
func TestRelativeLinksLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s:#]+)(#[^)]*)?\)`)
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "node_modules") {
			return filepath.SkipDir
		}
		if err != nil || entry.IsDir() || filepath.Ext(name) != ".md" {
			return err
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for _, found := range link.FindAllStringSubmatch(fence.ReplaceAllString(string(text), ""), -1) {
			target := path.Join(path.Dir(filepath.ToSlash(name)), found[1])
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: the link %s leads nowhere", name, found[0])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestLinks_leadToHeadings checks the anchors of links within a page and between pages.
func TestLinks_leadToHeadings(t *testing.T) {
	heading := regexp.MustCompile(`(?m)^#+ (.+)$`)
	link := regexp.MustCompile(`\]\(([^)\s:#]*\.md)?#([^)]+)\)`)
	prose, headings := map[string]string{}, map[string]map[string]bool{}
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		prose[page] = fence.ReplaceAllString(string(text), "")
		headings[page] = map[string]bool{}
		for _, found := range heading.FindAllStringSubmatch(prose[page], -1) {
			headings[page][anchor(found[1])] = true
		}
	}
	for page, text := range prose {
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			target := page
			if found[1] != "" {
				target = path.Join(path.Dir(page), found[1])
			}
			if known, ok := headings[target]; ok && !known[found[2]] {
				t.Errorf("%s: %s has no heading for the link %s", page, target, found[0])
			}
		}
	}
}

// anchor returns the name that GitHub gives to a heading.
func anchor(heading string) string {
	return regexp.MustCompile(`[^a-z0-9 _-]`).ReplaceAllString(strings.ReplaceAll(strings.ToLower(heading), " ", "-"), "")
}

// TestEditorSettings_startTheServer reads the settings of editors that no test runs: Helix, Zed and
// VS Code. .ci/editor runs those of Neovim.
func TestEditorSettings_startTheServer(t *testing.T) {
	page, err := os.ReadFile("docs/how-to/use-an-editor.md")
	if err != nil {
		t.Fatal(err)
	}
	settings := func(heading, language string) string {
		_, section, _ := strings.Cut(string(page), "\n## "+heading+"\n")
		section, _, _ = strings.Cut(section, "\n## ")
		for _, b := range blocksOf(section) {
			if b.info == language {
				return b.text
			}
		}
		t.Fatalf("the section %s has no settings", heading)
		return ""
	}
	// decode decodes a value strictly.
	decode := func(text string, into any) {
		t.Helper()
		d := json.NewDecoder(strings.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(into); err != nil {
			t.Fatal(err)
		}
	}
	type command struct {
		Command string   `json:"command"`
		Path    string   `json:"path"`
		Args    []string `json:"args"`
		All     []string `json:"arguments"`
	}

	table, err := toml.Parse(settings("Helix", "toml"))
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(table)
	if err != nil {
		t.Fatal(err)
	}
	var helix struct {
		Servers   map[string]command `json:"language-server"`
		Languages []struct {
			Name       string   `json:"name"`
			Servers    []string `json:"language-servers"`
			Roots      []string `json:"roots"`
			AutoFormat bool     `json:"auto-format"`
		} `json:"language"`
	}
	decode(string(encoded), &helix)
	if diff := cmp.Diff(map[string]command{"mcpd": {Command: "mcpd", Args: []string{"lsp"}}}, helix.Servers); diff != "" {
		t.Errorf("servers of Helix (-want +got):\n%s", diff)
	}
	var languages []string
	for _, l := range helix.Languages {
		if languages = append(languages, l.Name); !slices.Contains(l.Servers, "mcpd") {
			t.Errorf("Helix does not use mcpd for %s", l.Name)
		}
	}
	if want := []string{"hcl", "typescript", "javascript"}; !slices.Equal(languages, want) {
		t.Errorf("languages of Helix: %q, want %q", languages, want)
	}

	// The extension has no server for the language HCL.
	var zed struct {
		FileTypes map[string][]string `json:"file_types"`
		Servers   map[string]struct {
			Binary command `json:"binary"`
		} `json:"lsp"`
		SemanticTokens string `json:"semantic_tokens"`
	}
	decode(settings("Zed", "json"), &zed)
	if diff := cmp.Diff(command{Path: "mcpd", All: []string{"lsp"}}, zed.Servers["terraform-ls"].Binary); diff != "" {
		t.Errorf("server of Zed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string][]string{"Terraform": {"hcl"}}, zed.FileTypes); diff != "" {
		t.Errorf("file types of Zed (-want +got):\n%s", diff)
	}

	var code map[string]json.RawMessage
	decode(settings("VS Code", "json"), &code)
	manifest, err := os.ReadFile("editors/vscode/package.json")
	if err != nil {
		t.Fatal(err)
	}
	var extension struct {
		Contributes struct {
			Configuration struct {
				Properties map[string]any `json:"properties"`
			} `json:"configuration"`
		} `json:"contributes"`
	}
	if err := json.Unmarshal(manifest, &extension); err != nil {
		t.Fatal(err)
	}
	if len(code) == 0 {
		t.Error("there are no settings for VS Code")
	}
	for name := range code {
		if extension.Contributes.Configuration.Properties[name] == nil {
			t.Errorf("the extension has no setting %s", name)
		}
	}
}
