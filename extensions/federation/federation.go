// Package federation lets an engine offer the tools, resources and prompts of other MCP servers. The
// upstream blocks of mcpd.hcl and [engine.Options].Upstreams name these servers. A program that
// imports the package links an MCP client.
//
//	engine.Options{Extensions: []engine.Extension{federation.New()}}
package federation

import (
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/federation"
	"github.com/mcpd/mcpd/internal/federation/overlay"
)

// New returns the extension for [engine.Options].Extensions.
func New() engine.Extension { return extension{} }

type extension struct{}

// Name returns the package name.
func (extension) Name() string { return "extensions/federation" }

// Federate returns the upstream connections of one engine. It has no servers yet.
func (extension) Federate(o federation.Options) federation.Federation { return overlay.New(o) }
