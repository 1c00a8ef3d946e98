package hclfile

import (
	"fmt"
	"slices"
	"strings"
)

// rule defines the content of a block type.
type rule struct {
	// what names the block in messages, such as "a tool block". It is set for [rules].
	what string
	// labels names the labels of the block, such as "name". Empty means no labels.
	labels []string
	// single: at most one such block is allowed.
	single bool
	// anyArgument: arguments of any name are allowed.
	anyArgument bool
	args        []argument
	blocks      []string
	// overrides are the rules of nested blocks that differ from the general rules.
	overrides map[string]*rule
}

// argument is an argument of a block.
type argument struct {
	name     string
	form     form
	required bool
}

// form says how to read the value of an argument. It matters in HCL's JSON syntax, where all
// values are strings.
type form int

const (
	// expression is an ordinary expression; its strings are templates.
	expression form = iota
	// code is literal text in another language.
	code
	// typeName is a type such as list(string).
	typeName
)

func (r *rule) arg(name string) *argument {
	for i := range r.args {
		if r.args[i].name == name {
			return &r.args[i]
		}
	}
	return nil
}

func (r *rule) hasBlock(name string) bool { return slices.Contains(r.blocks, name) }

// block returns the rule of a nested block type, or nil.
func (r *rule) block(name string) *rule {
	if own := r.overrides[name]; own != nil {
		return own
	}
	return rules[name]
}

// names returns the allowed arguments and blocks.
func (r *rule) names() []string { return append(r.argNames(), r.blocks...) }

func (r *rule) argNames() []string {
	names := make([]string, len(r.args))
	for i, a := range r.args {
		names[i] = a.name
	}
	return names
}

// blocksWith returns the nested block types with an argument.
func (r *rule) blocksWith(argument string) []string {
	var found []string
	for _, name := range r.blocks {
		if r.block(name).arg(argument) != nil {
			found = append(found, name)
		}
	}
	return found
}

// locationHint returns in which nested block an argument belongs. It returns "" if there is
// none, or several. Grants are two levels deep.
func (r *rule) locationHint(argument string) string {
	path := argument + " = …"
	inner := r.blocksWith(argument)
	if len(inner) == 0 && slices.Contains(askNames, argument) && r.hasBlock("allow") {
		inner, path = []string{"allow"}, "ask { "+path+" }"
	}
	if len(inner) != 1 {
		return ""
	}
	return fmt.Sprintf("it belongs in %s: %s { %s }", article(inner[0]), header(inner[0], r.block(inner[0])), path)
}

