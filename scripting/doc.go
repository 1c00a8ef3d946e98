// Package scripting runs the JavaScript and TypeScript bodies of tools and
// hooks.
//
// A [Source] is a body and all that it is compiled against. [Compile] checks
// it and makes a [Program], which is immutable and shared. An [Executor] runs
// a program as a [Call] in a runtime that nothing else has used and nothing
// will use again. What the script may not do itself it asks a [Host] for:
// only bytes cross, so an executor in another process is the same to everyone.
// The answers are kept in a [Journal], by which the call can be run again
// without doing anything twice. The [Outcome] is a result, a failure, or that
// the call is suspended.
//
// The package knows neither tools nor agents nor MCP, and does no I/O but
// through the host that it is handed.
//
// # Where to start reading
//
// The model is in program.go, executor.go, host.go, outcome.go, failure.go and journal.go. A call
// begins in executor.go (Inline), runs its body in run.go, makes its globals in globals.go, and waits
// in loop.go; host_call.go asks the host, and result.go reads what the body returned. The files
// object_*.go make the objects that need the call: its host, its loop, or its kinds of failure.
// input_*.go make what asks the client, and remote.go and recorder.go serve package worker.
// What needs no call is below: package compiler of internal/js makes a program of a source,
// and package builtins makes all other objects.
//
// # Agent code
//
// [Code] is what an agent wrote: it may do nothing but call tools, and what it
// prints is kept in the journal.
//
// # What a body sees
//
// A body is the inside of a strict function. It returns its result and may
// await; what it started and did not await is awaited before the result, and
// its failure is the call's. docs/reference/scripts.md lists what there is beside ES2022: the subject
// of the body (input, uri, value or event), agent, call and vars, objects that are granted
// (http, fs, kv, sql, exec, env, secrets, tools, modules), what asks the client (elicit, sample,
// roots, ask), and helpers such as dates, csv and crypto. An object that is not granted does
// not exist. All data but input is frozen.
//
// Globals are parameters of the body's function, made only when the body
// mentions them, so what is not used costs nothing. A body that names
// globalThis gets them all.
//
// eval and Function do not exist: text is never run as code. Files are
// imported from the tools folder, by name and at the top level only.
//
// # What code sees
//
// Code that an agent wrote stands in such a function, too, and in no folder. It sees its
// tools, as members of tools and of their groups and by names that shadow nothing
// ([IsCodeName]), parallel, print and console, HostError, helpers that reach nothing (docs/reference/code-mode.md),
// and nothing else of what bodies see. Arguments are one object, and {} where there
// are none. The result is the value of the last statement where that is an
// expression, or ends in one by if or try, or what return returned. Arrays of content blocks that tools answer,
// and blocks of them, are content as those of content.text are; of an object or an
// array that holds some, the blocks are the content and the value refers to them by
// {"type", "block"}, where block is the place in the content. A name to which code
// gives a value and that it does not declare is declared around it. Text that is no
// JavaScript is tried as TypeScript, if the source has a transpiler.
//
// Import statements, of Python too, are left out, each with a warning of the code
// [ImportRemoved]. Calls that are written as in Python are refused, with how to write
// them. [Explain] and [Failure.Explain] tell agents what is wrong. Reading a name that
// nothing has throws a ReferenceError that asks for the tool that may have been meant.
//
// What code prints goes to the host, line by line, as console does, and to the journal
// up to [Limits.Stdout] bytes: [Outcome.Stdout] has it however the call ended, with its
// process too, and the run that goes on from a journal has the lines of those before.
//
// # Asking
//
// elicit asks the user, and is answered with {action: "accept", content}; sample
// asks the client's model, and is answered with {role, content, model,
// stopReason}; roots is answered with [{uri, name}]. Who is asked may refuse:
// that throws an AskDenied, whose reason is "declined" or "cancelled". What no
// client of the call can answer throws a CapabilityError. ask asks several
// things at once, and is answered with an object of the same keys, in which
// what was refused is {action: "decline"} or {action: "cancel"}.
//
// Every request has a key, under which it is answered. Where the script gives
// none it is the name of the global, with a number from the second on: elicit,
// elicit_2. Two requests that wait at once cannot have one key.
//
// # What a host is asked
//
//	log           {"level","message","fields"}    the answer is ignored
//	console       {"level","message"}             the answer is ignored
//	progress      {"done","total","message"}      the answer is ignored
//	disconnect    {}                              the answer is ignored
//	http.request  {"grant","method","url","headers","body"|"body64","timeout_ms","consented"}
//	              → {"status","headers","body"|"body64","url"}
//	fs.METHOD     {"grant","path","from","max","tail","text"|"data64"}
//	              → {"text"}, {"data64"}, {"lines"}, {"entries":[{"name","type"}]},
//	              {"type","size","modified"}, or {} where nothing is told
//	env           {}
//	              → {NAME: value}, before the body begins
//	secret        {"name"} → {"name","value"}, while the body waits
//	kv.get        {"grant","key"} → {"value"}, which is absent of no value
//	kv.put        {"grant","key","value","ttl_ms","if_absent"} → {"done"}
//	kv.cas        {"grant","key","expected","value"} → {"done"}
//	kv.delete     {"grant","key"} → {"done"}
//	kv.incr       {"grant","key","by"} → {"value"}
//	kv.list       {"grant","prefix","limit","after"} → {"keys"}
//	exec.run      {"grant","params":{NAME: text}}
//	              → {"code","stdout"|"stdout64","stderr"|"stderr64"}
//	sql.query     {"grant","path","statement","params"} → {"columns","rows"}, lists of lists
//	sql.exec      {"grant","path","statement","params"} → {"changes"}
//	sql.open      {"grant","path"} → {}
//	module        {"module","function","arguments"} → what the function answers
//	call          {"tool","arguments"} → the value that the tool returned; null of none
//	resume        {"tool","arguments","resume":{"state","responses"}} → as call
//
//	ask           {"requests":[{"key","method","params"}]}
//	              → {"responses":{key: result}}
//
// Code asks for call and console alone, and once a call was refused with [Asks] for ask
// and resume.
//
// The names of headers are in lower case both ways. The methods of an ask are
// elicitation/create, sampling/createMessage and roots/list, and params and
// results are those of MCP. {"action": "decline"} and {"action": "cancel"}
// refuse each of them. A refusal of the whole ask with the code CAPABILITY is
// told as a CapabilityError.
//
// # Diagnostics
//
// A body with a syntax error is reported with that error alone: the first one,
// with nothing about the meaning of the rest. So is each file that it imports.
// Without syntax errors, all that is wrong is reported at once.
//
// # Time and chance
//
// Everything that could differ between two runs comes from the call or is in
// its journal: randomness from [Call.Seed], the clock from [Call.Start] on,
// the order in which answers come and timers fire. Timers are not waited for
// again in a replay, and messages are not sent again.
//
// # Suspension
//
// A person may take minutes to answer, and nothing waits meanwhile: a host says
// [ErrSuspended] of an ask, and the run goes on with everything else. When only
// such asks are left it ends, suspended; an interval that is not cleared keeps
// it from that. [Journal.Answer] gives the journal the answers, some or all of
// them, and a Run with it goes through the body again from the top, without any
// effect, up to where it was, and on from there. What two runs do together is
// what one would have done whose host answered the asks as late.
//
// # Bounds
//
// Before any parser sees a body, one iterative pass bounds what parsers
// recurse on or take more than linear time for: brackets 128 deep, 1,000
// operators that depend on each other, 64 KiB in all, and so on. Results are
// read by a walker with a budget of bytes and depth ([Limits]); JSON enters
// through a decoder that is bounded too, JSON.parse included. The deadline and
// the cancellation of a call's context interrupt the script.
//
// # What the inline executor cannot stop
//
// [Inline] runs the script in this process, and some of what a hostile script
// does there can neither be interrupted nor bounded: memory (large strings,
// arrays, buffers and BigInts); regular expressions with lookaround or
// backreferences that backtrack without end; and single operations on huge
// values, such as Array(1e9).fill, joining or sorting sparse arrays,
// normalizing long strings and powers of BigInts. Deep recursion inside the
// engine's own functions, such as converting deeply nested arrays to text, or an
// object whose toString is String bound to that object, can overflow the stack and
// end the process. It is for bodies whose authors are
// trusted not to attack the daemon, and for data whose size is bounded; others
// belong into a process of their own, by the executor of package worker.
package scripting
