package secrets

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
)

// Secret is a resolved value that does not print. The zero Secret has no name
// and is empty.
type Secret struct{ name, value string }

// Name returns the name of the secret block.
func (s Secret) Name() string { return s.name }

// Reveal returns the value. Whoever calls it answers for where it goes.
func (s Secret) Reveal() string { return s.value }

// String returns "[secret:name]".
func (s Secret) String() string { return mark(s.name) }

// Format writes "[secret:name]" for every verb of package fmt.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalText returns "[secret:name]".
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON returns "[secret:name]" as a JSON string.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// LogValue returns "[secret:name]".
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// mark is what stands in the place of a value.
func mark(name string) string { return "[secret:" + name + "]" }
