package toolprompt

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// The bounds of an example.
const (
	maxExamples = 2   // calls
	maxTried    = 32  // tools
	maxCall     = 200 // bytes
)

// example returns calls of tools with arguments that fit their schemas, as the example of a
// prompt; "" where there are none. Tools that only read come first, those that destroy
// something last, and of each those that take arguments, in the order of the declarations.
func example(tools []Tool) string {
	type candidate struct {
		tool *Tool
		call string
	}
	var all []candidate
	taken := map[string]bool{}
	for _, e := range arrange(tools) {
		taken[e.name] = true
		for i, t := range e.tools {
			all = append(all, candidate{t, e.call(i)})
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return a.tool.danger() - b.tool.danger() })
	var with, without []string
	for _, c := range all[:min(len(all), maxTried)] {
		if c.tool.danger() == destroys && len(with)+len(without) > 0 {
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

// destroys is the highest [Tool.danger].
const destroys = 2

// danger orders tools by what they may do.
func (t *Tool) danger() int {
	switch {
	case t.ReadOnly != nil && *t.ReadOnly:
		return 0
	case t.Destructive != nil && *t.Destructive:
		return destroys
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
	if !ok || t.Fits == nil && s.unsure || t.Fits != nil && !t.Fits(json.RawMessage(v.json)) {
		return "", false
	}
	return v.code, true
}
