package openapi

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// Merged is a tool file after an import.
type Merged struct {
	Text string
	// Added, Updated, Removed and Kept are the blocks by what happened to them. Unchanged counts the others.
	Added, Updated, Removed []string
	Kept                    []Kept
	Unchanged               int
}

// Kept is a block that was edited since its import.
type Kept struct {
	Block string
	// Old and New are the block in the file and a new import of it. New is empty if the operation is
	// gone.
	Old, New string
	// Changed means that the document changed too.
	Changed bool
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
# blocks without an edit. To leave out a block for good, delete it, but not the comment above it.
`

// marker is the comment above a generated block. Operations have no line ends and no spaces.
var (
	marker       = regexp.MustCompile(`^# mcpd import: (tool|test) ([A-Z]+ /\S*) sha256=([0-9a-f]{16})$`)
	heredocStart = regexp.MustCompile(`<<-?([A-Za-z_][A-Za-z0-9_]*)\s*$`)
	ofTool       = regexp.MustCompile(`^tool "([A-Za-z0-9_.-]+)" \{`)
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
	mark, text        string
}

// intact reports whether a generated block was not edited.
func (p *part) intact() bool { return digest(p.text) == p.digest }

// split splits a file into generated blocks and other text, which together are the file. A block
// ends with the first brace at the start of a line outside of a heredoc, or before the next marker.
func split(file string) (parts []part) {
	var tag string // of the heredoc that is open
	inside := false
	for line := range strings.Lines(file) {
		bare := strings.TrimRight(line, "\r\n")
		if tag == "" {
			if m := marker.FindStringSubmatch(bare); m != nil {
				parts = append(parts, part{kind: m[1], key: m[2], digest: m[3], mark: line})
				inside = true
				continue
			}
		}
		if !inside && (len(parts) == 0 || parts[len(parts)-1].kind != "") {
			parts = append(parts, part{})
		}
		last := &parts[len(parts)-1]
		if inside && last.text == "" && tag == "" && strings.TrimSpace(bare) == "" {
			inside = false // the block was deleted
			parts = append(parts, part{text: line})
			continue
		}
		last.text += line
		switch {
		case tag != "":
			if strings.TrimSpace(bare) == tag {
				tag = ""
			}
		case heredocStart.MatchString(bare):
			tag = heredocStart.FindStringSubmatch(bare)[1]
		case bare == "}":
			inside = false
		}
	}
	return parts
}

// Earlier returns the names of the tools in an imported file, by operation. It returns nil if the
// file has no block of an import.
func Earlier(file string) map[string]string {
	var names map[string]string
	for _, p := range split(file) {
		if p.kind == "" {
			continue
		}
		if names == nil {
			names = map[string]string{}
		}
		if m := ofTool.FindStringSubmatch(p.text); m != nil {
			names[p.key] = m[1]
		}
	}
	return names
}

// Merge puts generated blocks into the file of an earlier import; file is empty for the first one.
// Blocks of operations that the document still has, and that were not selected, stay.
func Merge(file string, g *Generated) Merged {
	m := merger{tools: map[string]Tool{}, seen: map[string]bool{}, all: g.All}
	for _, t := range g.Tools {
		m.tools[t.Key] = t
	}
	if file == "" {
		file = heading
	}
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
	out       Merged
}

// edited records the tools that were edited.
func (m *merger) edited(p *part) {
	if p.kind == "tool" && !p.intact() {
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
		m.text.WriteString(p.text)
		return
	}
	m.seen[p.kind+" "+p.key] = true
	t, generated := m.tools[p.key]
	text, name := t.block(p.kind), p.kind+" of "+p.key
	switch {
	case !generated && m.all[p.key], p.intact() && text == p.text:
		m.out.Unchanged++
	case p.text == "": // deleted by the author
	case !p.intact() || m.keptTools[p.key]:
		if changed := digest(text) != p.digest; changed || !p.intact() {
			m.out.Kept = append(m.out.Kept, Kept{Block: name, Old: p.text, New: text, Changed: changed})
		}
	case text == "":
		m.out.Removed = append(m.out.Removed, name)
		return
	default:
		m.text.WriteString(marked(p.kind, p.key, text))
		m.out.Updated = append(m.out.Updated, name)
		return
	}
	m.text.WriteString(p.mark + p.text)
}
