package lsp

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/language/hclfile"
)

var update = flag.Bool("update", false, "write blockdocs.tsv from docs/reference")

// tables are the tables of docs/reference with blocks and arguments: the page, the heading above the
// table, the start of its header, and the blocks in the reference.
var tables = []struct {
	page, heading, header string
	blocks                []string
}{
	{"configuration", "Configuration: mcpd.hcl", "block", []string{""}},
	{"configuration", "server", "argument", []string{"server"}},
	{"configuration", "listen", "argument", []string{"listen"}},
	{"configuration", "reload", "argument", []string{"reload"}},
	{"configuration", "limits", "argument", []string{"limits"}},
	{"configuration", "ceiling", "argument", []string{"ceiling"}},
	{"configuration", "console", "argument", []string{"console"}},
	{"configuration", "Variables", "argument", []string{"variable"}},
	{"configuration", "Secrets", "argument", []string{"secret"}},
	{"identity", "Kinds", "argument of `\"api_key\"`", []string{"auth.api_key"}},
	{"identity", "Kinds", "argument of `\"oidc\"`", []string{"auth.oidc"}},
	{"identity", "Kinds", "argument of `\"mtls\"`", []string{"auth.mtls"}},
	{"identity", "Kinds", "argument of `\"unix\"`", []string{"auth.unix"}},
	{"identity", "OAuth client tokens", "argument of `oauth`", []string{"oauth"}},
	{"identity", "User tokens", "argument of `oauth`", []string{"oauth"}},
	{"audit", "Arguments of the audit block", "argument", []string{"audit"}},
	{"report", "Reports", "argument", []string{"report"}},
	{"state", "Shared state", "argument", []string{"state"}},
	{"state", "Sessions at any replica", "argument", []string{"replica"}},
	{"code-mode", "Arguments", "argument", []string{"codeact"}},
	{"code-mode", "Arguments", "block", []string{"codeact"}},
	{"upstream", "Arguments", "argument", []string{"upstream"}},
	{"upstream", "Arguments", "block", []string{"upstream"}},
	{"compose", "Container blocks", "argument of `volume`", []string{"volume"}},
	{"compose", "Container blocks", "argument", []string{"container"}},
	{"tool", "Arguments", "argument", []string{"tool", "override"}},
	{"tool", "Arguments", "block", []string{"tool"}},
	{"tool", "Call limits", "argument", []string{"call.limits"}},
	{"tool", "Result cache", "argument", []string{"cache"}},
	{"tool", "Icons", "argument", []string{"icon"}},
	{"inputs", "Arguments of input, output and field", "argument", []string{"input", "output", "field"}},
	{"resource", "Arguments", "argument of `resource`", []string{"resource"}},
	{"resource", "Resource folders", "argument of `resource_folder`", []string{"resource_folder"}},
	{"resource", "Templates", "argument of `resource_template`", []string{"resource_template"}},
	{"prompt", "Arguments", "argument or block", []string{"prompt"}},
	{"prompt", "Arguments", "argument of `argument`", []string{"argument"}},
	{"policy", "Arguments", "argument", []string{"policy"}},
	{"limit", "Arguments", "argument", []string{"limit"}},
	{"hook", "Arguments", "argument", []string{"hook"}},
	{"test", "Arguments", "argument", []string{"test"}},
	{"test", "Expectations", "argument of `expect`", []string{"expect"}},
	{"permissions", "Permissions", "grant", []string{"allow"}},
	{"permissions", "HTTP", "argument of `http", []string{"http"}},
	{"permissions", "File system", "argument of `fs", []string{"fs"}},
	{"storage", "Key-value store", "argument of `kv", []string{"kv"}},
	{"storage", "Databases", "argument of `sql", []string{"sql"}},
	{"programs", "Programs", "argument of `exec", []string{"exec"}},
	{"programs", "Programs", "argument of `param`", []string{"exec.param"}},
	{"programs", "Calls to other tools", "argument of `call`", []string{"call"}},
	{"asking", "Asking", "argument of `ask`", []string{"ask"}},
	{"policy", "Variables", "name", []string{"cel"}},
	{"scripts", "Globals", "name", []string{"script"}},
}

