package compiler

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/js/syntax"
	"github.com/mcpd/mcpd/scripting/source"
)

// IsCodeName reports whether agent code can reach a tool, or a group of tools, by name alone: the
// name must be an identifier of ASCII letters, not a reserved word, and not the name of a global.
// Tools with other names, or with the name of a group, are reached as members of tools.
func IsCodeName(name string) bool {
	return isIdentifier(name) && !syntax.IsReserved(name) && !restricted(name) && !slices.Contains(codeGlobals(), name) && !slices.Contains(builtins(), name)
}

func isIdentifier(name string) bool {
	if name == "" || name[0] >= '0' && name[0] <= '9' || name == bodyMarker {
		return false
	}
	return strings.IndexFunc(name, func(r rune) bool {
		return r != '_' && r != '$' && (r >= 0x80 || !syntax.IsAlnum(byte(r)))
	}) < 0
}

// restricted reports whether a name has a meaning in some contexts, for the language or for
// readers.
func restricted(name string) bool {
	switch name {
	case "async", "await", "eval", "implements", "interface", "let", "package", "private", "protected", "public",
		"require", "static", "yield":
		return true
	}
	return false
}

// ToolNames are the names by which agent code reaches its tools. They are immutable.
type ToolNames struct {
	// tools are the granted tools, in the order of the source.
	tools   []string
	granted map[string]bool
	// groups are the names of the groups. Members has the members of each: the name of the member,
	// and its tool.
	groups  []string
	Members map[string][]source.Member
	// Bare are the names by which tools can be called directly: their names, and the aliases of the
	// source. aliases maps aliases to tools.
	Bare    []string
	aliases map[string]string
	// allSpellings returns spellings, computed once.
	allSpellings func() []spelling
}

// noToolNames are the names of scripts that are not agent code.
var noToolNames = &ToolNames{allSpellings: func() []spelling { return nil }}

// newToolNames returns the names of a source; none unless it is agent code.
func newToolNames(s *source.Source) *ToolNames {
	if s.Kind != source.Code {
		return noToolNames
	}
	n := &ToolNames{granted: map[string]bool{}, Members: map[string][]source.Member{}, aliases: map[string]string{}}
	n.allSpellings = sync.OnceValue(n.spellings)
	for _, o := range s.Objects {
		if o.Kind == "tools" && !n.granted[o.Name] {
			n.granted[o.Name] = true
			n.tools = append(n.tools, o.Name)
		}
	}
	for _, m := range s.Members {
		if !n.granted[m.Tool] || !IsCodeName(m.Group) || m.Name == "" {
			continue
		}
		if n.Members[m.Group] == nil {
			n.groups = append(n.groups, m.Group)
		}
		n.Members[m.Group] = append(n.Members[m.Group], m)
	}
	for _, tool := range n.tools {
		if n.Members[tool] == nil && IsCodeName(tool) {
			n.Bare = append(n.Bare, tool)
		}
	}
	for _, m := range s.Members {
		if m.Group == "" && n.granted[m.Tool] && !n.granted[m.Name] && n.Members[m.Name] == nil && n.aliases[m.Name] == "" && IsCodeName(m.Name) {
			n.Bare, n.aliases[m.Name] = append(n.Bare, m.Name), m.Tool
		}
	}
	return n
}

// Tool returns the tool for a bare name.
func (n *ToolNames) Tool(bare string) string {
	if tool := n.aliases[bare]; tool != "" {
		return tool
	}
	return bare
}

// Of returns the tool that is a member of a group, or of tools; empty if there is none.
func (n *ToolNames) Of(group, member string) string {
	if group == "tools" {
		if n.granted[member] {
			return member
		}
		return ""
	}
	for _, m := range n.Members[group] {
		if m.Name == member {
			return m.Tool
		}
	}
	return ""
}

// In returns the names of the members of a group, or of tools.
func (n *ToolNames) In(group string) []string {
	if group == "tools" {
		return n.tools
	}
	var names []string
	for _, m := range n.Members[group] {
		if !slices.Contains(names, m.Name) {
			names = append(names, m.Name)
		}
	}
	return names
}

// spelling is a name that the author may write instead of a tool, and the correct text.
type spelling struct{ name, text string }

func (n *ToolNames) spellings() []spelling {
	var all []spelling
	short := map[string]bool{}
	for _, name := range slices.Concat(n.Bare, n.groups) {
		all = append(all, spelling{name, name})
		short[name] = true
	}
	for _, group := range n.groups {
		for _, m := range n.Members[group] {
			all = append(all, spelling{asIdentifier(m.Name), n.callExpr(group, m.Name)})
		}
	}
	for _, tool := range n.tools {
		if !short[tool] {
			all = append(all, spelling{asIdentifier(tool), n.callExpr("tools", tool)})
		}
	}
	return all
}

// asIdentifier replaces characters that an identifier cannot contain by _.
func asIdentifier(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || r == '$' || r < 0x80 && syntax.IsAlnum(byte(r)) {
			return r
		}
		return '_'
	}, name)
}

// callExpr returns the expression for a member of a group, or of tools.
func (n *ToolNames) callExpr(group, member string) string {
	if group != "tools" && isIdentifier(member) {
		return group + "." + member
	}
	return group + "[" + strconv.Quote(member) + "]"
}

// maxNamesakes limits the tools in one suggestion.
const maxNamesakes = 3

// suggestUnprefixed suggests tools with this name without their group, or with _ for other
// characters; empty if there is none.
func (n *ToolNames) suggestUnprefixed(name string) string {
	var written []string
	identifier := asIdentifier(name)
	for _, s := range n.allSpellings() {
		if s.name == identifier && s.text != name && len(written) < maxNamesakes {
			written = append(written, s.text)
		}
	}
	if len(written) == 0 {
		return ""
	}
	return "did you mean " + strings.Join(written, " or ") + "?"
}

// suggest suggests a tool with a similar name; empty if there is none.
func (n *ToolNames) suggest(name string) string {
	if own := n.suggestUnprefixed(name); own != "" {
		return own
	}
	all := n.allSpellings()
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = s.name
	}
	if i := slices.Index(names, diag.Suggest(name, names)); i >= 0 {
		return "did you mean " + all[i].text + "?"
	}
	return ""
}

// suggestHyphenated suggests a tool with a name at a position that is not an identifier, as in
// crm.get-customer(…), which is a subtraction; empty if there is none.
func (n *ToolNames) suggestHyphenated(text string, at int) string {
	part := func(r rune) bool {
		return r == '_' || r == '$' || r == '.' || r == '-' || r == '/' || r < 0x80 && syntax.IsAlnum(byte(r))
	}
	at = min(at, len(text))
	start := strings.LastIndexFunc(text[:at], func(r rune) bool { return !part(r) }) + 1
	end := strings.IndexFunc(text[at:], func(r rune) bool { return !part(r) })
	if end < 0 {
		end = len(text) - at
	}
	written := text[start : at+end]
	ask := func(group, member string) string {
		return "did you mean " + n.callExpr(group, member) + "? a name with characters other than letters, digits and _ needs brackets and quotes"
	}
	for _, group := range n.groups {
		for _, m := range n.Members[group] {
			if !isIdentifier(m.Name) && (written == m.Name || written == group+"."+m.Name || written == m.Tool) {
				return ask(group, m.Name)
			}
		}
	}
	for _, tool := range n.tools {
		if !isIdentifier(tool) && (written == tool || written == "tools."+tool) {
			return ask("tools", tool)
		}
	}
	return ""
}
