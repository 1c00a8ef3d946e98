// Package jsonguard looks at JSON text from outside before anything else does.
//
// [Check] reads the text once, from front to back, without recursion and
// without building a value, and refuses with an [Error] whatever a decoder
// might choke on or read differently from another decoder: text over the
// [Limits], text that is not exactly one JSON value of RFC 8259, text that is
// not UTF-8, an object that names a member twice, and a number outside the
// range of a float64.
//
// The package does not decode, knows nothing of schemas, and never puts a
// piece of the text into an error.
//
// It is written by hand: encoding/json takes the last of two members of a name, replaces
// what is not UTF-8, and has no bound for depth or tokens.
package jsonguard
