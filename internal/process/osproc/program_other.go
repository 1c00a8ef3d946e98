//go:build !linux

package osproc

// Program holds the read-only mappings of the program file in this process.
type Program struct{}

// FindProgram returns a program without mappings: only Linux has an operation to unmap
// pages.
func FindProgram() Program { return Program{} }

// Unmap does nothing.
func (Program) Unmap() {}
