package lsp

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/creachadair/jrpc2"
)

// Commands of the code lenses. The client runs them: the server runs nothing.
const (
	runTests = "mcpd.runTests"
	tryTool  = "mcpd.tryTool"
)

// runTestsArguments are the arguments of the command that runs mcpd test --run PATTERN.
type runTestsArguments struct {
	Pattern string `json:"pattern"` // an RE2 expression
}

// tryToolArguments are the arguments of the command that runs mcpd call NAME.
type tryToolArguments struct {
	Name string `json:"name"`
	// Inputs are the inputs of the tool.
	Inputs []toolInput `json:"inputs"`
}

type toolInput struct {
	Name     string `json:"name"`
	Type     string `json:"type"` // as in the file, such as list(string)
	Required bool   `json:"required"`
}

// codeLenses answers with a lens for each test, and lenses to try a tool and to run its tests.
func (s *session) codeLenses(_ context.Context, r *jrpc2.Request) (any, error) {
	var params documentParams
	if err := r.UnmarshalParams(&params); err != nil {
		return nil, err
	}
	d, unit, err := s.open(params.TextDocument.URI)
	if err != nil {
		return nil, err
	}
	lenses := []codeLens{}
	if !strings.HasSuffix(d.path, ".hcl") {
		return lenses, nil
	}
	x := s.index()
	tests := map[string]int{} // of each tool
	for _, t := range x.declarations("test") {
		tests[t.source.literal(t.block, "tool")]++
	}
	for _, b := range x.declarations("tool", "test") {
		name := b.name()
		if b.source.document != d || name == "" {
			continue
		}
		start, end := b.block.nameRange()
		add := func(title, name string, arguments any) {
			lenses = append(lenses, codeLens{b.source.span(unit, start, end), command{title, name, []any{arguments}}})
		}
		if b.block.kind == "test" {
			add("Run test", runTests, runTestsArguments{exactly(name)})
			continue
		}
		add("Try tool", tryTool, tryToolArguments{name, b.lensInputs()})
		switch n := tests[name]; n {
		case 0:
		case 1:
			add("Run 1 test", runTests, runTestsArguments{exactly(name)})
		default:
			add(fmt.Sprintf("Run %d tests", n), runTests, runTestsArguments{exactly(name)})
		}
	}
	return lenses, nil
}

// exactly returns an expression that matches only a name.
func exactly(name string) string { return "^" + regexp.QuoteMeta(name) + "$" }

// lensInputs returns the inputs of a tool that a caller sets.
func (d declared) lensInputs() []toolInput {
	inputs := []toolInput{}
	for _, f := range inputsOf(d) {
		if f.block.argument("from") != nil {
			continue
		}
		required := f.block.argument("default") == nil && f.word(f.block, "required") != "false"
		inputs = append(inputs, toolInput{f.name(), f.word(f.block, "type"), required})
	}
	return inputs
}
