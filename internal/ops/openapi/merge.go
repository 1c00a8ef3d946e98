package openapi

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/mcpd/mcpd/internal/language/hclfile"
)

// Merged is a tool file after an import.
type Merged struct {
	Text string
	// Added, Updated, Removed and Kept are the blocks by what happened to them. Unchanged counts the others.
	Added, Updated, Removed []string
	Kept                    []Kept
	Unchanged               int
	// Noted counts the blocks that stay, and whose marker changes: it notes the difference that the
	// author has now seen, or that an edited block equals a new import.
	Noted int
}

// Kept is a block that was edited since its import, or the test of such a tool.
type Kept struct {
	Block string
	// OfEdited means that only the tool was edited, and this is its test.
	OfEdited bool
	// Old and New are the block in the file and a new import of it. New is empty if the operation is
	// gone.
	Old, New string
	// Changed means that the document changed too.
	Changed bool
	// Seen means that an earlier import showed this change.
	Seen bool
}

// Diff shows how a new import of the block differs from it.
func (k *Kept) Diff() string {
	return string(diff.Diff("your block", []byte(k.Old), "a new import", []byte(k.New)))
}

// Diff shows how a new import changes a file.
func Diff(name string, before, after []byte) string {
	return string(diff.Diff(name, before, name+" (new import)", after))
}

const heading = `# Imported by mcpd import openapi. You can edit these blocks: a later import updates only the
# blocks without an edit. To leave out a tool for good, delete its block and that of its test, but
# not the comments above them.
`

// marker is the comment above a generated block. Operations have no line ends and no spaces. sha256 is
// the digest of the block as it was written. seen is the digest of the last new import whose
// difference from an edited block was shown; any other value counts as not shown.
var (
	marker = regexp.MustCompile(`^# mcpd import: (tool|test) ([A-Z]+ /\S*) sha256=([0-9a-f]{16})(?: seen=(\S*))?$`)
	ofTool = regexp.MustCompile(`^tool "([A-Za-z0-9_.-]+)" \{`)
)

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

func marked(kind, key, text string) string {
	return fmt.Sprintf("# mcpd import: %s %s sha256=%s\n%s", kind, key, digest(text), text)
}

// part is a part of a file: a generated block, or other text.
type part struct {
	kind, key, digest string // empty for other text
	seen              string
	mark, text        string
}

// intact reports whether a generated block was not edited.
func (p *part) intact() bool { return digest(p.text) == p.digest }

// markSeen notes in the marker that the difference from a new import was shown. It reports whether the
// marker changes.
func (p *part) markSeen(text string) bool {
	before := p.mark
	line := strings.TrimRight(p.mark, "\r\n")
	p.seen = digest(text)
	p.mark = fmt.Sprintf("# mcpd import: %s %s sha256=%s seen=%s", p.kind, p.key, p.digest, p.seen) + p.mark[len(line):]
	return p.mark != before
}

// split splits a file into generated blocks and other text, which together are the file. A generated
// block has a marker above it. It ends with the line of its last brace, or before the next marker. A
// blank line below a marker means that the block was deleted. A file with a syntax error is other text.
func split(file string) (parts []part) {
	rest := 0 // start of the text that is in no part yet
	other := func(end int) {
		if rest < end {
			parts = append(parts, part{text: file[rest:end]})
		}
		rest = end
	}
	outline, ok := hclfile.OutlineOf([]byte(file))
	if !ok {
		outline = hclfile.Outline{}
	}
	var marks [][]string // the submatches of the markers, and where they start
	var starts []int
	for _, at := range outline.Comments {
		line, _, _ := strings.Cut(file[at:], "\n")
		if m := marker.FindStringSubmatch(strings.TrimRight(line, "\r")); m != nil && (at == 0 || file[at-1] == '\n') {
			marks, starts = append(marks, m), append(starts, at)
		}
	}
	definitions := outline.Definitions
	for i, m := range marks {
		other(starts[i])
		begin, end := afterLine(file, starts[i]), len(file)
		if i+1 < len(starts) {
			end = starts[i+1]
		}
		for len(definitions) > 0 && definitions[0].Start < begin {
			definitions = definitions[1:]
		}
		if len(definitions) > 0 && definitions[0].Start < end {
			end = afterLine(file, definitions[0].End)
		}
		if strings.TrimSpace(file[begin:afterLine(file, begin)]) == "" {
			end = begin
		}
		parts = append(parts, part{kind: m[1], key: m[2], digest: m[3], seen: m[4], mark: file[starts[i]:begin], text: file[begin:end]})
		rest = end
	}
	other(len(file))
	return parts
}

// afterLine returns the start of the line after an offset.
func afterLine(text string, at int) int {
	if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(text)
}

// EarlierTool is a tool of an earlier import.
type EarlierTool struct {
	Name string // "" if the author deleted the tool
	// Owned means that the author edited or deleted the tool or its test.
	Owned bool
}

