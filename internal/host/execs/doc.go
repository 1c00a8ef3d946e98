// Package execs runs the programs of exec grants for scripts.
//
// The grant says which program, with which arguments and which environment. A
// script gives values for the parameters among the arguments, and each becomes
// a part of exactly one argument or is refused ([Program.Parse]). A [Broker] runs the
// program in an empty folder of its own, and returns what it has written. It never
// starts a shell, and takes no path from a script.
package execs
