// Package diag describes mistakes in the files that people write.
//
// A [Diagnostic] says what is wrong, where, and what to do; a [List] holds all
// of them, in stable order; a [Text] is a piece of source, such as a script
// body, that stands inside a larger file and knows the place of each of its
// bytes there. The package knows nothing of HCL, JavaScript or CEL: the
// packages that do translate their own errors into diagnostics.
package diag
