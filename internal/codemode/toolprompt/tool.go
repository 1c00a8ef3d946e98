package toolprompt

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Tool is what is told of a tool.
type Tool struct {
	// Name is what calls name. No two tools of a list share one: of those that
	// do, the first counts.
	Name string
	// Group and Member are another name, GROUP.MEMBER, in which Group is the name
	// of an upstream. Both are empty for tools that have none. A group that has the
	// name of a tool in the same list, or one that is not [Callable], is passed over.
	Group, Member string
	// Bare is another name, that of a function, such as what the tool's own server calls
	// it; empty where there is none. One that another tool of the list has, too, or that is
	// not [Callable], is passed over.
	Bare string
	// Title and Description are for people and models. Either may be empty.
	Title, Description string
	// Input and Output are JSON Schemas, of the one object of arguments and of the
	// result. A nil Output says nothing of the result.
	Input, Output json.RawMessage
	// ReadOnly and Destructive are the annotations of MCP, nil where nothing is said.
	ReadOnly, Destructive *bool
	// Fits reports whether arguments fit the schema. Nil knows only schemas whose keywords
	// are those that examples are made for.
	Fits func(arguments json.RawMessage) bool
}

// Call returns the expression that is the tool's function, as the declarations of
// a list have it in which no other tool takes its names: crm.get_customer,
// search_web or tools["any-name"].
func (t Tool) Call() string {
	return newEntries([]Tool{t})[0].call(0)
}

// entry is a declaration at the top: a function, or an object that has functions.
type entry struct {
	name string
	// members are the names of the functions, nil where the entry is one itself.
	members []string
	tools   []*Tool
}

// call returns the expression that is the function of a tool of the entry.
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

// allTools is the object that has every tool by its name.
const allTools = "tools"

// arrange returns the declarations at the top that a list of tools needs, and in
// each its tools, by their names in bytewise order.
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
		bare[t.Group]++ // which no function can be called
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

// byName returns the tools in the order of their names, each name once, and the
// set of names.
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
	wordRun    = 6 // letters of one part of a word, such as Customer in getCustomer
	digitRun   = 3 // digits
	signRun    = 3 // signs that stand together
	letterRun  = 2 // letters of other alphabets that stand together
	firstIdeog = 0x2E80
)

// Tokens estimates how many tokens a text is for a model. It is the same for a text
// everywhere, and no tokenizer's own count: of declarations, schemas, code and prose in
// English it is within a tenth of what the vocabulary o200k_base makes of them.
//
// A part of a word is one token for each six letters or less; words are split where
// a capital letter follows a small one. Three digits are one token, as are three
// signs that stand together, of which the last is part of the word behind them, and
// two letters of other alphabets than the Latin one. Each character of a script that
// does without spaces is one. A space is part of what follows it, and a line break of
// the signs before it; of other white space each run is one.
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

// counter counts the tokens of a text from its first character to its last.
type tokenCounter struct {
	tokens int
	// class is that of the run that is open, and length how long it is.
	class  runeClass
	length int
	// behind is the class of the run before it, and first its first character.
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

// end counts the run that is open, behind which one of a class begins.
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

// The bounds of an example.
const (
	maxExamples = 2   // calls
	maxTried    = 32  // tools
	maxCall     = 200 // bytes
)

// example returns calls of tools with arguments that fit their schemas, as the example of a
// prompt; "" where there are none. Tools that only read come first, those that destroy
// something last, and of each those that take arguments, in the order of the declarations.
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

// sample returns arguments of the tool as code, if there are any that fit.
func (t *Tool) sample() (code string, ok bool) {
	s := sampler{doc: newDocument(t.Input), left: maxSampled}
	if s.doc.root.kind != objectKind {
		return "", false
	}
	v, ok := s.object(&s.doc.root, 0)
	if !ok || t.Fits == nil && s.uncertain || t.Fits != nil && !t.Fits(json.RawMessage(v.json)) {
		return "", false
	}
	return v.code, true
}