// parents returns the sorted block types that contain a block type, without those that override
// its rule.
func parents(block string) []string {
	var found []string
	for name, r := range rules {
		if r.hasBlock(block) && r.overrides[block] == nil {
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

// fileHint names the files that allow a block at the top level, or "".
func fileHint(block string) string {
	inConfig, inTools := fileRules[ConfigKind].hasBlock(block), fileRules[ToolsKind].hasBlock(block)
	switch {
	case inConfig && !inTools:
		return "the config file, mcpd.hcl"
	case inTools && !inConfig:
		return "a file of the tools directory"
	default:
		return ""
	}
}

// fileRules define the top-level blocks of each kind of file.
var fileRules = [...]*rule{
	ConfigKind: {blocks: []string{
		"server", "listen", "reload", "limits", "ceiling", "variable", "secret", "policy", "limit", "hook",
		"auth", "audit", "state", "report", "upstream", "codeact", "console",
	}},
	ToolsKind: {blocks: []string{
		"tool", "policy", "limit", "hook", "test", "locals",
		"resource", "resource_folder", "resource_template", "prompt",
	}},
}

// schemaArgs are the arguments that inputs, outputs and fields share.
func schemaArgs() []argument {
	return join(
		[]argument{{name: "type", form: typeName}},
		args("title", "description", "required", "default", "examples", "enum", "pattern", "format",
			"min", "max", "min_length", "max_length", "min_items", "max_items", "unique", "sensitive"),
	)
}

// completeArgs are the arguments of a completion.
func completeArgs() []argument { return join(args("values"), codeArg("run", false)) }

// boundNames are the limits of a call: in the limits block of a definition and in the ceiling.
var boundNames = [...]string{"timeout", "memory", "output", "concurrency"}

// boundsOfCall is the limits block of a definition.
var boundsOfCall = map[string]*rule{"limits": {single: true, args: args(boundNames[:]...)}}

// rules define every block of the language by type.
var rules = described(map[string]*rule{
	"server":  {single: true, args: args("name", "title", "version", "description", "instructions", "mode", "default_decision", "expose_traces", "strict_lifecycle"), blocks: []string{"icon"}},
	"listen":  {single: true, args: args("address", "unix", "hosts", "origins"), blocks: []string{"tls"}},
	"tls":     {single: true, args: join(required("cert_file", "key_file"), args("client_ca_file"))},
	"reload":  {single: true, args: args("watch", "require_tests")},
	"limits":  {single: true, args: args("concurrency", "memory")},
	"ceiling": {single: true, args: join(args("http_hosts", "private_networks", "fs_roots", "env", "kv", "ask", "exec_paths", "sql_drivers", "sql_roots", "sql_hosts", "modules"), args(boundNames[:]...))},
	"variable": {labels: []string{"name"}, args: join(
		[]argument{{name: "type", form: typeName}}, args("default", "description", "sensitive"))},
	"audit":   {single: true, args: join(required("path"), args("mode", "max_size", "keep", "max_age", "capture"))},
	"state":   {single: true, args: join(required("url"), args("key", "old_key", "fleet")), blocks: []string{"replica"}},
	"replica": {single: true, args: join(required("listen"), args("address"))},
	"report":  {single: true, args: join(required("url"), args("token", "labels", "every"))},
	"secret":  {labels: []string{"name"}, args: args("env", "file", "command", "reveal"), blocks: []string{"oauth"}},
	"oauth": {single: true, args: join(required("token_url", "client_id"),
		args("client_secret", "authorize_url", "redirect_url", "scopes", "audience", "params", "auth_style", "private_networks"))},
	"auth": {labels: []string{"kind", "name"}, args: authArgs()},
	"codeact": {single: true, args: args("tools", "max_calls", "max_parallel", "max_stdout", "search", "timeout", "ask_timeout", "labels"),
		blocks: []string{"limits"}, overrides: boundsOfCall},
	"console": {single: true, args: join(codeArg("allow", true), codeArg("operate", false), codeArg("impersonate", false))},
	"upstream": {labels: []string{"name"}, args: args("command", "dir", "env", "url", "transport", "private_networks",
		"prefix", "include", "exclude", "rename", "offer", "instructions", "escape", "ask", "max_rounds", "max_tokens",
		"timeout", "ask_timeout", "start_timeout", "max_message", "labels", "pin", "lazy"),
		blocks: []string{"header", "override", "limits", "container"}, overrides: boundsOfCall},
	"container": {single: true, args: join(required("image", "port"),
		args("path", "command", "env", "reads", "user", "internet", "health", "memory", "cpus", "writable")), blocks: []string{"volume"}},
	"volume": {labels: []string{"name"}, args: join(required("target"), args("host", "read_only", "size"))},
	"override": {labels: []string{"tool"}, args: args("title", "description", "read_only", "destructive", "idempotent", "open_world", "labels", "timeout"),
		blocks: []string{"limits", "cache"}, overrides: boundsOfCall},

	"resource": {labels: []string{"name"}, args: join(required("uri"), callArgs(),
		args("title", "description", "mime_type", "size", "text", "base64", "file"), codeArg("run", false)),
		blocks: []string{"allow", "limits", "annotations", "icon"}, overrides: boundsOfCall},
	"annotations": {single: true, args: args("audience", "priority")},
	"icon":        {args: join(required("src"), args("mime_type", "sizes", "theme"))},
	"resource_folder": {labels: []string{"name"}, args: join(required("root", "uri_prefix"),
		args("glob", "exclude", "mime_types", "max_file", "description", "labels")), blocks: []string{"annotations", "icon"}},
	"resource_template": {labels: []string{"name"}, args: join(required("uri_template"), callArgs(),
		args("title", "description", "mime_type", "text"), codeArg("run", false)),
		blocks: []string{"param", "complete", "allow", "limits", "annotations", "icon"}, overrides: boundsOfCall},
	"param":    {labels: []string{"name"}, args: args("description", "pattern")},
	"complete": {labels: []string{"name"}, args: completeArgs()},
	"prompt": {labels: []string{"name"}, args: join(callArgs(), args("title", "description"), codeArg("run", false)),
		blocks: []string{"argument", "message", "allow", "limits", "icon"}, overrides: boundsOfCall},
	"argument": {labels: []string{"name"}, args: args("title", "description", "required", "values"), blocks: []string{"complete"},
		overrides: map[string]*rule{"complete": {single: true, args: completeArgs()}}},
	"message": {labels: []string{"role"}, args: args("text", "file"), blocks: []string{"image", "audio", "resource", "link", "annotations"},
		overrides: map[string]*rule{"resource": {single: true, args: join(required("uri"), args("mime_type", "text", "base64", "file"))}}},
	"image": {single: true, args: args("file", "base64", "mime_type")},
	"audio": {single: true, args: args("file", "base64", "mime_type")},
	"link":  {single: true, args: join(required("uri", "name"), args("title", "description", "mime_type", "size"))},

	"tool": {labels: []string{"name"}, args: join(
		args("title", "description", "timeout", "idempotent", "read_only", "destructive", "open_world",
			"labels", "input_schema", "output_schema", "extra_arguments"),
		codeArg("run", true), args("ask_timeout", "task", "task_ttl", "ask_first"), codeArg("dry_run", false)),
		blocks: []string{"input", "output", "allow", "limits", "icon", "cache"}, overrides: boundsOfCall},
	"input":  {labels: []string{"name"}, args: join(schemaArgs(), args("header"), codeArg("from", false)), blocks: []string{"field"}},
	"output": {labels: []string{"name"}, args: schemaArgs(), blocks: []string{"field"}},
	"field":  {labels: []string{"name"}, args: schemaArgs(), blocks: []string{"field"}},
	"cache":  {single: true, args: join(required("ttl"), args("scope"))},

	"allow": {single: true, blocks: []string{"http", "fs", "exec", "sql", "kv", "ask", "call", "env", "module", "secrets"}},
	"http": {labels: []string{"name"}, args: join(required("hosts"),
		args("methods", "paths", "max_response", "redirects", "private_networks", "timeout")), blocks: []string{"header"}},
	"header": {labels: []string{"name"}, args: required("value")},
	"fs":     {labels: []string{"name"}, args: join(required("root"), args("mode", "max_file", "max_total"))},
	"exec": {labels: []string{"name"}, args: join(required("path"), args("argv", "env", "timeout", "max_output", "concurrency")), blocks: []string{"param"},
		overrides: map[string]*rule{"param": {labels: []string{"name"}, args: join(required("pattern"), args("max_length"))}}},
	"sql": {labels: []string{"name"}, args: join(required("driver"), args("dsn", "root", "glob", "mode", "max_rows")),
		blocks: []string{"statement"}},
	"statement": {labels: []string{"name"}, args: codeArg("query", true)},
	"kv":        {labels: []string{"name"}, args: args("scope", "ttl", "max_keys", "max_value", "max_total")},
	"ask":       {single: true, args: args("elicit", "sample", "roots", "max_rounds", "max_tokens")},
	"call":      {single: true, args: required("tools")},
	"env":       {single: true, args: required("names")},
	"module":    {labels: []string{"name"}, anyArgument: true},
	"secrets":   {single: true, args: required("names")},

	"policy": {labels: []string{"name"}, args: join(args("tools", "resources", "prompts", "on"),
		codeArg("when", false), codeArg("allow", false), codeArg("deny", false), codeArg("requires_approval", false),
		required("reason"), args("disclose"))},
	"limit": {labels: []string{"name"}, args: join(args("tools", "resources", "prompts"), codeArg("key", false),
		args("rate", "burst", "concurrency", "reason", "on_store_failure"))},
	"hook": {labels: []string{"name"}, args: join(required("on"), args("tools", "resources", "prompts", "timeout"), codeArg("run", true)),
		blocks: []string{"allow"}},

	"locals": {anyArgument: true},
	"test": {labels: []string{"name"}, args: join(args("tool", "resource", "prompt", "complete", "input", "vars", "principal", "agent", "source")),
		blocks: []string{"mock", "expect"}},
	"mock":   {labels: []string{"object", "request"}, args: args("status", "headers", "json", "text", "error")},
	"expect": {single: true, args: args("output", "text", "mime_type", "messages", "values", "error", "message_matches", "denied_by", "calls")},
})

func described(all map[string]*rule) map[string]*rule {
	for name, r := range all {
		r.what = article(name)
	}
	return all
}

// authKinds are the kinds of auth blocks; authRules define the content of each.
var (
	authKinds = []string{"api_key", "oidc", "mtls", "unix", "anonymous"}
	authRules = map[string]*rule{
		"api_key": {args: args("file")},
		"oidc": {args: join(required("issuer", "audience"),
			args("resource", "algorithms", "id", "scopes", "groups", "agent", "required_scopes", "implied_scopes", "skew"))},
		"mtls":      {args: args("allow", "agent")},
		"unix":      {args: args("uids", "gids")},
		"anonymous": {},
	}
)

// authArgs are the arguments of all kinds of auth blocks.
func authArgs() []argument {
	var all []argument
	for _, kind := range authKinds {
		for _, a := range authRules[kind].args {
			if !slices.ContainsFunc(all, func(b argument) bool { return a.name == b.name }) {
				all = append(all, argument{name: a.name})
			}
		}
	}
	return all
}

// callArgs are the arguments of [definition.Call].
func callArgs() []argument { return args("labels", "timeout", "ask_timeout") }

// article returns "a tool block", "an input block".
func article(block string) string {
	if strings.ContainsRune("aeio", rune(block[0])) || block == "http" || block == "fs" || block == "upstream" {
		return "an " + block + " block"
	}
	return "a " + block + " block"
}

// header returns how a block starts.
func header(block string, r *rule) string {
	for _, l := range r.labels {
		block += fmt.Sprintf(" %q", strings.ToUpper(l))
	}
	return block
}

// Grammar says what a file or a block may contain, for editors.
type Grammar struct{ rule *rule }

// GrammarArgument is an argument of a [Grammar].
type GrammarArgument struct {
	Name     string
	Required bool
	// Code reports text in another language, and Type a type such as list(string).
	Code, Type bool
}

// FileGrammar returns the grammar of a kind of file.
func FileGrammar(k Kind) Grammar { return Grammar{fileRules[k]} }

// Block returns the grammar of a nested block, and whether it is allowed. The labels matter for auth
// blocks, whose kind is a label.
func (g Grammar) Block(name string, labels ...string) (inner Grammar, ok bool) {
	if !g.HasBlock(name) {
		return Grammar{&rule{}}, false
	}
	if name == "auth" && len(labels) > 0 && authRules[labels[0]] != nil {
		return Grammar{authRules[labels[0]]}, true
	}
	return Grammar{g.rule.block(name)}, true
}

// HasBlock reports whether a block type is allowed.
func (g Grammar) HasBlock(name string) bool { return g.rule.hasBlock(name) }

// Blocks returns the allowed block types.
func (g Grammar) Blocks() []string { return slices.Clone(g.rule.blocks) }

// Labels returns what the labels of the block are, such as "name".
func (g Grammar) Labels() []string { return slices.Clone(g.rule.labels) }

// Single reports whether a block has at most one such block.
func (g Grammar) Single() bool { return g.rule.single }

// Arguments returns the allowed arguments.
func (g Grammar) Arguments() []GrammarArgument {
	all := make([]GrammarArgument, len(g.rule.args))
	for i, a := range g.rule.args {
		all[i] = GrammarArgument{a.name, a.required, a.form == code, a.form == typeName}
	}
	return all
}

// AuthKinds returns the kinds of auth blocks.
func AuthKinds() []string { return slices.Clone(authKinds) }
