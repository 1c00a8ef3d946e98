package lsp

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/creachadair/jrpc2"

	"github.com/mcpd/mcpd/internal/language/hclfile"
)

// Values of CompletionItemKind.
const (
	kindFunction = 3
	kindField    = 5
	kindVariable = 6
	kindModule   = 9
	kindProperty = 10
	kindValue    = 12
	kindKeyword  = 14
	kindFile     = 17
)

// snippetFormat is InsertTextFormat.Snippet.
const snippetFormat = 2

// maxItems bounds the items of one completion. The client asks again when the user types on.
const maxItems = 500

// completion answers with what may stand at a position.
func (s *session) completion(_ context.Context, r *jrpc2.Request) (any, error) {
	p, err := s.cursorAt(r)
	if err != nil || p == nil {
		return completionList{Items: []completionItem{}}, err
	}
	s.mu.Lock()
	snippets := s.client.Capabilities.TextDocument.Completion.CompletionItem.SnippetSupport
	s.mu.Unlock()
	c := &completer{cursor: p, snippets: snippets, seen: map[string]bool{}}
	c.complete()
	incomplete := len(c.items) > maxItems
	if incomplete {
		c.items = c.items[:maxItems]
	}
	return completionList{IsIncomplete: incomplete, Items: append([]completionItem{}, c.items...)}, nil
}

// completer collects the items at a cursor.
type completer struct {
	*cursor
	snippets bool
	items    []completionItem
	seen     map[string]bool
	// start and end are the range that an item replaces, and typed its text up to the cursor.
	start, end int
	typed      string
}

// replace sets the range that the items replace.
func (c *completer) replace(start, end int) {
	c.start, c.end = min(start, c.offset), max(end, c.offset)
	c.typed = strings.ToLower(c.text[c.start:c.offset])
}

// add adds an item that starts with the typed text. An item without an insertion inserts its label.
func (c *completer) add(item completionItem, insert, documentation string) {
	if c.seen[item.Label] || !strings.HasPrefix(strings.ToLower(strings.TrimPrefix(item.Label, `"`)), strings.TrimPrefix(c.typed, `"`)) {
		return
	}
	c.seen[item.Label] = true
	if insert == "" {
		insert = item.Label
	}
	if item.InsertTextFormat == snippetFormat && !c.snippets {
		item.InsertTextFormat, insert = 0, withoutStops(insert)
	}
	item.TextEdit = &textEdit{c.index.unit.span(c.text, c.start, c.end), insert}
	if documentation != "" {
		item.Documentation = &markup{"markdown", documentation}
	}
	c.items = append(c.items, item)
}

// withoutStops removes the tab stops of a snippet, and what follows the cursor on further lines.
func withoutStops(snippet string) string {
	text, _, _ := strings.Cut(snippet, "$0")
	for {
		before, rest, ok := strings.Cut(text, "${")
		if !ok {
			return text
		}
		stop, after, _ := strings.Cut(rest, "}")
		_, name, _ := strings.Cut(stop, ":")
		text = before + name + after
	}
}

func (c *completer) complete() {
	if b, number, ok := c.label(); ok {
		c.labels(b, number)
		return
	}
	switch c.language() {
	case javaScript, typeScript:
		c.members(c.scriptScope())
		return
	case cel:
		c.members(c.celScope())
		return
	case sql:
		return
	}
	if q, ok := c.quoted(); ok {
		c.replace(q.start, q.end)
		if expression, start, ok := template(q.text[:c.offset-q.start]); ok {
			c.replace(q.start+start, c.offset)
			c.expression(expression)
			return
		}
		c.values(false)
		return
	}
	if c.inValue {
		if c.keys() {
			return
		}
		names, start := chain(c.text, c.offset, false)
		c.replace(start, c.offset)
		if len(names) > 1 || c.names() == "" {
			c.expression(strings.Join(names, "."))
		}
		if len(names) == 1 {
			c.values(true)
		}
		return
	}
	if start, end := wordRange(c.text, c.offset); c.startsName(start) {
		c.replace(start, end)
		c.blockContent()
	}
}

// startsName reports whether a name that starts at an offset is the first one of a block or line.
func (c *completer) startsName(start int) bool {
	before := strings.TrimRight(c.text[:start], " \t")
	return before == "" || strings.HasSuffix(before, "\n") || strings.HasSuffix(before, "{")
}

// template returns the expression in an open template at the end of a string, and where its last
// name starts.
func template(text string) (expression string, start int, ok bool) {
	open := max(strings.LastIndex(text, "${"), strings.LastIndex(text, "%{"))
	if open < 0 || strings.Contains(text[open:], "}") {
		return "", 0, false
	}
	names, start := chain(text, len(text), false)
	return strings.Join(names, "."), max(start, open+2), true
}

// blockContent adds the arguments and blocks that the block at the cursor may still have.
func (c *completer) blockContent() {
	b := c.block
	for _, a := range b.grammar.Arguments() {
		if own := b.argument(a.Name); own != nil && own != c.arg {
			continue
		}
		detail := ""
		if a.Required {
			detail = "required"
		}
		e := describe(b, a.Name)
		c.add(completionItem{Label: a.Name, Kind: kindProperty, Detail: detail, SortText: "1" + a.Name, InsertTextFormat: snippetFormat},
			a.Name+" = "+snippet(b, a), e.markdown(a.Name))
	}
	for _, kind := range b.grammar.Blocks() {
		inner, _ := b.grammar.Block(kind)
		present := slices.ContainsFunc(b.blocks, func(other *block) bool {
			return other.kind == kind && (c.offset < other.kindStart || c.offset > other.end)
		})
		if inner.Single() && present {
			continue
		}
		c.add(completionItem{Label: kind, Kind: kindModule, Detail: "block", SortText: "2" + kind, InsertTextFormat: snippetFormat},
			blockSnippet(kind, inner), describeInner(b, kind).markdown(kind))
	}
}

