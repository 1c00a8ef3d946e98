package hclfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/mcpd/mcpd/internal/base/wildcard"
)

// targets decodes what a policy, a limit or a hook, whose rule is r, is about. One whose
// list is written wrong covers nothing: it was not meant to cover everything.
func (d *decoder) targets(body *hclsyntax.Body, r *rule) Targets {
	t := Targets{
		Tools:     d.names(body, "tools", patternCharacters),
		Resources: d.names(body, "resources", "write the name of a resource block, not its URI, with * for any run of characters"),
		Prompts:   d.names(body, "prompts", "use the characters A-Z a-z 0-9 _ . - and * for any run of them"),
	}
	if d.meant(body, r, "tools", "resources", "prompts") {
		for _, list := range []*[]Name{&t.Tools, &t.Resources, &t.Prompts} {
			if *list == nil {
				*list = []Name{}
			}
		}
	}
	return t
}

func (d *decoder) names(body *hclsyntax.Body, argument, characters string) []Name {
	return d.patterns(body, argument, patternTexts{
		wrong: "this is not the name of a " + strings.TrimSuffix(argument, "s"), characters: characters,
		empty: "the list of " + argument + " is empty", detail: fmt.Sprintf("name %s or patterns, or remove it: a block without lists covers everything", argument),
	})
}

func (d *decoder) toolPatterns(body *hclsyntax.Body, argument, characters string) []Name {
	return d.patterns(body, argument, patternTexts{
		wrong: "this is not the name of a tool", characters: characters,
		empty: fmt.Sprintf("the list %q is empty", argument), detail: "name tools or patterns of them, or remove it",
	})
}

// patternCharacters says what a name or a pattern of tools holds.
const patternCharacters = "use the characters A-Z a-z 0-9 _ . - / and * for any run of them"

// patternTexts say what is wrong with an item of a list, and with a list without items.
type patternTexts struct{ wrong, characters, empty, detail string }

// patterns decodes names and patterns, nil when the argument is absent.
func (d *decoder) patterns(body *hclsyntax.Body, argument string, texts patternTexts) []Name {
	attr := body.Attributes[argument]
	if attr == nil {
		return nil
	}
	list, ok := d.strings(body, argument)
	if ok && len(list) == 0 {
		d.fail("bad-value", d.f.rng(attr.Expr.Range()), texts.empty, texts.detail)
	}
	names := make([]Name, 0, len(list))
	for _, e := range list {
		if !isPattern(e.text) {
			d.fail("bad-name", d.f.rng(e.where), texts.wrong, texts.characters)
			continue
		}
		names = append(names, Name{Text: e.text, Range: d.f.rng(e.where)})
	}
	return names
}

// maxPatternName bounds a name with patterns and an upstream's prefix.
const maxPatternName = 2 * maxName

// isPattern reports whether s may be a tool's name, also one that an upstream
// gives, in which * matches any run of characters.
func isPattern(s string) bool {
	for i := range len(s) {
		if c := s[i]; c >= 0x80 || !isWord(c) && c != '.' && c != '-' && c != '/' && c != '*' {
			return false
		}
	}
	return s != "" && len(s) <= maxPatternName
}

// Matches reports whether the name, or the pattern in which * stands for any
// run of characters, fits a name.
func (n Name) Matches(name string) bool { return wildcard.Matches(n.Text, name) }

// Covers reports whether a list of names and patterns covers a name; a nil
// list covers all.
func Covers(names []Name, name string) bool {
	return names == nil || slices.ContainsFunc(names, func(n Name) bool { return n.Matches(name) })
}
