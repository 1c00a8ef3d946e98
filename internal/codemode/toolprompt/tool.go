package toolprompt

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Tool is the description of a tool.
type Tool struct {
	// Name is the name for calls. It is unique in a list; later duplicates are ignored.
	Name string
	// Group and Member are an alias, GROUP.MEMBER; Group is the name of an upstream. Both may
	// be empty. A group is ignored if it equals a tool name in the list, or is not [Callable].
	Group, Member string
	// Bare is an alias, such as the name at the tool's own server; it may be empty. It is
	// ignored if another tool in the list has it, or if it is not [Callable].
	Bare string
	// Title and Description are for users and models. Either may be empty.
	Title, Description string
	// Input and Output are the JSON Schemas of the arguments object and of the result. Output
	// may be nil.
	Input, Output json.RawMessage
	// ReadOnly and Destructive are the MCP annotations, nil if not given.
	ReadOnly, Destructive *bool
	// Fits reports whether arguments match the schema. If nil, examples are only generated for
	// schemas with fully supported keywords.
	Fits func(arguments json.RawMessage) bool
}

// Call returns the expression of the tool's function, as in a list without name conflicts:
// crm.get_customer, search_web or tools["any-name"].
func (t Tool) Call() string {
	return newEntries([]Tool{t})[0].call(0)
}

// entry is a top-level declaration: a function, or an object with functions.
type entry struct {
	name string
	// members are the names of the functions, nil if the entry is a function.
	members []string
	tools   []*Tool
}

// call returns the expression of the function of a tool.
func (e *entry) call(i int) string {
	switch {
	case e.members == nil:
		return e.name
	case isIdentifier(e.members[i]):
		return e.name + "." + e.members[i]
	}
	return e.name + "[" + quote(e.members[i]) + "]"
}

func (e *entry) add(member string, t *Tool) {
	e.members = append(e.members, member)
	e.tools = append(e.tools, t)
}

// allTools is the object with every tool by its name.
const allTools = "tools"

// newEntries returns the top-level declarations for a list of tools, sorted by name.
func newEntries(tools []Tool) []*entry {
	sorted, named := sortByName(tools)
	entries := map[string]*entry{}
	object := func(name string) *entry {
		if entries[name] == nil {
			entries[name] = &entry{name: name, members: []string{}}
		}
		return entries[name]
	}
	type place struct{ group, member string }
	taken, bare := map[place]bool{}, map[string]int{}
	for _, t := range sorted {
		bare[t.Bare]++
		bare[t.Group]++ // a group cannot be a function, too
	}
	for _, t := range sorted {
		at := place{t.Group, t.Member}
		switch {
		case t.Member != "" && Callable(t.Group) && !named[t.Group] && !taken[at]:
			taken[at] = true
			object(t.Group).add(t.Member, t)
		case bare[t.Bare] == 1 && Callable(t.Bare) && !named[t.Bare]:
			entries[t.Bare] = &entry{name: t.Bare, tools: []*Tool{t}}
		case Callable(t.Name):
			entries[t.Name] = &entry{name: t.Name, tools: []*Tool{t}}
		default:
			object(allTools).add(t.Name, t)
		}
	}
	list := make([]*entry, 0, len(entries))
	for _, e := range entries {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b *entry) int { return strings.Compare(a.name, b.name) })
	return list
}

// sortByName returns the tools sorted by name without duplicates, and the set of names.
func sortByName(tools []Tool) (sorted []*Tool, named map[string]bool) {
	named = make(map[string]bool, len(tools))
	for i := range tools {
		if t := &tools[i]; !named[t.Name] {
			named[t.Name] = true
			sorted = append(sorted, t)
		}
	}
	slices.SortFunc(sorted, func(a, b *Tool) int { return strings.Compare(a.Name, b.Name) })
	return sorted, named
}

// The weights of [Tokens].
const (
	wordRun    = 6 // letters of a part of a word, such as Customer in getCustomer
	digitRun   = 3 // digits
	signRun    = 3 // consecutive symbols
	letterRun  = 2 // consecutive letters of other alphabets
	firstIdeog = 0x2E80
)

// Tokens estimates the number of tokens of a text. The estimate is deterministic, and does not
// use a tokenizer: for declarations, schemas, code and English prose it is within 10% of the
// vocabulary o200k_base.
//
// A part of a word counts one token for each six letters or fewer; words are split where an
// upper-case letter follows a lower-case one. Three digits are one token, as are three
// consecutive symbols, the last of which belongs to a following word, and two letters of
// non-Latin alphabets. Each character of a script without spaces is one. A space belongs to
// what follows it, and a line break to the symbols before it; each run of other white space is
// one.
func Tokens(text string) int {
	var c tokenCounter
	for _, r := range text {
		c.add(r)
	}
	c.endRun(blank)
	return c.tokens
}

