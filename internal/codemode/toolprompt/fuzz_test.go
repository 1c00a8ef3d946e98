package toolprompt

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// topLine matches the lines that start, end or document a declaration.
var topLine = regexp.MustCompile(`^(?:|/\*\*(?: .* \*/)?| \* .*| \*/|type [A-Z]\w* = .*|declare (?:function [A-Za-z_$][\w$]*\(args|const [A-Za-z_$][\w$]*: \{).*|\}.*)$`)

// bare returns declarations without comments and string contents.
func bare(text string) string {
	var b strings.Builder
	for text != "" {
		switch comment, quoted := strings.HasPrefix(text, "/*"), text[0] == '"'; {
		case comment:
			_, text, _ = strings.Cut(text, "*/")
		case quoted:
			text = text[len(literal.FindString(text)):]
		default:
			b.WriteByte(text[0])
			text = text[1:]
		}
	}
	return b.String()
}

var literal = regexp.MustCompile(`^"(?:[^"\\\n]|\\[^\n])*"?`)

// bareText matches bare declarations.
var bareText = regexp.MustCompile(`^[\w$"{}()\[\]<>:;?=|&.,+ \n-]*$`)

// injected returns the text in declarations of n tools that this package did not write.
func injected(text string, n int) string {
	for _, r := range text {
		if r != '\n' && (!isVisible(r) || unicode.In(r, unicode.Bidi_Control, unicode.Cc)) {
			return "an unseen character"
		}
	}
	if !utf8.ValidString(text) || strings.Contains(text, fence) {
		return "the end of the code"
	}
	declared := 0
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if strings.HasPrefix(line, "declare ") {
			declared++
		}
		if !strings.HasPrefix(line, "  ") && !topLine.MatchString(line) {
			return "the line " + line
		}
	}
	if declared != n {
		return "a declaration"
	}
	if !bareText.MatchString(bare(text)) {
		return "code"
	}
	return ""
}

func FuzzDeclare(f *testing.F) {
	for _, tool := range smallCatalog() {
		f.Add(tool.Name, tool.Group, tool.Member, tool.Title, tool.Description, []byte(tool.Input), []byte(tool.Output))
	}
	for _, tool := range hostileCatalog() {
		f.Add(tool.Name, tool.Group, tool.Member, tool.Title, tool.Description, []byte(tool.Input), []byte(tool.Output))
	}
	f.Fuzz(func(t *testing.T, name, group, member, title, description string, input, output []byte) {
		if len(name) > 1000 || len(member) > 1000 {
			t.Skip("names are bounded where tools come from")
		}
		tool := Tool{Name: name, Group: group, Member: member, Title: title, Description: description, Input: input, Output: json.RawMessage(output), ReadOnly: truth(len(input)%2 == 0)}
		for d := Full; d < NamesOnly; d++ {
			holdDeclaration(t, tool, d)
		}
		_ = NewIndex([]Tool{tool}).Search(name+description, 1, nil)
	})
}

// tooMuch matches compiler limits, which declarations of random schemas may exceed.
var tooMuch = regexp.MustCompile(`too (?:many|deep|long|large)|nest|type arguments`)
