// Package redact takes values that nobody may see out of what somebody is
// about to see.
//
// [Pointers] and [Unchecked] take them out of JSON, of which they change no
// other byte; a [Text] takes them out of what a script writes, and [NewHandler]
// out of every record of a log, by what a [Veil] knows. Which values are sensitive
// is for the caller to say: nothing is guessed here.
package redact
