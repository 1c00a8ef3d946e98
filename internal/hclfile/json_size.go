package hclfile

import (
	"fmt"

	"github.com/mcpd/mcpd/diag"
)

// jsonSize is what a JSON file holds, in words: an item of an array is one, a
// member of an object [memberWords], and more where HCL's parser reads the text.
type jsonSize struct {
	// definition is for what stands since the last definition began at the
	// offset began.
	definition, began int
	definitions       int
	// exceeded says that the rest of the file is not read.
	exceeded bool
}

// define begins a definition at the top of the file.
func (p *jsonParser) define() {
	p.size.definition, p.size.began = 0, p.at
	if p.size.definitions++; p.size.definitions > maxDefinitions {
		p.exceed(fmt.Sprintf("the file holds more than %d definitions", maxDefinitions), "split it into several files")
	}
}

// spend counts words, and reports whether the definition may hold so many.
func (p *jsonParser) spend(words int) bool {
	if p.size.definition += words; p.size.definition > maxDefinition {
		p.exceed(fmt.Sprintf("the definition that begins here holds more than %d values", maxDefinition),
			fmt.Sprintf("split it, or put data into a file of its own, which a script imports; a member of an object counts as %d, a type or a template as more", memberWords))
	}
	return !p.size.exceeded
}

// exceed ends the reading of the file.
func (p *jsonParser) exceed(summary, detail string) {
	if p.size.exceeded {
		return
	}
	p.size.exceeded = true
	p.problems = diag.List{{Code: "too-large", Range: p.f.span(p.size.began, p.size.began+1), Summary: summary, Detail: detail}}
	p.at = len(p.src)
}
