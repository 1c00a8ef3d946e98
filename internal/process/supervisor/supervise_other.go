//go:build !linux

package supervisor

import (
	"errors"
	"io"
)

// supervising says whether this system lets a process have the descendants of
// its children.
const supervising = false

// Main is for Linux.
func Main(io.Reader) error { return errors.New("programs are supervised on Linux only") }
