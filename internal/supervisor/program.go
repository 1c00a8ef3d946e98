package supervisor

import "errors"

// Program is what is to be run.
type Program struct {
	// Path is the file, and Argv what the program is told, its own name first.
	Path string
	Argv []string
	// Env are NAME=value. There is nothing else in the environment.
	Env []string
	// Dir is the folder that it works in.
	Dir string
	// MaxOutput bounds each of its two outputs, in bytes.
	MaxOutput int
}

// Result is how a program ended.
type Result struct {
	// Code is the exit code, and of a program that a signal has ended 128 and the
	// number of the signal, as shells tell it.
	Code int
	// Stdout and Stderr are what it has written until then.
	Stdout, Stderr []byte
}

// ErrTooMuch says that a program was ended since it wrote more than it may.
var ErrTooMuch = errors.New("the program writes too much")

// ErrLost says that it is not known how a program ended.
var ErrLost = errors.New("the process that runs the program was lost")