type runeClass int

const (
	blank runeClass = iota
	small
	capital
	digit
	sign
	letter
	ideograph
)

func classOf(r rune) runeClass {
	switch {
	case 'a' <= r && r <= 'z':
		return small
	case 'A' <= r && r <= 'Z':
		return capital
	case '0' <= r && r <= '9':
		return digit
	case r == ' ' || r == '\n' || r == '\t' || r == '\r':
		return blank
	case r < utf8.RuneSelf:
		return sign
	case r >= firstIdeog || !unicode.IsLetter(r):
		return ideograph
	}
	return letter
}

// tokenCounter counts the tokens of a text, character by character.
type tokenCounter struct {
	tokens int
	// class is the class of the current run, and length its length.
	class  runeClass
	length int
	// previous is the class of the run before it, and first its first character.
	previous runeClass
	first    rune
}

func (c *tokenCounter) add(r rune) {
	next := classOf(r)
	if next != c.class && !(c.class == capital && next == small) {
		c.endRun(next)
		c.previous, c.length, c.first = c.class, 0, r
	}
	c.class = next
	c.length++
}

// endRun counts the current run, before one of class next.
func (c *tokenCounter) endRun(next runeClass) {
	switch c.class {
	case blank:
		spaces := c.length - 1
		if c.previous == sign && c.first == '\n' {
			spaces--
		}
		c.tokens += min(1, max(0, spaces))
	case small, capital:
		c.tokens += ceilDiv(c.length, wordRun)
	case digit:
		c.tokens += ceilDiv(c.length, digitRun)
	case sign:
		if next == small || next == capital {
			c.length--
		}
		c.tokens += ceilDiv(c.length, signRun)
	case letter:
		c.tokens += ceilDiv(c.length, letterRun)
	case ideograph:
		c.tokens += c.length
	}
}

func ceilDiv(length, of int) int { return (length + of - 1) / of }

// The limits of an example.
const (
	maxExamples = 2   // calls
	maxTried    = 32  // tools
	maxCall     = 200 // bytes
)

// exampleCalls returns calls with arguments that match the schemas, as the example of a prompt,
// or "". Read-only tools come first, destructive ones last, and within each those with
// arguments, in declaration order.
func exampleCalls(tools []Tool) string {
	type candidate struct {
		tool *Tool
		call string
	}
	var all []candidate
	taken := map[string]bool{}
	for _, e := range newEntries(tools) {
		taken[e.name] = true
		for i, t := range e.tools {
			all = append(all, candidate{t, e.call(i)})
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return a.tool.danger() - b.tool.danger() })
	var with, without []string
	for _, c := range all[:min(len(all), maxTried)] {
		if c.tool.danger() == dangerDestructive && len(with)+len(without) > 0 {
			break
		}
		arguments, ok := c.tool.sample()
		if call := fmt.Sprintf("await %s(%s);", c.call, arguments); !ok || len(call) > maxCall {
			continue
		} else if arguments == "{}" {
			without = append(without, call)
		} else if with = append(with, call); len(with) == maxExamples {
			break
		}
	}
	calls := append(with, without...)
	calls = calls[:min(len(calls), maxExamples)]
	if len(calls) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\nExample:\n")
	for _, variable := range []string{"results", "content", "first", "second"} {
		if len(calls) > 0 && !taken[variable] {
			fmt.Fprintf(&b, "const %s = %s\n", variable, calls[0])
			calls = calls[1:]
		}
	}
	return b.String()
}

const dangerDestructive = 2

func (t *Tool) danger() int {
	switch {
	case t.ReadOnly != nil && *t.ReadOnly:
		return 0
	case t.Destructive != nil && *t.Destructive:
		return dangerDestructive
	}
	return 1
}

// sample returns arguments as code, if matching ones were found.
func (t *Tool) sample() (code string, ok bool) {
	s := sampler{doc: newDocument(t.Input, promptLimits()), left: maxSampled}
	if s.doc.root.kind != objectKind {
		return "", false
	}
	v, ok := s.object(&s.doc.root, 0)
	if !ok || t.Fits == nil && s.uncertain || t.Fits != nil && !t.Fits(json.RawMessage(v.json)) {
		return "", false
	}
	return v.code, true
}