// argumentTexts are the texts of arguments that the reference describes in prose, or in the row of
// their block.
var argumentTexts = map[string][]string{
	"annotations audience":                                                         {"a list of `\"user\"` and `\"assistant\"`"},
	"annotations priority":                                                         {"a number from 0 to 1"},
	"argument.complete run, complete run":                                          {"a script that reads the text typed so far as `value` and returns a list"},
	"argument.complete values, complete values":                                    {"a list of up to 1,000 values"},
	"audio base64, image base64, message.resource base64":                          {"bytes in base64"},
	"audio file, image file, message.resource file, message file":                  {"the path of a file in the tools directory"},
	"audio mime_type, image mime_type, message.resource mime_type, link mime_type": {"the type"},
	"message text, message.resource text":                                          {"text; `{{name}}` stands for an argument"},
	"link uri, message.resource uri":                                               {"an absolute URI", "required"},
	"link name":                                                                    {"the name of the resource", "required"},
	"link title, link description":                                                 {"text for people"},
	"link size":                                                                    {"the size in bytes"},
	"env names":                                                                    {"the names of environment variables", "required"},
	"secrets names":                                                                {"the names of secrets with `reveal = true`", "required"},
	"mock status":                                                                  {"the status of an HTTP response", "`200`"},
	"mock headers":                                                                 {"the headers of an HTTP response"},
	"mock json":                                                                    {"the response as a value"},
	"mock text":                                                                    {"the response as text"},
	"mock error":                                                                   {"the code of the error that the host object throws"},
	"param description":                                                            {"text for people"},
	"param pattern":                                                                {"an RE2 expression that must match the whole value"},
	"statement query":                                                              {"SQL with parameters such as `:name`", "required"},
	"tls cert_file":                                                                {"the certificates of the server, in PEM", "required"},
	"tls key_file":                                                                 {"the private key of the server, in PEM", "required"},
	"tls client_ca_file":                                                           {"the CA certificates that verify client certificates, in PEM"},
	"header value":                                                                 {"the value of the header", "required"},
}

// blockTexts describe blocks whose page has no table row for them.
var blockTexts = map[string]string{
	"tool": "defines a tool: its inputs, its permissions and the script that runs when a client calls it", "resource": "defines a resource",
	"resource_folder": "offers the files of a directory as resources", "resource_template": "defines resources by a template of their URIs", "prompt": "defines a prompt",
	"policy": "allows or denies calls with an expression in CEL", "limit": "limits the rate or the concurrency of calls", "hook": "runs a script at the start or the end of calls",
	"test": "calls a tool, resource or prompt and checks the result", "locals": "named values for the files of this directory",
	"expect": "the expected outcome of a test", "mock": "the response of a host object in a test",
	"call.limits": "limits for each call", "field": "a member of an object", "statement": "a statement with parameters such as `:name`",
}

