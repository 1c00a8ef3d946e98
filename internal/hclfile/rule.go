package hclfile

import "slices"

// form says how the value of an argument is written, which matters to
// HCL's JSON syntax, where every one of them is a string.
type form int

const (
	// expression is an ordinary expression; its strings are templates.
	expression form = iota
	// code is literal text in another language.
	code
	// typeName is a type such as list(string).
	typeName
)

// argument is an argument that a block may hold.
type argument struct {
	name     string
	form     form
	required bool
	// later: it belongs to the language but not to this version.
	later bool
}

// rule says what a block of one type may hold.
type rule struct {
	// label says what the labels of the block are, such as "name"; none means
	// that it has no labels.
	labels []string
	// single: at most one such block stands beside its like.
	single bool
	// later: it belongs to the language but not to this version.
	later bool
	// open: arguments of any name may stand in it.
	open   bool
	args   []argument
	blocks []string
}

func (r *rule) arg(name string) *argument {
	for i := range r.args {
		if r.args[i].name == name {
			return &r.args[i]
		}
	}
	return nil
}

func (r *rule) hasBlock(name string) bool { return slices.Contains(r.blocks, name) }

// names returns what may stand in the block in this version: arguments and blocks.
func (r *rule) names() []string { return append(r.argNames(), r.blockNames()...) }

func (r *rule) argNames() []string {
	var names []string
	for _, a := range r.args {
		if !a.later {
			names = append(names, a.name)
		}
	}
	return names
}

func (r *rule) blockNames() []string {
	var names []string
	for _, b := range r.blocks {
		if !rules[b].later {
			names = append(names, b)
		}
	}
	return names
}

// parents returns the types of the blocks that blocks of a type stand in, sorted.
func parents(block string) []string {
	var found []string
	for name, r := range rules {
		if r.hasBlock(block) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

func args(names ...string) []argument {
	l := make([]argument, len(names))
	for i, n := range names {
		l[i].name = n
	}
	return l
}

func required(names ...string) []argument {
	l := args(names...)
	for i := range l {
		l[i].required = true
	}
	return l
}

func later(names ...string) []argument {
	l := args(names...)
	for i := range l {
		l[i].later = true
	}
	return l
}

func codeArg(name string, required bool) []argument {
	return []argument{{name: name, form: code, required: required}}
}

func join(lists ...[]argument) []argument {
	var all []argument
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// fileRule says which blocks may stand at the top level of a file.
func fileRule(kind Kind) *rule {
	if kind == ConfigKind {
		return &rule{blocks: []string{
			"server", "listen", "reload", "limits", "ceiling", "variable", "secret", "policy", "hook",
			"auth", "audit", "upstream", "codeact", "limit",
		}}
	}
	return &rule{blocks: []string{
		"tool", "policy", "hook", "test", "locals",
		"limit", "resource", "resource_folder", "resource_template", "prompt",
	}}
}

var fileRules = [...]*rule{ConfigKind: fileRule(ConfigKind), ToolsKind: fileRule(ToolsKind)}

// schemaArgs are the arguments that inputs, outputs and fields share.
func schemaArgs() []argument {
	return join(
		[]argument{{name: "type", form: typeName}},
		args("title", "description", "required", "default", "examples", "enum", "pattern", "format",
			"min", "max", "min_length", "max_length", "min_items", "max_items", "unique", "sensitive"),
	)
}

// rules describes every block of the language by its type.
var rules = map[string]*rule{
	"server":  {single: true, args: args("name", "title", "version", "description", "instructions", "mode", "default_decision")},
	"listen":  {single: true, args: join(args("address", "hosts", "origins"), later("unix")), blocks: []string{"tls"}},
	"tls":     {single: true, later: true},
	"reload":  {single: true, args: args("watch", "require_tests")},
	"limits":  {single: true, args: join(args("concurrency"), later("memory"))},
	"ceiling": {single: true, args: join(args("http_hosts"), later("fs_roots", "exec_paths", "ask"))},
	"variable": {labels: []string{"name"}, args: join(
		[]argument{{name: "type", form: typeName}}, args("default", "description", "sensitive"))},
	"secret":   {labels: []string{"name"}, args: args("env", "file", "command"), blocks: []string{"oauth"}},
	"oauth":    {single: true, later: true},
	"auth":     {later: true},
	"audit":    {later: true},
	"codeact":  {later: true},
	"upstream": {labels: []string{"name"}, later: true},
	"limit":    {labels: []string{"name"}, later: true},

	"resource":          {labels: []string{"name"}, later: true},
	"resource_folder":   {labels: []string{"name"}, later: true},
	"resource_template": {labels: []string{"name"}, later: true},
	"prompt":            {labels: []string{"name"}, later: true},

	"tool": {labels: []string{"name"}, args: join(
		args("title", "description", "timeout", "idempotent", "read_only", "destructive", "open_world",
			"labels", "input_schema", "output_schema", "extra_arguments"),
		codeArg("run", true), later("ask_timeout", "dry_run", "task", "icons")),
		blocks: []string{"input", "output", "allow", "cache"}},
	"input":  {labels: []string{"name"}, args: join(schemaArgs(), args("header"), codeArg("from", false)), blocks: []string{"field"}},
	"output": {labels: []string{"name"}, args: schemaArgs(), blocks: []string{"field"}},
	"field":  {labels: []string{"name"}, args: schemaArgs(), blocks: []string{"field"}},
	"cache":  {single: true, later: true},

	"allow": {single: true, blocks: []string{"http", "fs", "exec", "sql", "kv", "ask", "call", "env"}},
	"http": {labels: []string{"name"}, args: join(required("hosts"),
		args("methods", "paths", "max_response", "redirects", "private_networks", "timeout")), blocks: []string{"header"}},
	"header": {labels: []string{"name"}, args: required("value")},
	"fs":     {labels: []string{"name"}, later: true},
	"exec":   {labels: []string{"name"}, later: true},
	"sql":    {labels: []string{"name"}, later: true},
	"kv":     {labels: []string{"name"}, later: true},
	"ask":    {later: true},
	"call":   {later: true},
	"env":    {later: true},

	"policy": {labels: []string{"name"}, args: join(args("tools"),
		codeArg("when", false), codeArg("allow", false), codeArg("deny", false),
		required("reason"), args("disclose"), later("requires_approval", "resources", "prompts"))},
	"hook": {labels: []string{"name"}, args: join(required("on"), args("tools", "timeout"), codeArg("run", true)),
		blocks: []string{"allow"}},

	"locals": {open: true},
	"test": {labels: []string{"name"}, args: join(required("tool"), args("input", "principal", "agent")),
		blocks: []string{"mock", "expect"}},
	"mock":   {labels: []string{"object", "request"}, args: args("status", "headers", "json", "text")},
	"expect": {single: true, args: args("output", "text", "error", "message_matches", "denied_by", "calls")},
}

// home names the files in which a block may stand at the top level, or "".
func home(block string) string {
	inConfig, inTools := fileRules[ConfigKind].hasBlock(block), fileRules[ToolsKind].hasBlock(block)
	switch {
	case inConfig && !inTools:
		return "the operator's file, mcpd.hcl"
	case inTools && !inConfig:
		return "a file of the tools folder"
	default:
		return ""
	}
}
