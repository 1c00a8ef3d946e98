// Package codeact lets agents write code that calls tools as functions.
//
// [Items] are what the codeact block of the operator's file offers: the tool run_code,
// which runs a program of the agent (package scripting, [scripting.Code]); the prompt
// code_mode, which tells an agent how to write one and which tools there are (package
// codemode); and, for catalogues that are too large to be listed, search_tools,
// describe_tool and call_tool.
//
// A program has no rights but the tools that its caller may call. Each call that it makes
// goes through the whole pipeline as a call of that caller, with call.via == "code": the
// schema, policies, limits, hooks and the audit log see it. In mode "plan" what only reads
// is run, what would be written is listed and not made, and nobody is asked.
//
// A run is bounded in time, calls, calls at once, what it prints and returns, and memory.
// However it ends, its caller is told what it had printed and which calls it had made.
package codeact
