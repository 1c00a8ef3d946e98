package scripting

import (
	"path"
	"sort"
	"strings"

	"github.com/dop251/goja/file"
	"github.com/dop251/goja/parser"

	"github.com/mcpd/mcpd/diag"
)

// mapComment is the line that makes the engine ask for a source map.
const mapComment = "\n//# sourceMappingURL=map"

// parserOption gives the engine the way back to the author's files, so that
// the stacks that a script sees name places in them.
func (o *origin) parserOption() parser.Option {
	if !o.lowered {
		return parser.WithDisableSourceMaps
	}
	data := o.encodeMap()
	return parser.WithSourceMapLoader(func(string) ([]byte, error) { return data, nil })
}

// encodeMap writes the mappings as the engine reads source maps: it counts
// columns of both sides from 1, not from 0 as the format does.
func (o *origin) encodeMap() []byte {
	var b strings.Builder
	starts := lineStarts(o.src)
	stones := make([]milestones, len(o.texts))
	for i, text := range o.texts {
		stones[i] = newMilestones(text)
	}
	line, last, first := 0, [4]int{}, true // generated column, source, line, column
	for _, m := range o.mappings {
		for line+1 < len(starts) && starts[line+1] <= m.at {
			b.WriteByte(';')
			line, last[0], first = line+1, 0, true
		}
		if !first {
			b.WriteByte(',')
		}
		first = false
		column := m.at - starts[line] + 1
		appendVLQ(&b, column-last[0])
		last[0] = column
		next := [4]int{column, len(o.texts), 0, 1}
		if m.text >= 0 {
			place := stones[m.text].pos(m.offset)
			next = [4]int{column, m.text, place.Line - 1, place.Column}
		}
		for i := 1; i < 4; i++ {
			appendVLQ(&b, next[i]-last[i])
		}
		last = next
	}
	return mustJSON(map[string]any{"version": 3, "sources": o.sources(), "names": []string{}, "mappings": b.String()})
}

// sources returns the names of the texts, relative to that of the compiled
// source, and one more for what no author wrote.
func (o *origin) sources() []string {
	names := make([]string, len(o.texts), len(o.texts)+1)
	for i, text := range o.texts {
		names[i] = relative(path.Dir(o.name), text.File())
	}
	return append(names, "native")
}

// relative returns the way from a folder to a file; both are relative to the same place.
func relative(folder, name string) string {
	if path.IsAbs(name) || folder == "." {
		return name
	}
	up := ""
	for folder != "." && folder != "/" && !strings.HasPrefix(name, folder+"/") {
		folder, up = path.Dir(folder), "../"+up
	}
	if folder == "." || folder == "/" {
		return up + name
	}
	return up + strings.TrimPrefix(name, folder+"/")
}

// milestones are places of a text at regular distances, so that the places in
// between need not be counted from the beginning of the text.
type milestones struct {
	text   diag.Text
	places []diag.Pos
}

// milestone is the distance, in bytes.
const milestone = 512

func newMilestones(text diag.Text) milestones {
	m := milestones{text: text}
	for at := 0; at <= len(text.Body())+milestone; at += milestone {
		m.places = append(m.places, text.Pos(at))
	}
	return m
}

// pos returns text.Pos(offset).
func (m milestones) pos(offset int) diag.Pos {
	body := m.text.Body()
	before := offset / milestone
	from, to := before*milestone, min((before+1)*milestone, len(body))
	// Only where the text stands in one piece may places be counted on. A
	// rune that the milestone splits is no such place either.
	if diag.Advance(m.places[before], body[from:to]) != m.places[before+1] {
		return m.text.Pos(offset)
	}
	return diag.Advance(m.places[before], body[from:offset])
}

// appendVLQ writes one number of a mapping.
func appendVLQ(b *strings.Builder, n int) {
	value := uint(n) << 1
	if n < 0 {
		value = uint(-n)<<1 | 1
	}
	for {
		digit := value & 31
		value >>= 5
		if value != 0 {
			digit |= 32
		}
		b.WriteByte(base64Digits[digit])
		if value == 0 {
			return
		}
	}
}

// located returns what the author wrote at a place as the engine tells it: of
// the compiled source, or already of the author's file.
func (o *origin) located(at file.Position) (place, bool) {
	if !o.lowered {
		if at.Filename != o.name {
			return place{}, false
		}
		text, from, ok := o.trace(o.offset(at.Line, at.Column))
		if !ok {
			return place{}, false
		}
		return callee(text, from), true
	}
	for i, source := range o.sources()[:len(o.texts)] {
		resolved := source
		if u := file.ResolveSourcemapURL(o.name, source); u != nil {
			resolved = u.String()
		}
		if resolved == at.Filename && at.Line > 0 {
			return callee(o.texts[i], offsetOf(o.texts[i], at.Line, at.Column)), true
		}
	}
	return place{}, false
}

// offsetOf returns the first offset of a text that stands at a place of its
// file, or behind it.
func offsetOf(text diag.Text, line, column int) int {
	return sort.Search(len(text.Body()), func(i int) bool {
		p := text.Pos(i)
		return p.Line > line || p.Line == line && p.Column >= column
	})
}
