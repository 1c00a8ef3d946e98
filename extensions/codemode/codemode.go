// Package codemode lets agents write programs that call tools. An engine needs it if mcpd.hcl has a
// codeact block:
//
//	engine.Options{Extensions: []engine.Extension{codemode.New()}}
package codemode

import (
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/codemode/codeact"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/scripting"
)

// New returns the extension.
func New() engine.Extension { return extension{} }

type extension struct{}

// Name returns the package name.
func (extension) Name() string { return "extensions/codemode" }

// CodeItems returns the tools and the prompt of a codeact block.
func (extension) CodeItems(block *definition.Codeact, x scripting.Executor, trial func(scripting.Source) error, t scripting.Transpiler) []*catalog.Item {
	return codeact.Items(block, x, trial, t)
}
