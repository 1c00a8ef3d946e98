// Package hclfile reads the files that people write: mcpd.hcl and the files of
// the tools folder, in HCL or in HCL's JSON syntax. It is the only package that
// knows HCL.
//
// [Parse] turns the bytes of a [Source] into a [File], which is immutable and
// may be cached. [JoinLocals] evaluates the locals of one folder; [File.Decode]
// and [File.DecodeConfig] evaluate a file in a [Scope] and return plain data:
// [Definitions] or a [Config]. Input and output blocks become JSON Schemas, each
// part of which is mapped to its place in the file. Code stays text: a [Body]
// knows the place of each of its bytes. [Format] is `mcpd fmt`.
//
// Every mistake is a diagnostic, and all mistakes of a file are told at once,
// in the order of the file. [File.Decode] walks the syntax tree by hand, so
// that their order and wording do not depend on a map or on a library.
//
// A file may be anything. Before HCL's recursive parser runs, a scanner without
// recursion refuses what it could not survive, and cuts out the text of raw
// heredocs, which HCL would misread. Expressions are computed by an evaluator
// that bounds the work of each file and the size of each value.
//
// The package compiles no code, checks no reference between files beside
// locals, and does not touch the disk: what file() reads comes through
// [Scope].ReadFile.
package hclfile
