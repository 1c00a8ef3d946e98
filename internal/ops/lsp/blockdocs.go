package lsp

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/mcpd/mcpd/internal/language/hclfile"
)

// blockDocsText has what the reference pages say about each block and argument, a line each with
// tab-separated columns: block, argument, type, default and meaning. A line without an argument is
// about the block. A test derives it from docs/reference.
//
//go:embed blockdocs.tsv
var blockDocsText string

// entry is what the reference says about a block or an argument.
type entry struct{ typ, byDefault, text string }

// blockDocs returns the entries by block and argument, such as "tool run" or "tool ".
var blockDocs = sync.OnceValue(func() map[string]entry {
	entries := map[string]entry{}
	for line := range strings.Lines(blockDocsText) {
		if cells := strings.Split(strings.TrimSuffix(line, "\n"), "\t"); len(cells) == 5 {
			entries[cells[0]+" "+cells[1]] = entry{cells[2], cells[3], cells[4]}
		}
	}
	return entries
})

// docsBlock returns the name of a block in the reference: its kind, and the context of kinds that
// mean different things in different blocks.
func docsBlock(b *block) string {
	outer := ""
	if b.outer != nil {
		outer = b.outer.kind
	}
	switch {
	case b.kind == "auth" && b.name() != "":
		return "auth." + b.name()
	case b.kind == "limits" && outer != "":
		return "call.limits"
	case b.kind == "param" && outer == "exec", b.kind == "resource" && outer == "message", b.kind == "complete" && outer == "argument":
		return outer + "." + b.kind
	}
	return b.kind
}

// describe returns what the reference says about an argument of a block, or about the block if the name
// is empty.
func describe(b *block, argument string) entry { return blockDocs()[docsBlock(b)+" "+argument] }

// describeInner returns what the reference says about a nested block type.
func describeInner(outer *block, kind string) entry {
	return describe(&block{kind: kind, outer: outer}, "")
}

// markdown returns the entry of an argument for a hover.
func (e entry) markdown(name string) string {
	head := "**" + name + "**"
	if e.typ != "" {
		head += " — " + e.typ
	}
	switch {
	case e.byDefault == "required":
		head += " (required)"
	case strings.HasPrefix(e.byDefault, "`"):
		head += " (default " + e.byDefault + ")"
	case e.byDefault != "":
		head += " (" + e.byDefault + ")"
	}
	if e.text == "" {
		return head
	}
	return head + "\n\n" + e.text
}

// plainWord matches a word in quotes in the reference, such as "ro".
var plainWord = regexp.MustCompile("`\"([a-z_-]+)\"`")

// values returns the words that the reference mentions as values of an argument.
func (e entry) values() (words []string) {
	if e.typ == "bool" || e.byDefault == "`false`" || e.byDefault == "`true`" {
		return []string{"true", "false"}
	}
	for _, m := range plainWord.FindAllStringSubmatch(e.byDefault+" "+e.text, -1) {
		if word := `"` + m[1] + `"`; !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return words
}

// isList reports whether an argument takes a list.
func (e entry) isList() bool {
	return strings.HasPrefix(e.typ, "list") || strings.HasPrefix(e.byDefault, "`[")
}

// snippet returns the text that starts the value of an argument; $0 is the cursor.
func snippet(b *block, a hclfile.GrammarArgument) string {
	e := describe(b, a.Name)
	switch {
	case a.Name == "run" || a.Name == "dry_run":
		return "<<JS\n  $0\nJS"
	case a.Name == "query":
		return "<<SQL\n  $0\nSQL"
	case e.isList() || slices.Contains([]string{"tools", "resources", "prompts", "hosts", "names"}, a.Name) && b.kind != "server":
		return `["$0"]`
	case a.Code, strings.HasPrefix(e.byDefault, "`\""), e.typ == "string", e.typ == "duration", slices.Contains([]string{"title", "description", "reason", "uri", "tool"}, a.Name):
		return `"$0"`
	}
	return "$0"
}

// typeNames are the types of inputs, outputs and variables.
var typeNames = []string{"string", "number", "integer", "bigint", "bool", "any", "list(string)", "map(string)", "object({})"}

// member is a name in code, with its signature and what it means, as in the reference.
type member struct {
	name string
	entry
}

// celMembers are the variables of policies with their members. The reference describes the variables as
// arguments of "cel".
var celMembers = map[string][]string{
	"args":      nil,
	"principal": {"id", "kind", "issuer", "scopes", "groups", "claims"},
	"agent":     {"agent_id", "model", "request_id", "metadata", "verified"},
	"tool":      {"kind", "name", "title", "labels", "read_only", "idempotent", "destructive", "open_world"},
	"call":      {"id", "via", "depth", "parent"},
	"source":    {"ip", "listener"},
	"vars":      nil,
	"now":       nil,
	"result":    nil,
	"content":   nil,
}

// scriptMembers are the members of globals that the reference lists in a sentence. It describes globals,
// and functions such as http.NAME.get, as arguments of "script".
var scriptMembers = map[string][]string{
	"agent":   {"agent_id", "model", "request_id", "metadata", "verified"},
	"call":    {"id", "tool", "via", "deadline", "depth", "parent"},
	"log":     {"debug", "info", "warn", "error"},
	"console": {"log", "debug", "info", "warn", "error"},
}

// membersOf returns the members of a global of scripts, such as dates or http.NAME, or all globals if
// it is empty.
func membersOf(global string) (members []member) {
	prefix := "script "
	if global != "" {
		prefix += global + "."
	}
	for key, e := range blockDocs() {
		if name, ok := strings.CutPrefix(key, prefix); ok && !strings.Contains(name, ".") {
			members = append(members, member{name, e})
		}
	}
	for _, name := range scriptMembers[global] {
		members = append(members, member{name: name})
	}
	slices.SortFunc(members, func(a, b member) int { return strings.Compare(a.name, b.name) })
	return members
}

// needsGrant are the globals that a script has only with a grant of that kind, or with an argument of
// an ask grant.
var needsGrant = []string{"http", "fs", "env", "secrets", "kv", "exec", "sql", "tools", "modules", "elicit", "sample", "roots", "ask"}
