// Package extension says what an engine can be extended with. The packages below extensions/
// implement its interfaces; engine and the packages below it use them, so that a program
// links a part, with the libraries that it needs, only if it imports its package.
package extension

import (
	"errors"
	"fmt"

	"github.com/mcpd/mcpd/internal/base/observe"
	"github.com/mcpd/mcpd/internal/execution/catalog"
	"github.com/mcpd/mcpd/internal/federation"
	"github.com/mcpd/mcpd/internal/language/hclfile"
	"github.com/mcpd/mcpd/scripting"
)

// Extension is what the packages below extensions/ return: a value that also has one of the
// interfaces of this package.
type Extension interface {
	// Name returns the package that the extension comes from, as in "extensions/sqlite".
	Name() string
}

// Telemetry opens the telemetry of a server.
type Telemetry interface {
	Extension
	OpenTelemetry(o observe.Options) (observe.Telemetry, error)
}

// CodeMode returns what a codeact block offers: programs run in x, and none does if x is
// nil. trial and t are those of [scripting.Source].
type CodeMode interface {
	Extension
	CodeItems(block *hclfile.Codeact, x scripting.Executor, trial func(scripting.Source) error, t scripting.Transpiler) []*catalog.Item
}

// Federation makes the connections to upstream servers.
type Federation interface {
	Extension
	Federate(federation.Options) federation.Federation
}

// TypeScript compiles bodies that are TypeScript or import files.
type TypeScript interface {
	Extension
	Transpiler() scripting.Transpiler
}

// Set holds the parts that a program has given to its engine; a part that it has not given
// is nil.
type Set struct {
	CodeMode   CodeMode
	Federation Federation
	Telemetry  Telemetry
	TypeScript TypeScript
}

// Add puts an extension into the set. It returns an error for a value that no package of
// mcpd has made, and for a part that the set has.
func (s *Set) Add(e Extension) error {
	switch e := e.(type) {
	case nil:
		return errors.New("is nil")
	case CodeMode:
		return add(&s.CodeMode, e)
	case Federation:
		return add(&s.Federation, e)
	case Telemetry:
		return add(&s.Telemetry, e)
	case TypeScript:
		return add(&s.TypeScript, e)
	default:
		return fmt.Errorf("%q is not of mcpd", e.Name())
	}
}

// add puts an extension into its field.
func add[E interface {
	comparable
	Extension
}](field *E, e E) error {
	var none E
	if *field != none {
		return fmt.Errorf("%q is there twice", e.Name())
	}
	*field = e
	return nil
}
