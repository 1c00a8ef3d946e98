// Package secrets reads the values of secret blocks, and hides them.
//
// A [Store] knows where each secret comes from ([Def]): a variable of the
// environment, a file, what a command prints, or a token server. It reads a
// value when it is first asked for, keeps it until the definitions are set again
// or the token ends. It replaces values by "[secret:name]" wherever it is shown a
// text, also where the text holds them in base64, in hexadecimal or as part of a
// URL: those of variables and files from the first text on, those of commands and
// tokens once they were asked for. A value stays hidden when its definition is gone: old logs are
// written late.
//
// The package writes no value anywhere: not into errors, not into logs, and a
// [Secret] prints as its name whatever prints it.
package secrets
