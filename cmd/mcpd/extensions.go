package main

import (
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/codemode"
	"github.com/mcpd/mcpd/extensions/federation"
	"github.com/mcpd/mcpd/extensions/oidc"
	"github.com/mcpd/mcpd/extensions/postgres"
	"github.com/mcpd/mcpd/extensions/sqlite"
	"github.com/mcpd/mcpd/extensions/telemetry"
	"github.com/mcpd/mcpd/extensions/typescript"
)

// extensions returns all extensions but telemetry, which a server that listens has.
func extensions() []engine.Extension {
	return []engine.Extension{codemode.New(), federation.New(), typescript.New(), oidc.New(), postgres.New(), sqlite.New()}
}

// telemetry returns the extension that traces calls and counts them.
func (e env) telemetry() engine.Extension {
	return telemetry.New(telemetry.Options{ReadFile: e.disk.readFile, Console: e.stderr})
}
