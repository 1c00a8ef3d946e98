// Package schema compiles JSON Schemas, draft 2020-12 unless a schema says
// 2019-09, 07, 06 or 04 by itself, and holds arguments and results against them.
//
// [Compile] reads the text of a schema, tells its author of every mistake in
// it, and makes two things of it: a tree of rules, which values are held
// against, and a tree of guides, which say while a value is decoded which
// numbers are integers and which members have defaults. [Schema.Args] decodes,
// completes and validates the arguments of a call; [Schema.Value] validates any
// JSON value. What is wrong with a value comes back as a list of [Violation],
// in words that help the caller to correct it, and never with the value itself.
//
// Everything is bounded. Patterns are RE2, so that matching is linear;
// uniqueItems goes by a hash; references that go in circles and chains that
// double at each step are refused by Compile; validation counts its steps and
// gives up, with a violation, when a schema that branches and recurses meets a
// value made for it. The few keywords that the rules leave out, those whose
// meaning depends on how validation got there ($dynamicRef, unevaluatedItems
// and the like), are left to the validator of santhosh-tekuri/jsonschema, whose
// time is bounded by refusing schemas that could multiply its work.
//
// The package loads nothing: a reference to another document is a mistake. It
// does not change values other than by adding defaults and what the server
// itself supplies.
package schema
