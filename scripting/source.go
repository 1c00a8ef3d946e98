package scripting

import "github.com/mcpd/mcpd/scripting/source"

// A body and all that it is compiled against. The types stand in package source because the
// compiler, which is below this package, takes them too.
type (
	Source     = source.Source
	Kind       = source.Kind
	Language   = source.Language
	Object     = source.Object
	Member     = source.Member
	Transpiler = source.Transpiler
)

// What bodies are for; see [source.Kind].
const (
	Tool     = source.Tool
	Hook     = source.Hook
	Resource = source.Resource
	Prompt   = source.Prompt
	Complete = source.Complete
	Code     = source.Code
)

// What bodies are written in; see [source.Language].
const (
	JS = source.JS
	TS = source.TS
)

// Codes of diagnostics that callers act on.
const (
	MissingExtension = source.MissingExtension
	FenceRemoved     = source.FenceRemoved
	ImportRemoved    = source.ImportRemoved
)
