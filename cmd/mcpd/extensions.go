package main

import (
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/telemetry"
)

// extensions returns all extensions, for the server.
func (e env) extensions() []engine.Extension {
	return []engine.Extension{
		telemetry.New(telemetry.Options{ReadFile: e.disk.readFile, Console: e.stderr}),
	}
}
