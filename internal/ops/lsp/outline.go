package lsp

import (
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/mcpd/mcpd/internal/language/hclfile"
)

// outline is the structure of an HCL file: its blocks and arguments with their offsets. Unlike the
// parser of package hclfile, it accepts any text, because a file that is being typed has syntax
// errors. It evaluates nothing.
type outline struct {
	root *block
	ends func() lineStarts
}

// lineStarts are the offsets of the lines that may end a heredoc, by their text without blanks.
type lineStarts map[string][]int

// heredocEnds returns the lines of a text that are one word.
func heredocEnds(text string) lineStarts {
	found, at := lineStarts{}, 0
	for line := range strings.Lines(text) {
		word := strings.TrimSpace(line)
		if word != "" && strings.IndexFunc(word, func(r rune) bool { return r < utf8.RuneSelf && !isWordByte(byte(r)) }) < 0 {
			found[word] = append(found[word], at)
		}
		at += len(line)
	}
	return found
}

// after returns the first line with a text that starts after an offset.
func (l lineStarts) after(text string, offset int) (start int, ok bool) {
	starts := l[text]
	i, _ := slices.BinarySearch(starts, offset+1)
	if i == len(starts) {
		return 0, false
	}
	return starts[i], true
}

// block is a block, or the whole file. Offsets are in bytes, and ends are exclusive.
type block struct {
	kind          string
	kindStart     int
	labels        []label
	body, bodyEnd int // the inside of the braces
	end           int
	grammar       hclfile.Grammar
	allowed       bool // by the grammar of the outer block
	arguments     []argument
	blocks        []*block
	outer         *block
}

// label is a label of a block, without its quotes.
type label struct {
	text       string
	start, end int
}

// argument is a name, and its value if there is one.
type argument struct {
	name            string
	start, nameEnd  int
	value, valueEnd int // equal without a value
	hasEqual        bool
}

// maxOutlineDepth bounds the nested blocks. Deeper ones are read as part of their outer block.
const maxOutlineDepth = 64

// name returns the first label, or "".
func (b *block) name() string {
	if len(b.labels) == 0 {
		return ""
	}
	return b.labels[0].text
}

// title returns the labels, or the kind of a block without labels.
func (b *block) title() string {
	texts := make([]string, len(b.labels))
	for i, l := range b.labels {
		texts[i] = l.text
	}
	if title := strings.TrimSpace(strings.Join(texts, " ")); title != "" {
		return title
	}
	return b.kind
}

// inside returns the innermost block whose body has an offset.
func (b *block) inside(offset int) *block {
	for {
		var deeper *block
		for _, inner := range b.blocks {
			if inner.body <= offset && offset <= inner.bodyEnd {
				deeper = inner
			}
		}
		if deeper == nil {
			return b
		}
		b = deeper
	}
}

// argumentAt returns the argument whose value, or whose line up to the value, has an offset.
func (b *block) argumentAt(offset int) *argument {
	for i := range b.arguments {
		if a := &b.arguments[i]; a.start <= offset && offset <= a.valueEnd {
			return a
		}
	}
	return nil
}

// argument returns the argument with a name, or nil.
func (b *block) argument(name string) *argument {
	for i := range b.arguments {
		if b.arguments[i].name == name {
			return &b.arguments[i]
		}
	}
	return nil
}

// enclosing returns the block itself or the nearest outer block of a kind, or nil.
func (b *block) enclosing(kind string) *block {
	for ; b != nil; b = b.outer {
		if b.kind == kind {
			return b
		}
	}
	return nil
}

// each calls visit for all blocks below b.
func (b *block) each(visit func(*block)) {
	for _, inner := range b.blocks {
		visit(inner)
		inner.each(visit)
	}
}

// outlineOf returns the outline of a text.
func outlineOf(text string, kind hclfile.Kind) *outline {
	ends := sync.OnceValue(func() lineStarts { return heredocEnds(text) })
	o := &outliner{text: text, top: hclfile.FileGrammar(kind), ends: ends}
	root := &block{bodyEnd: len(text), end: len(text), grammar: o.top, allowed: true}
	o.at, o.stack = 0, []*block{root}
	for o.at < len(text) {
		o.step()
	}
	o.close(1, len(text))
	return &outline{root, ends}
}

