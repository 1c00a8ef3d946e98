//go:build !linux

package worker

import "runtime/debug"

// confine asks the garbage collector to stay below the bound, which is all
// that can be done here.
func confine() error {
	debug.SetMemoryLimit(maxMemory)
	return nil
}
