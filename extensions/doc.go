// Package extensions documents the packages below it. Each has a feature with a large library. A
// program links a feature only if it imports the package:
//
//	engine.New(engine.Options{Extensions: []engine.Extension{federation.New(), sqlite.New()}})
//
// The packages and their features:
//
//   - [github.com/mcpd/mcpd/extensions/codemode]: programs of agents that call tools
//   - [github.com/mcpd/mcpd/extensions/federation]: tools, resources and prompts of other MCP servers
//   - [github.com/mcpd/mcpd/extensions/oidc]: tokens of identity providers
//   - [github.com/mcpd/mcpd/extensions/postgres]: state in PostgreSQL, and sql grants for it
//   - [github.com/mcpd/mcpd/extensions/sqlite]: state in a file, and sql grants for SQLite
//   - [github.com/mcpd/mcpd/extensions/telemetry]: metrics and traces
//   - [github.com/mcpd/mcpd/extensions/typescript]: scripts in TypeScript
//
// A file that needs a missing extension gets a diagnostic that names the package.
package extensions