// outliner reads a text once, from the start to the end.
type outliner struct {
	text  string
	at    int
	top   hclfile.Grammar
	stack []*block
	ends  func() lineStarts
	// headless is an offset before which no labels lead to a brace.
	headless int
}

func (o *outliner) current() *block { return o.stack[len(o.stack)-1] }

// close ends the open blocks above a depth.
func (o *outliner) close(depth, at int) {
	for _, b := range o.stack[depth:] {
		b.bodyEnd, b.end = at, at
	}
	o.stack = o.stack[:depth]
}

// step reads one argument, the head of a block, or the end of one.
func (o *outliner) step() {
	switch c := o.text[o.at]; {
	case o.skipComment():
	case c == '}':
		if len(o.stack) > 1 {
			b := o.current()
			b.bodyEnd, b.end = o.at, o.at+1
			o.stack = o.stack[:len(o.stack)-1]
		}
		o.at++
	case isWordStart(c):
		o.word()
	case c == '"':
		o.at = o.stringEnd(o.at)
	default:
		o.at++
	}
}

// word reads an argument or the head of a block.
func (o *outliner) word() {
	start := o.at
	for o.at < len(o.text) && isWordByte(o.text[o.at]) {
		o.at++
	}
	word := o.text[start:o.at]
	if len(o.stack) > 1 && o.startsTop(start) {
		o.close(1, start) // a closing brace is missing
	}
	next := o.skipBlanks(o.at)
	if strings.HasPrefix(o.text[next:], "=") && !strings.HasPrefix(o.text[next:], "==") {
		value := o.skipBlanks(next + 1)
		end := o.valueEnd(value)
		o.add(argument{word, start, start + len(word), value, end, true})
		o.at = max(end, value)
		return
	}
	labels, open := o.labels(next)
	if open < 0 || len(o.stack) > maxOutlineDepth {
		end := start + len(word)
		o.add(argument{word, start, end, end, end, false})
		o.at = max(end, o.at)
		if open >= 0 {
			o.at = open + 1
		}
		return
	}
	outer := o.current()
	b := &block{kind: word, kindStart: start, labels: labels, body: open + 1, bodyEnd: len(o.text), end: len(o.text), outer: outer}
	texts := make([]string, len(labels))
	for i, l := range labels {
		texts[i] = l.text
	}
	b.grammar, b.allowed = outer.grammar.Block(word, texts...)
	outer.blocks = append(outer.blocks, b)
	o.stack = append(o.stack, b)
	o.at = open + 1
}

func (o *outliner) add(a argument) {
	b := o.current()
	b.arguments = append(b.arguments, a)
}

// labels reads labels up to an opening brace on the same line. open is the offset of the brace, or -1.
func (o *outliner) labels(at int) (labels []label, open int) {
	if at < o.headless {
		return nil, -1
	}
	for at < len(o.text) {
		switch c := o.text[at]; {
		case c == '{':
			return labels, at
		case c == '"':
			end := o.stringEnd(at)
			labels = append(labels, label{strings.Trim(o.text[at:end], `"`), at + 1, max(at+1, end-1)})
			at = end
		case isWordStart(c):
			end := at
			for end < len(o.text) && isWordByte(o.text[end]) {
				end++
			}
			labels = append(labels, label{o.text[at:end], at, end})
			at = end
		default:
			o.headless = at
			return nil, -1
		}
		at = o.skipBlanks(at)
	}
	o.headless = at
	return nil, -1
}

// startsTop reports whether a top-level block starts at an offset: the first word of a line without
// indent, followed by a label or a brace, that only a file may contain.
func (o *outliner) startsTop(at int) bool {
	if at > 0 && o.text[at-1] != '\n' {
		return false
	}
	end := at
	for end < len(o.text) && isWordByte(o.text[end]) {
		end++
	}
	if !o.top.HasBlock(o.text[at:end]) {
		return false
	}
	next := o.skipBlanks(end)
	return next < len(o.text) && (o.text[next] == '"' || o.text[next] == '{')
}

