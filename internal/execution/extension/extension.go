// Package extension says what an engine can be extended with. The packages below extensions/
// implement its interfaces; engine and the packages below it use them, so that a program
// links a part, with the libraries that it needs, only if it imports its package.
package extension

import (
	"errors"
	"fmt"

	"github.com/mcpd/mcpd/internal/base/observe"
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

// Set holds the parts that a program has given to its engine; a part that it has not given
// is nil.
type Set struct {
	Telemetry Telemetry
}

// Add puts an extension into the set. It returns an error for a value that no package of
// mcpd has made, and for a part that the set has.
func (s *Set) Add(e Extension) error {
	switch e := e.(type) {
	case nil:
		return errors.New("is nil")
	case Telemetry:
		return add(&s.Telemetry, e)
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
		return fmt.Errorf("%q is given twice", e.Name())
	}
	*field = e
	return nil
}
