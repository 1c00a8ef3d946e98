package hclfile

import (
	"fmt"
	"slices"
)

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
}

// rule says what a block of one type may hold.
type rule struct {
	// label says what the labels of the block are, such as "name"; none means
	// that it has no labels.
	labels []string
	// single: at most one such block stands beside its like.
	single bool
	// open: arguments of any name may stand in it.
	open   bool
	args   []argument
	blocks []string
	// own are the rules of blocks that differ here from their like elsewhere.
	own map[string]*rule
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

// block returns the rule of blocks of a type that stand in this one, or nil
// when there is no such type.
func (r *rule) block(name string) *rule {
	if own := r.own[name]; own != nil {
		return own
	}
	return rules[name]
}

// names returns what may stand in the block: arguments and blocks.
func (r *rule) names() []string { return append(r.argNames(), r.blockNames()...) }

func (r *rule) argNames() []string {
	names := make([]string, len(r.args))
	for i, a := range r.args {
		names[i] = a.name
	}
	return names
}

func (r *rule) blockNames() []string { return slices.Clone(r.blocks) }

// homes returns the types of the blocks within this one that hold an argument.
func (r *rule) homes(argument string) []string {
	var found []string
	for _, name := range r.blockNames() {
		if r.block(name).arg(argument) != nil {
			found = append(found, name)
		}
	}
	return found
}

// wayTo says in which block within this one an argument belongs, "" when there
// is no such block, or several. What is granted lies two blocks deep.
func (r *rule) wayTo(argument string) string {
	path := argument + " = …"
	inner := r.homes(argument)
	if len(inner) == 0 && slices.Contains(askNames, argument) && r.hasBlock("allow") {
		inner, path = []string{"allow"}, "ask { "+path+" }"
	}
	if len(inner) != 1 {
		return ""
	}
	return fmt.Sprintf("it belongs in %s: %s { %s }", article(inner[0]), header(inner[0], r.block(inner[0])), path)
}

// parents returns the types of the blocks that blocks of a type stand in,
// sorted, without those that give the type a meaning of their own.
func parents(block string) []string {
	var found []string
	for name, r := range rules {
		if r.hasBlock(block) && r.own[block] == nil {
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
