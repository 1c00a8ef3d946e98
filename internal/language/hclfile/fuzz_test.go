package hclfile

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// seeds are texts that use every part of the language.
func seeds() []string {
	return []string{
		string(smallTool(1).Bytes),
		"tool \"a\" {\n  run = <<-TS\n    a\n      b ${x}\n  TS\n}\n",
		"locals {\n  a = [for k, v in { x = 1 } : \"${k}-${v}\" if v > 0]\n  b = local.a[*]\n}\n",
		"policy \"p\" {\n  deny = \"a == \\\"b\\\" && c\"\n  reason = <<CEL\n'x' + y\nCEL\n}\n",
		"test \"t\" {\n  tool = \"a\"\n  mock \"http.x\" \"GET /\" {\n    json = { a = [1, 2.5, null] }\n  }\n  expect { error = \"TIMEOUT\" }\n}\n",
		"limit \"l\" {\n  tools = [\"a*\"]\n  key = \"principal.id\"\n  rate = \"60/m\"\n  burst = 2\n  concurrency = 1\n}\n",
		"hook \"h\" {\n  on = [\"end\"]\n  allow {\n    http \"x\" {\n      hosts = [\"a.b:443\"]\n      header \"X\" { value = \"a ${base64encode(\"u:${secret.s}\")}\" }\n    }\n  }\n  run = file(\"x.js\")\n}\n",
		"variable \"v\" {\n  type = object({ a = optional(list(string), [\"x\"]) })\n  default = {}\n}\nserver { name = \"x\" }\n",
		"resource \"r\" {\n  uri = \"x:r\"\n  base64 = \"AAAA\"\n  size = 3\n  annotations { audience = [\"user\"] }\n  icon { src = \"data:image/png,x\" }\n}\n",
		"resource_folder \"f\" {\n  root = \"f\"\n  uri_prefix = \"f:/\"\n  glob = [\"**/*.md\"]\n  mime_types = { \".md\" = \"text/markdown\" }\n  max_file = \"1MiB\"\n}\n",
		"resource_template \"t\" {\n  uri_template = \"x:{a}/{+b}\"\n  param \"a\" { pattern = \"^a\" }\n  complete \"b\" { values = [\"1\"] }\n  text = \"{{a}} {{{{ {{ b }}\"\n}\n",
		"prompt \"p\" {\n  argument \"a\" {\n    complete { run = \"return [];\" }\n  }\n  message \"user\" { text = <<EOT\n{{a}} {{b}} {{\nEOT\n  }\n  message \"assistant\" {\n    resource {\n      uri = \"{{a}}\"\n      file = \"x\"\n    }\n  }\n  message \"user\" {\n    link {\n      uri = \"x:y\"\n      name = \"{{a}}\"\n    }\n  }\n}\n",
		"message { text {} }\nprompt \"p\" {\n  message \"user\" {\n    file {\n    }\n    image { base64 = \"\" }\n  }\n}\n",
		"tool \"a\" {\n  task = \"optional\"\n  task_ttl = \"1h\"\n  allow {\n    ask { elicit = true }\n  }\n  run = \"1\"\n}\npolicy \"p\" {\n  resources = [\"a*\"]\n  prompts = [\"b\"]\n  deny = \"true\"\n  reason = \"x\"\n}\n",
		"test \"t\" {\n  prompt = \"p\"\n  expect { messages = [{ role = \"user\", text = \"x\" }] }\n}\ntest \"u\" {\n  resource = \"x:r\"\n  expect { mime_type = \"text/plain\" }\n}\n",
		"a = <<EOT\n%{ for x in var.l ~}\n$${x} ${upper(x)}\n%{ endfor }\nEOT\n# <<JS\nb = \"<<JS\" /* <<JS */\n",
		`{"tool": {"a": {"input": {"x": {"type": "list(string)", "default": ["${var.v}"]}}, "run": "return 1;"}}, "//": 1}`,
		`{"prompt": {"p": {"argument": {"a": {"values": ["x"]}}, "message": [{"user": {"text": "\u007b{a}} {{b}}"}}, {"user": {"resource": {"uri": "{{a}}", "text": ""}}}]}}}`,
		`{"resource_template": {"t": {"uri_template": "x:\u007ba}{b}", "run": "1"}}, "test": {"t": {"resource": "x:a", "expect": {"text": ""}}}}`,
		`{"policy": [{"p": {"deny": "a\u00e9 == \"b\"", "reason": "x"}}], "locals": {"a": "%{if true}x%{endif}"}}`,
		"\xef\xbb\xbftool \"é\" {\r\n  run = <<JS\r\nx\r\nJS\r\n}\r\n",
	}
}