func blockSnippet(kind string, g hclfile.Grammar) string {
	var s strings.Builder
	s.WriteString(kind)
	for i, l := range g.Labels() {
		fmt.Fprintf(&s, " \"${%d:%s}\"", i+1, l)
	}
	s.WriteString(" {\n  $0\n}")
	return s.String()
}

// labels adds the possible labels of a block.
func (c *completer) labels(b *block, number int) {
	l := b.labels[number]
	c.replace(l.start, l.end)
	switch {
	case b.kind == "auth" && number == 0:
		for _, kind := range hclfile.AuthKinds() {
			c.add(completionItem{Label: kind, Kind: kindValue}, "", "")
		}
	case b.kind == "message":
		for _, role := range []string{"user", "assistant"} {
			c.add(completionItem{Label: role, Kind: kindValue}, "", "")
		}
	case b.kind == "mock" && number == 0:
		for _, tool := range c.tested() {
			for _, g := range (&cursor{source: tool.source, owner: tool.source, index: c.index, block: tool.block}).grants() {
				object := g.block.kind
				if g.name() != "" {
					object += "." + g.name()
				} else if object == "call" {
					object = "tools"
				}
				c.add(completionItem{Label: object, Kind: kindValue, Detail: "grant of " + tool.name()}, "", "")
			}
		}
	}
}

// values adds the values of the argument at the cursor. With quotes, the items have quotes.
func (c *completer) values(quotes bool) {
	wrap := func(text string) string {
		if quotes {
			return `"` + text + `"`
		}
		return text
	}
	if kind := c.names(); kind != "" {
		kinds := []string{kind}
		if kind == "resource" {
			kinds = []string{"resource", "resource_folder", "resource_template"}
		}
		for _, d := range c.index.declarations(kinds...) {
			if name := d.name(); name != "" {
				c.add(completionItem{Label: wrap(name), Kind: kindValue, Detail: d.block.kind}, "", prose(d))
			}
		}
		return
	}
	if c.block.kind == "test" && c.arg.name == "complete" {
		for _, d := range c.tested() {
			for _, f := range inputsOf(d) {
				c.add(completionItem{Label: wrap(f.name()), Kind: kindValue}, "", prose(f.declared))
			}
		}
		return
	}
	if quotes && c.arg.name == "type" {
		for _, name := range typeNames {
			c.add(completionItem{Label: name, Kind: kindKeyword}, "", "")
		}
		return
	}
	for _, value := range describe(c.block, c.arg.name).values() {
		if !quotes {
			text := strings.Trim(value, `"`)
			if text == value {
				continue // true and false are no strings
			}
			value = text
		}
		c.add(completionItem{Label: value, Kind: kindValue}, "", "")
	}
}

// expression adds the names of an HCL expression, such as var.stage.
func (c *completer) expression(typed string) {
	root, _, member := strings.Cut(typed, ".")
	if !member {
		for _, r := range []expressionRoot{{"var", "variable"}, {"local", "locals"}, {"secret", "secret"}} {
			if len(c.index.declarations(r.kind)) > 0 {
				c.add(completionItem{Label: r.root, Kind: kindVariable, SortText: "3" + r.root}, "", "")
			}
		}
		return
	}
	switch root {
	case "var", "secret":
		kind := map[string]string{"var": "variable", "secret": "secret"}[root]
		for _, d := range c.index.declarations(kind) {
			c.add(completionItem{Label: d.name(), Kind: kindVariable, Detail: kind}, "", prose(d))
		}
	case "local":
		for _, d := range c.index.declarations("locals") {
			for _, a := range d.arguments {
				c.add(completionItem{Label: a.name, Kind: kindVariable}, "", "")
			}
		}
	}
}

// expressionRoot is a root of HCL expressions with the blocks that define its members.
type expressionRoot struct{ root, kind string }

// keys adds the names of inputs in input = { … } of a test, and of outputs in output = { … }. It
// reports whether the cursor is in such an object.
func (c *completer) keys() bool {
	isInput := c.block.kind == "test" && c.arg.name == "input"
	isOutput := c.block.kind == "expect" && c.arg.name == "output"
	if !isInput && !isOutput {
		return false
	}
	start, end := wordRange(c.text, c.offset)
	before := strings.TrimRight(c.text[c.arg.value:max(c.arg.value, start)], " \t\n\r")
	if !strings.HasSuffix(before, "{") && !strings.HasSuffix(before, ",") && strings.TrimRight(c.text[:start], " \t") == strings.TrimRight(c.text[:start], " \t\n\r") {
		return false
	}
	c.replace(start, end)
	for _, d := range c.tested() {
		for _, inner := range d.block.blocks {
			if isInput && (inner.kind == "input" || inner.kind == "argument") || isOutput && inner.kind == "output" {
				c.add(completionItem{Label: inner.name(), Kind: kindField, InsertTextFormat: snippetFormat}, inner.name()+" = $0", prose(declared{d.source, inner}))
			}
		}
	}
	return true
}

// members adds what may follow in code: the globals of a scope, or the members of an object.
func (c *completer) members(scope scope) {
	names, start := chain(c.text, c.offset, false)
	c.replace(start, c.offset)
	for _, item := range scope.members(names[:len(names)-1]) {
		kind := kindVariable
		switch {
		case strings.HasPrefix(item.typ, "("):
			kind = kindFunction
		case len(names) > 1:
			kind = kindField
		}
		detail := item.typ
		if kind == kindFunction {
			detail = item.name + item.typ
		}
		c.add(completionItem{Label: item.name, Kind: kind, Detail: detail}, "", item.text)
	}
}
