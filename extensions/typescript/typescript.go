// Package typescript compiles scripts with syntax that the JavaScript engine lacks: TypeScript, import,
// async generators and for await. A program that imports the package links esbuild.
//
//	engine.Options{Extensions: []engine.Extension{typescript.New()}}
//
// Worker processes compile the scripts that they run, so they need the transpiler as well:
//
//	worker.Main(os.Stdin, os.Stdout, typescript.Transpiler())
package typescript

import (
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/js/esbuild"
	"github.com/mcpd/mcpd/scripting"
)

// New returns the extension for [engine.Options].Extensions.
func New() engine.Extension { return extension{} }

// Transpiler returns the compiler alone, for worker.Main and for [scripting.Source].
func Transpiler() scripting.Transpiler { return esbuild.New() }

type extension struct{}

func (extension) Name() string { return "extensions/typescript" }

func (extension) Transpiler() scripting.Transpiler { return esbuild.New() }