func addSeeds(f *testing.F) {
	for _, s := range seeds() {
		f.Add([]byte(s))
	}
}

// FuzzParse checks that no text panics, that diagnostics are inside the file, that a parsed
// file can be decoded as both kinds, and that an incomplete file has an error.
func FuzzParse(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		for _, path := range []string{"x.hcl", "x.hcl.json"} {
			src := Source{Path: path, Bytes: text}
			for kind, problems := range map[Kind]diag.List{ToolsKind: toolProblems(src), ConfigKind: configProblems(src)} {
				checkRanges(t, src, problems)
				if file, _ := Parse(src, kind); (file == nil || file.broken) && !problems.HasErrors() {
					t.Errorf("%s: the file is incomplete without an error", path)
				}
			}
		}
	})
}

// toolProblems decodes src as a tool file, as far as possible.
func toolProblems(src Source) diag.List {
	file, problems := Parse(src, ToolsKind)
	if file == nil {
		return problems
	}
	vars := map[string]definition.Variable{"v": {Value: []byte(`["a", {"b": 1}]`)}}
	locals, more := JoinLocals([]*File{file}, vars, file.Incomplete())
	problems = append(problems, more...)
	_, more = file.Decode(Scope{
		Incomplete: file.Incomplete(), Vars: vars, Locals: locals, Secrets: []string{"s"},
		ReadFile: func(string) ([]byte, error) { return []byte(`{"type":"object"}`), nil },
	})
	return wantNoPanic(append(problems, more...))
}

// configProblems decodes src as a config file, as far as possible.
func configProblems(src Source) diag.List {
	file, problems := Parse(src, ConfigKind)
	if file == nil {
		return problems
	}
	_, more := file.DecodeConfig(definition.VarValues{"v": {Text: "[1]", Origin: "--var"}})
	return wantNoPanic(append(problems, more...))
}

// wantNoPanic panics if the diagnostics report a panic.
func wantNoPanic(problems diag.List) diag.List {
	for _, p := range problems {
		if p.Code == codeInternal {
			panic(p)
		}
	}
	return problems
}

// checkRanges fails if a diagnostic is outside of its file, or its line and column do not match
// its byte.
func checkRanges(t *testing.T, src Source, problems diag.List) {
	t.Helper()
	for _, p := range problems {
		places := []diag.Range{p.Range}
		for _, n := range p.Notes {
			places = append(places, n.Range)
		}
		for _, r := range places {
			if r.File != src.Path || r.Start.Line == 0 {
				continue
			}
			if r.Start.Byte < 0 || r.End.Byte < r.Start.Byte || r.End.Byte > len(src.Bytes) {
				t.Fatalf("%s: range %+v lies outside the file of %d bytes", p, r, len(src.Bytes))
			}
			for _, pos := range []diag.Pos{r.Start, r.End} {
				if want := advanced(string(src.Bytes[:pos.Byte])); pos != want {
					t.Fatalf("%s: place is %+v, want %+v", p, pos, want)
				}
			}
		}
		if p.Code == "" || p.Summary == "" || strings.Contains(p.Summary, "\n") {
			t.Fatalf("diagnostic without code, or without a summary of one line: %+v", p)
		}
	}
}

