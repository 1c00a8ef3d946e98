//go:build !linux

package supervisor

import (
	"errors"
	"io"
)

// supervising reports whether a process on this system can adopt the
// descendants of its children.
const supervising = false

// Main is only supported on Linux.
func Main(io.Reader) error { return errors.New("programs are supervised on Linux only") }