// TestBlockDocs_matchesReference derives the reference from docs/reference. With -update, it writes it.
func TestBlockDocs_matchesReference(t *testing.T) {
	want := deriveManual(t)
	if *update {
		if err := os.WriteFile("blockdocs.tsv", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(blockDocsText, "\n")); diff != "" {
		t.Errorf("the reference differs from docs/reference; run go test ./internal/ops/lsp -run TestBlockDocs -update (-want +got):\n%s", diff)
	}
}

// TestBlockDocs_describesGrammar compares the reference with the grammar of the files.
func TestBlockDocs_describesGrammar(t *testing.T) {
	missing := map[string]bool{}
	var visit func(b *block, depth int)
	visit = func(b *block, depth int) {
		for _, a := range b.grammar.Arguments() {
			if key := docsBlock(b) + " " + a.Name; describe(b, a.Name).text == "" {
				missing[key] = true
			}
		}
		for _, kind := range b.grammar.Blocks() {
			inner := &block{kind: kind, outer: b}
			inner.grammar, _ = b.grammar.Block(kind)
			if depth < 5 && kind != "auth" {
				visit(inner, depth+1)
			}
		}
	}
	for _, kind := range []hclfile.Kind{hclfile.ConfigKind, hclfile.ToolsKind} {
		visit(&block{grammar: hclfile.FileGrammar(kind)}, 0)
	}
	var names []string
	for name := range missing {
		names = append(names, name)
	}
	slices.Sort(names)
	if len(names) > 0 {
		t.Errorf("the reference has no text for %d arguments:\n%s", len(names), strings.Join(names, "\n"))
	}
}

// TestBlockDocs_describesMembers compares the members of globals with the reference.
func TestBlockDocs_describesMembers(t *testing.T) {
	for block, globals := range map[string]map[string][]string{"cel": celMembers, "script": scriptMembers} {
		for global, members := range globals {
			text := blockDocs()[block+" "+global].text
			if text == "" {
				t.Errorf("the reference has no %s in %s", global, block)
			}
			for _, name := range members {
				if global != "console" && !regexp.MustCompile(`\b`+name+`\b`).MatchString(text) {
					t.Errorf("the reference does not mention %s.%s in %q", global, name, text)
				}
			}
		}
	}
}

func deriveManual(t *testing.T) string {
	lines := map[string]string{}
	put := func(block, argument string, e entry) {
		if key := block + "\t" + argument; lines[key] == "" {
			lines[key] = strings.Join([]string{key, e.typ, e.byDefault, e.text}, "\t")
		}
	}
	used := map[int]bool{}
	for _, page := range pages(t) {
		for _, table := range page.tables {
			for i, known := range tables {
				if page.name == known.page && table.heading == known.heading && strings.HasPrefix(table.header[0], known.header) && !table.taken {
					used[i], table.taken = true, true
					addTable(table, known.blocks, put)
				}
			}
			addFunctions(table, put)
		}
	}
	for i, known := range tables {
		if !used[i] {
			t.Errorf("docs/reference/%s.md has no table with the header %q below %q", known.page, known.header, known.heading)
		}
	}
	for keys, text := range argumentTexts {
		for key := range strings.SplitSeq(keys, ", ") {
			block, argument, _ := strings.Cut(key, " ")
			e := entry{text: text[0]}
			if len(text) > 1 {
				e.byDefault = text[1]
			}
			put(block, argument, e)
		}
	}
	for block, text := range blockTexts {
		put(block, "", entry{text: text})
	}
	var all []string
	for _, line := range lines {
		all = append(all, line+"\n")
	}
	slices.Sort(all)
	return strings.Join(all, "")
}

// addTable adds the rows of a table about arguments or blocks.
func addTable(table *table, blocks []string, put func(block, argument string, e entry)) {
	for _, row := range table.rows {
		e := entry{}
		for i, title := range table.header[1:] {
			cell := row[i+1]
			switch {
			case title == "type":
				e.typ = cell
			case title == "default":
				e.byDefault = cell
			case title == "for" || title == "object in the script" || title == "error over the limit":
			default:
				e.text = cell
			}
		}
		for _, name := range codeSpan.FindAllStringSubmatch(row[0], -1) {
			head := leadingName.FindString(name[1])
			isBlock := strings.ContainsAny(name[1], "\"{") || strings.HasSuffix(row[0], " blocks") || table.header[0] == "block" || table.header[0] == "grant"
			for _, b := range blocks {
				switch {
				case head == "":
				case isBlock:
					put(head, "", e)
				default:
					put(b, head, e)
				}
			}
		}
	}
}

var (
	codeSpan    = regexp.MustCompile("`([^`]+)`")
	leadingName = regexp.MustCompile(`^[A-Za-z_]\w*`)
	function    = regexp.MustCompile(`^((?:http|fs|kv|sql|dates|numbers|csv|yaml|toml|content|crypto|progress)(?:\.NAME)?\.)(\w+)(\(.*\))$`)
	link        = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// addFunctions adds the rows of a table about functions of scripts.
func addFunctions(table *table, put func(block, argument string, e entry)) {
	for _, row := range table.rows {
		prefix, signature := "", ""
		for _, span := range codeSpan.FindAllStringSubmatch(row[0], -1) {
			m := function.FindStringSubmatch(span[1])
			switch {
			case m != nil:
				prefix, signature = m[1], m[3]
				put("script", prefix+m[2], entry{typ: signature, text: row[1]})
			case prefix != "" && leadingName.FindString(span[1]) == span[1]:
				put("script", prefix+span[1], entry{typ: signature, text: row[1]})
			}
		}
	}
}

// page is a page of docs/reference.
type page struct {
	name   string
	tables []*table
}

type table struct {
	heading string
	header  []string
	rows    [][]string
	taken   bool
}

func pages(t *testing.T) (all []page) {
	names, err := filepath.Glob("../../../docs/reference/*.md")
	if err != nil || len(names) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		p := page{name: strings.TrimSuffix(filepath.Base(name), ".md")}
		heading, fenced := "", false
		var current *table
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "```") {
				fenced = !fenced
			}
			isRow := !fenced && strings.HasPrefix(line, "| ")
			switch {
			case !fenced && strings.HasPrefix(line, "#"):
				heading = strings.TrimSpace(strings.ReplaceAll(strings.TrimLeft(line, "#"), "`", ""))
			case isRow && current == nil:
				current = &table{heading: heading, header: cells(line)}
				p.tables = append(p.tables, current)
			case isRow:
				if row := cells(line); len(row) == len(current.header) {
					current.rows = append(current.rows, row)
				}
			}
			if !isRow && !strings.HasPrefix(line, "|-") {
				current = nil
			}
		}
		all = append(all, p)
	}
	return all
}

// cells returns the cells of a row, without links.
func cells(line string) []string {
	line = strings.ReplaceAll(strings.Trim(line, "|"), `\|`, "\x00")
	parts := strings.Split(line, "|")
	for i, part := range parts {
		part = strings.ReplaceAll(link.ReplaceAllString(part, "$1"), "\x00", "|")
		part = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSpace(part), ": see below"), ": see the list below")
		parts[i] = part
	}
	return parts
}