// FuzzScan compares the scanner with HCL's: both must find the same heredocs, and no more
// nesting than the limit.
func FuzzScan(f *testing.F) {
	addSeeds(f)
	f.Add([]byte("a = \"${ ( }\" ~} ${\n"))
	f.Add([]byte("a = <<X\n${<<JS\n}\nJS\n}\nX\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		if !utf8.Valid(src) || slices.Contains(src, 0) || strings.HasPrefix(string(src), byteOrderMark) {
			return
		}
		file := &File{path: "x.hcl", source: string(src), positions: newPositions(string(src))}
		heredocs, problem := scan(src)
		if problem != nil {
			return
		}
		file.withoutHeredocs(src, 0, heredocs)
		text := append(file.withoutTexts(), '\n')
		tokens, _ := hclsyntax.LexConfig(text, "", hcl.InitialPos)
		if depth := nesting(tokens); depth > maxNesting {
			t.Fatalf("HCL sees %d levels", depth)
		}
		var ours []int
		for _, h := range file.heredocs {
			ours = append(ours, h.cut)
		}
		for _, token := range tokens {
			if token.Type == hclsyntax.TokenNumberLit && len(token.Bytes) > maxNumber {
				t.Fatalf("HCL sees a number of %d bytes", len(token.Bytes))
			}
			if token.Type != hclsyntax.TokenOHeredoc {
				continue
			}
			tag := strings.Trim(string(token.Bytes), "<-\r\n")
			if _, raw := rawLanguage(tag); raw && !slices.Contains(ours, token.Range.Start.Byte) {
				t.Fatalf("HCL sees a heredoc %s at %d, the scanner sees them at %v (%d found)", tag, token.Range.Start.Byte, ours, len(heredocs))
			}
		}
		for i, h := range file.heredocs {
			if !slices.ContainsFunc(tokens, func(k hclsyntax.Token) bool {
				return k.Type == hclsyntax.TokenOHeredoc && k.Range.Start.Byte == h.cut
			}) {
				t.Fatalf("HCL sees no heredoc where our heredoc %d is, at %d of %q", i, h.cut, text)
			}
		}
	})
}

// nesting returns the maximum number of open brackets, quotes and templates.
func nesting(tokens hclsyntax.Tokens) int {
	var open []hclsyntax.TokenType
	deepest := 0
	for _, token := range tokens {
		switch token.Type {
		case hclsyntax.TokenOBrace, hclsyntax.TokenOBrack, hclsyntax.TokenOParen, hclsyntax.TokenOQuote, hclsyntax.TokenOHeredoc,
			hclsyntax.TokenTemplateInterp, hclsyntax.TokenTemplateControl:
			open = append(open, token.Type)
			deepest = max(deepest, len(open))
		case hclsyntax.TokenCBrack, hclsyntax.TokenCParen:
			want := hclsyntax.TokenOBrack
			if token.Type == hclsyntax.TokenCParen {
				want = hclsyntax.TokenOParen
			}
			if len(open) > 0 && open[len(open)-1] == want {
				open = open[:len(open)-1]
			}
		case hclsyntax.TokenCBrace, hclsyntax.TokenTemplateSeqEnd, hclsyntax.TokenCQuote, hclsyntax.TokenCHeredoc:
			open = closeLexical(open, token.Type)
		}
	}
	return deepest
}

func closeLexical(open []hclsyntax.TokenType, end hclsyntax.TokenType) []hclsyntax.TokenType {
	for i := len(open) - 1; i >= 0; i-- {
		switch k := open[i]; {
		case end == hclsyntax.TokenCQuote && k == hclsyntax.TokenOQuote,
			end == hclsyntax.TokenCHeredoc && k == hclsyntax.TokenOHeredoc,
			(end == hclsyntax.TokenCBrace || end == hclsyntax.TokenTemplateSeqEnd) &&
				(k == hclsyntax.TokenOBrace || k == hclsyntax.TokenTemplateInterp || k == hclsyntax.TokenTemplateControl):
			return open[:i]
		}
	}
	return open
}