// valueEnd returns the end of the value that starts at an offset: the end of its line, unless a
// bracket, a string or a heredoc is open.
func (o *outliner) valueEnd(at int) int {
	depth, end := 0, at
	for at < len(o.text) {
		switch c := o.text[at]; c {
		case '\n':
			if depth <= 0 || o.startsTop(at+1) {
				return end
			}
			at++
		case '"':
			at = o.stringEnd(at)
			end = at
		case '[', '(', '{':
			depth++
			at++
			end = at
		case ']', ')', '}':
			if depth == 0 {
				return end
			}
			depth--
			at++
			end = at
		case '<':
			if stop, ok := o.heredocEnd(at); ok {
				at, end = stop, stop
				if o.startsTop(at) {
					return end // the end of the heredoc is missing
				}
				continue
			}
			at++
			end = at
		case '#', '/':
			from := o.at
			o.at = at
			skipped := o.skipComment()
			at, o.at = o.at, from
			if !skipped {
				at++
				end = at
			}
		case ' ', '\t', '\r':
			at++
		default:
			at++
			end = at
		}
	}
	return end
}

// heredocEnd returns the end of the heredoc that starts at an offset.
func (o *outliner) heredocEnd(at int) (end int, ok bool) {
	rest, ok := strings.CutPrefix(o.text[at:], "<<")
	if !ok {
		return 0, false
	}
	rest = strings.TrimPrefix(rest, "-")
	n := 0
	for n < len(rest) && isWordByte(rest[n]) {
		n++
	}
	line, _, _ := strings.Cut(rest, "\n")
	if n == 0 || strings.TrimSpace(line[n:]) != "" {
		return 0, false
	}
	if start, ok := o.ends().after(rest[:n], at); ok {
		line, _, _ := strings.Cut(o.text[start:], "\n")
		return start + len(strings.TrimRight(line, " \t\r")), true
	}
	for { // the end is missing
		i := strings.IndexByte(o.text[at:], '\n')
		if i < 0 {
			return len(o.text), true
		}
		if at += i + 1; o.startsTop(at) {
			return at, true
		}
	}
}

// stringEnd returns the offset after the string that starts at an offset. A string ends with its line
// at the latest, and a template in it may contain strings.
func (o *outliner) stringEnd(at int) int {
	braces := 0
	inString := true
	for at++; at < len(o.text); at++ {
		switch c := o.text[at]; {
		case c == '\n':
			return at
		case c == '\\' && inString:
			at++
		case inString && (c == '$' || c == '%') && strings.HasPrefix(o.text[at+1:], "{"):
			braces++
			inString = false
			at++
		case !inString && c == '{':
			braces++
		case !inString && c == '}':
			if braces--; braces == 0 {
				inString = true
			}
		case inString && c == '"':
			return at + 1
		case c == '"': // a string in a template, without templates of its own
			i := strings.IndexAny(o.text[at+1:], "\"\n")
			if i < 0 {
				return len(o.text)
			}
			at += i
			if o.text[at+1] == '"' {
				at++
			}
		}
	}
	return min(at, len(o.text))
}

// skipBlanks returns the offset of the next byte that is no blank on the line.
func (o *outliner) skipBlanks(at int) int {
	for at < len(o.text) && (o.text[at] == ' ' || o.text[at] == '\t') {
		at++
	}
	return at
}

// skipComment moves behind the comment at the current offset, if there is one.
func (o *outliner) skipComment() bool {
	rest := o.text[o.at:]
	end := "\n"
	switch {
	case strings.HasPrefix(rest, "/*"):
		end = "*/"
	case !strings.HasPrefix(rest, "#") && !strings.HasPrefix(rest, "//"):
		return false
	}
	i := strings.Index(rest, end)
	switch {
	case i < 0:
		o.at = len(o.text)
	case end == "\n":
		o.at += i // the line end also ends a value
	default:
		o.at += i + len(end)
	}
	return true
}

func isWordStart(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= utf8.RuneSelf
}

func isWordByte(c byte) bool { return isWordStart(c) || c >= '0' && c <= '9' || c == '-' }
