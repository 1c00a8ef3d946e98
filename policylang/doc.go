// Package policylang is the one door to CEL, the language of policies, of the
// keys of limits and of `from` values.
//
// An [Env] knows the operator's variables and compiles: a [Source] for one
// [Tool] becomes a [Policy], a [KeySource] a [Key], a text becomes an [Expr]. Everything that an
// expression can read has a type, the arguments from the JSON Schema of the
// tool's input, so that most mistakes are diagnostics, in the places of the
// file, before anything is served. A policy judges an [Input]; its [Decision]
// is the same for the same input, always.
//
// # Flow
//
// A text passes a gate that bounds its size and nesting, and CEL's parser.
// has() of an argument that the tool cannot have is false and takes what it
// guards with it (rewrite.go). CEL's checker finds the types; integers beside
// numbers are promoted (rewrite.go). What is left must be of the type that
// its role needs, and its cost with ordinary data, estimated from the schema,
// must be bounded (cost.go). Then it is planned once and evaluated many times on
// the Go values where they stand (evaluation.go). Its loops and its calls pay for their
// work (metered_program.go, call_cost.go) from an allowance of 100 ms for each decision
// (meter.go).
//
// # Denial is the answer to every doubt
//
// An expression that cannot be evaluated, for want of a key, by a wrong type
// or for taking too long, denies. Callers are told [GenericReason], operators
// the place and the kind of the problem; neither is told values.
//
// [Policy.Partial] is the same evaluation with arguments that are not known.
// It is sure of what it says, or says [Unknown].
//
// # What it refuses to do
//
// It reads no clock, no file and no environment while it decides: the time is
// part of the input, time zones are found when a policy is compiled. It knows
// nothing of HCL, of the order of policies or of what a denial looks like on a
// wire.
package policylang