// FuzzRawHeredoc checks that a raw heredoc is kept verbatim and that each byte has the right
// position.
func FuzzRawHeredoc(f *testing.F) {
	f.Add("return `${input.a}`;", false)
	f.Add("  a\n    b %{x}\n\n  c\\", true)
	f.Add("\té\r\n\t\tx", true)
	f.Fuzz(func(t *testing.T, text string, flush bool) {
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) || strings.TrimSpace(text) == "" || len(text) > 8<<10 {
			return
		}
		for line := range strings.Lines(text) {
			if strings.TrimSpace(line) == "JS" {
				return
			}
		}
		open := "<<JS\n"
		if flush {
			open = "<<-JS\n"
		}
		head := "# é\ntool \"t\" {\n  run = " + open
		source := head + text + "\n  JS\n  title = \"after\"\n}\n"
		file, problems := Parse(Source{Path: "x.hcl", Bytes: []byte(source)}, ToolsKind)
		if file == nil {
			if problems[0].Code == "too-large" {
				return
			}
			t.Fatal(problems)
		}
		defs, problems := file.Decode(Scope{})
		if len(problems) > 0 || defs.Tools[0].Title != "after" {
			t.Fatal(problems, defs.Tools)
		}
		body := defs.Tools[0].Run.Text
		if !flush && body.Body() != text+"\n" {
			t.Fatal(cmp.Diff(text+"\n", body.Body()))
		}
		for i := range body.Body() {
			if pos := body.Pos(i); source[pos.Byte] != body.Body()[i] {
				t.Fatalf("byte %d, %q, has position %+v, which has %q", i, body.Body()[i], pos, source[pos.Byte])
			}
		}
		if flush {
			checkFlush(t, text+"\n", body.Body())
		}
	})
}

// checkFlush fails unless body is text without the common indent.
func checkFlush(t *testing.T, text, body string) {
	t.Helper()
	want, got := slices.Collect(strings.Lines(text)), slices.Collect(strings.Lines(body))
	if len(want) != len(got) {
		t.Fatalf("%d lines became %d", len(want), len(got))
	}
	cut := -1
	for i, line := range want {
		if strings.TrimSpace(line) == "" {
			continue
		}
		indent := strings.TrimSuffix(line, got[i])
		if strings.Trim(indent, " \t") != "" || cut >= 0 && len(indent) != cut {
			t.Fatalf("line %q became %q", line, got[i])
		}
		cut = len(indent)
	}
}

// FuzzFormat checks that formatting only changes layout and is idempotent.
func FuzzFormat(f *testing.F) {
	addSeeds(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		before, problems := Parse(Source{Path: "x.hcl", Bytes: src}, ToolsKind)
		once, more := Format(Source{Path: "x.hcl", Bytes: src})
		if broken := before == nil || before.broken; broken || once == nil {
			if broken != (once == nil) {
				t.Fatalf("parsing: %v, formatting: %v", problems, more)
			}
			return
		}
		twice, problems := Format(Source{Path: "x.hcl", Bytes: once})
		if problems.HasErrors() {
			t.Fatalf("%q became %q, which does not parse: %v", src, once, problems)
		}
		if diff := cmp.Diff(string(once), string(twice)); diff != "" {
			t.Fatal("formatting twice differs from formatting once", diff)
		}
		after, _ := Parse(Source{Path: "x.hcl", Bytes: once}, ToolsKind)
		for i, h := range before.heredocs {
			g := after.heredocs[i]
			if before.source[h.start:h.end] != after.source[g.start:g.end] {
				t.Fatalf("the text of heredoc %d changed", i)
			}
		}
	})
}

// advanced returns the position after text at the start of a file.
func advanced(text string) diag.Pos {
	unmarked := strings.TrimPrefix(text, byteOrderMark)
	pos := diag.Advance(diag.Pos{Line: 1, Column: 1}, unmarked)
	pos.Byte = len(text)
	return pos
}
