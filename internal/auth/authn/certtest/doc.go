// Package certtest makes certificates for tests.
//
// An [Authority] issues them, to servers and to clients alike. [Write] and [WritePair] put
// what was made where a server reads it. Nothing is valid for longer than a day.
package certtest
