// Package call is what a call is to those outside of the engine: the [Request], the
// [Result] or the [Error] that it ends with, and the [Event] that hooks are told.
//
// It is plain data. Fronts make requests and encode results, package engine runs
// them, and embedding programs do either; nothing here decides anything.
package call