// withLF returns a file with LF line ends, and whether all its line ends are CRLF.
func withLF(file string) (text string, isCRLF bool) {
	n := strings.Count(file, "\n")
	if n == 0 || n != strings.Count(file, "\r\n") {
		return file, false
	}
	return strings.ReplaceAll(file, "\r\n", "\n"), true
}

// Earlier returns the tools in an imported file, by operation. It returns nil if the file has no block
// of an import.
func Earlier(file string) map[string]EarlierTool {
	var tools map[string]EarlierTool
	file, _ = withLF(file)
	for _, p := range split(file) {
		if p.kind == "" {
			continue
		}
		if tools == nil {
			tools = map[string]EarlierTool{}
		}
		tool := tools[p.key]
		if m := ofTool.FindStringSubmatch(p.text); m != nil {
			tool.Name = m[1]
		}
		tool.Owned = tool.Owned || !p.intact()
		tools[p.key] = tool
	}
	return tools
}

// Merge puts generated blocks into the file of an earlier import; file is empty for the first one.
// Blocks of operations that the document still has, and that were not selected, stay. The line ends of
// the file stay, too, such as CRLF of a checkout on Windows, and are no edit.
func Merge(file string, g *Generated) Merged {
	m := merger{tools: map[string]Tool{}, seen: map[string]bool{}, all: g.All}
	for _, t := range g.Tools {
		m.tools[t.Key] = t
	}
	if file == "" {
		file = heading
	}
	file, isCRLF := withLF(file)
	parts := split(file)
	for i := range parts {
		m.edited(&parts[i])
	}
	for i := range parts {
		m.part(&parts[i])
	}
	for _, t := range g.Tools {
		for _, kind := range []string{"tool", "test"} {
			if text := t.block(kind); text != "" && !m.seen[kind+" "+t.Key] && !(kind == "test" && m.keptTools[t.Key]) {
				m.append(marked(kind, t.Key, text))
				m.out.Added = append(m.out.Added, kind+" "+t.Name)
			}
		}
	}
	m.out.Text = strings.TrimRight(m.text.String(), "\n") + "\n"
	if isCRLF {
		m.out.Text = strings.ReplaceAll(m.out.Text, "\n", "\r\n")
	}
	return m.out
}

func (t *Tool) block(kind string) string {
	if kind == "test" {
		return t.Test
	}
	return t.Text
}

type merger struct {
	text      strings.Builder
	tools     map[string]Tool
	all       map[string]bool
	seen      map[string]bool // by kind and operation
	keptTools map[string]bool // edited tools, whose tests stay too
	removed   bool            // the part before was removed
	out       Merged
}

// edited records the tools that were edited, and differ from a new import.
func (m *merger) edited(p *part) {
	t := m.tools[p.key]
	if p.kind == "tool" && !p.intact() && (p.text == "" || p.text != t.Text) {
		if m.keptTools == nil {
			m.keptTools = map[string]bool{}
		}
		m.keptTools[p.key] = true
	}
}

func (m *merger) append(block string) {
	if text := m.text.String(); text != "" && !strings.HasSuffix(text, "\n\n") {
		m.text.WriteString("\n")
	}
	m.text.WriteString(block)
}

func (m *merger) part(p *part) {
	if p.kind == "" {
		text := p.text
		if m.removed && strings.HasSuffix(m.text.String(), "\n\n") {
			text = strings.TrimPrefix(text, "\n")
		}
		m.removed = false
		m.text.WriteString(text)
		return
	}
	m.seen[p.kind+" "+p.key] = true
	t, generated := m.tools[p.key]
	text, name := t.block(p.kind), p.kind+" of "+p.key
	switch {
	case !generated && m.all[p.key], p.intact() && text == p.text:
		m.out.Unchanged++
	case p.text == "": // deleted by the author
	case text == p.text: // edited until it equals a new import
		m.text.WriteString(marked(p.kind, p.key, text))
		m.out.Unchanged++
		m.out.Noted++
		return
	case !p.intact() || m.keptTools[p.key]:
		m.keep(p, Kept{Block: name, OfEdited: p.intact(), Old: p.text, New: text, Changed: digest(text) != p.digest, Seen: digest(text) == p.seen})
	case text == "":
		m.out.Removed, m.removed = append(m.out.Removed, name), true
		return
	default:
		m.text.WriteString(marked(p.kind, p.key, text))
		m.out.Updated = append(m.out.Updated, name)
		return
	}
	m.text.WriteString(p.mark + p.text)
}

// keep keeps a block that was edited, or whose tool was.
func (m *merger) keep(p *part, k Kept) {
	if k.Changed || !p.intact() {
		m.out.Kept = append(m.out.Kept, k)
	}
	if k.Changed && k.New != "" && p.markSeen(k.New) {
		m.out.Noted++
	}
}
