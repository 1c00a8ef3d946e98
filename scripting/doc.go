// Package scripting runs the scripts of tools and hooks, in JavaScript or TypeScript.
//
// A [Source] is a script with everything that it is compiled against. [Compile] checks it and returns a
// [Program], which is immutable and may be shared. An [Executor] runs a program as a [Call]:
//
//	program, problems := scripting.Compile(scripting.Source{
//		Name: "double", Kind: scripting.Tool, Text: diag.WholeFile("double.js", "return input.n * 2"),
//	})
//	if problems.HasErrors() {
//		return problems
//	}
//	outcome, err := scripting.Inline().Run(ctx, scripting.Call{Program: program, Input: []byte(`{"n": 21}`)}, nil)
//	if err != nil {
//		return err
//	}
//	fmt.Println(string(outcome.Result.JSON)) // 42
//
// [Inline] runs trusted scripts in this process. Package worker has an executor for all other scripts.
//
// Each call has its own JavaScript runtime. A script reaches the outside through a [Host]. Only bytes
// cross this boundary, so an executor in another process behaves the same. The responses are recorded
// in a [Journal], from which the call can be replayed without repeating any effect. The [Outcome] is a
// result, a failure, or a suspension. [Limits] bound a call.
//
// The package does not depend on tools, agents or MCP. It does no I/O except through its host.
//
// # Agent code
//
// [Code] is code that an agent wrote. It can only call tools, and its output is recorded in the
// journal.
//
// # Globals of a script
//
// A script is the body of a strict function. It returns its result and may await. Promises that
// it did not await are awaited before the result, and their failure is the failure of the call.
// docs/reference lists the globals besides ES2022: the input of the script (input, uri, value or
// event), agent, call and vars, granted objects (http, fs, kv, sql, exec, env, secrets, tools,
// modules), requests to the client (elicit, sample, roots, ask), and helpers such as dates, csv and
// crypto. An object that is not granted does not exist. All data except input is frozen.
//
// Globals are parameters of the function of the script. They are created only if the script
// mentions them, so that unused ones cost nothing. A script that mentions globalThis gets all of
// them.
//
// eval and Function do not exist: text is never run as code. Files are imported from the tools
// directory, by name and at the top level only.
//
// # Globals of agent code
//
// Agent code is the body of such a function too, but in no directory. It has its tools, as
// members of tools and of their groups, and by names that shadow nothing ([IsCodeName]). It also
// has parallel, print and console, HostError, and helpers without effects (docs/reference). It has
// no other global of scripts. Arguments are one object, and {} by default. The result is the value
// of the last statement, if that is an expression or ends in one through if or try, or the returned
// value. Content blocks that tools return are content, like blocks of content.text. If an object or
// an array contains blocks, these become the content, and the value refers to them by {"type",
// "block"}, where block is the index in the content. A name that the code assigns without declaring
// it is declared around the code. Text that is not JavaScript is compiled as TypeScript, if the
// source has a transpiler.
//
// Import statements, also of Python, are removed, each with a warning of code [ImportRemoved].
// Calls with keyword arguments, as in Python, are errors that show how to write them. [Explain] and
// [Failure.Explain] format errors for agents. Reading an undefined name throws a ReferenceError
// that suggests a tool.
//
// The output of code goes to the host, line by line, like console output, and to the journal up to
// [Limits.Stdout] bytes. [Outcome.Stdout] has it however the call ended, even if its process
// exited. A run that continues from a journal has the lines of earlier runs too.
//
// # Requests to the client
//
// elicit asks the user, and resolves to {action: "accept", content}. sample asks the model of the
// client, and resolves to {role, content, model, stopReason}. roots resolves to [{uri, name}]. If
// the user declines, an AskDenied is thrown, with the reason "declined" or "cancelled". If no
// client of the call has the capability, a CapabilityError is thrown. ask sends several requests at
// once, and resolves to an object with the same keys; declined requests are {action: "decline"} or
// {action: "cancel"} there.
//
// Every request has a key for its response. The default key is the name of the global, with a
// number from the second request on: elicit, elicit_2. Two pending requests cannot have the same
// key.
//
// # Operations of the host
//
//	log           {"level","message","fields"}    the response is ignored
//	console       {"level","message"}             the response is ignored
//	progress      {"done","total","message"}      the response is ignored
//	disconnect    {}                              the response is ignored
//	http.request  {"grant","method","url","headers","body"|"body64","timeout_ms","consented"}
//	              → {"status","headers","body"|"body64","url"}
//	fs.METHOD     {"grant","path","from","max","tail","text"|"data64"}
//	              → {"text"}, {"data64"}, {"lines"}, {"entries":[{"name","type"}]},
//	              {"type","size","modified"}, or {} without a result
//	env           {}
//	              → {NAME: value}, before the script starts
//	secret        {"name"} → {"name","value"}, while the script waits
//	kv.get        {"grant","key"} → {"value"}, absent if there is no value
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
//	module        {"module","function","arguments"} → the result of the function
//	call          {"tool","arguments"} → the value that the tool returned; null if none
//	resume        {"tool","arguments","resume":{"state","responses"}} → as call
//
//	ask           {"requests":[{"key","method","params"}]}
//	              → {"responses":{key: result}}
//
// Agent code uses only call and console, and ask and resume after a call was refused with [Asks].
//
// Header names are in lower case in both directions. The methods of ask are elicitation/create,
// sampling/createMessage and roots/list; params and results are as in MCP. {"action": "decline"}
// and {"action": "cancel"} decline any of them. If the host refuses the whole ask with the code
// CAPABILITY, the script gets a CapabilityError.
//
// # Diagnostics
//
// For a script with syntax errors, only the first one is reported, and no other error. The same
// holds for each imported file. Without syntax errors, all other errors are reported at once.
//
// # Time and randomness
//
// Everything that could differ between two runs comes from the call or its journal: randomness from
// [Call.Seed], the clock from [Call.Start], and the order of responses and timers from the journal.
// A replay does not wait for timers, and does not send notifications again.
//
// # Suspension
//
// A user may take minutes to respond, and no process waits meanwhile. The host returns
// [ErrSuspended] for an ask, and the run continues with everything else. When only such asks are
// pending, the run ends and is suspended; an interval that is not cleared prevents this.
// [Journal.Answer] adds the responses to the journal, some or all of them. A Run with this journal
// executes the script from the top again, without effects up to the suspension, and continues from
// there. The two runs together do the same as one run with a host that is as slow to respond.
//
// # Limits
//
// Before any parser reads a script, one iterative pass limits what parsers recurse on or take more
// than linear time for: brackets nest at most 128 deep, 1,000 operators depend on each other, a
// script has 64 KiB, and so on. Results are encoded with a budget of bytes and depth ([Limits]).
// JSON is decoded with limits too, also by JSON.parse. The deadline and the cancellation of the
// context of a call interrupt the script.
//
// # What the inline executor cannot stop
//
// [Inline] runs the script in this process. Some actions of a hostile script can be neither
// interrupted nor limited there: memory (large strings, arrays, buffers and BigInts), regular
// expressions with lookaround or backreferences that backtrack forever, and single operations on
// huge values, such as Array(1e9).fill, joining or sorting sparse arrays, normalizing long strings
// and powers of BigInts. Deep recursion inside the functions of the engine can overflow the stack
// and end the process. Examples are the conversion of deeply nested arrays to text, and an object
// with a toString that is String bound to that object. Use it for scripts by trusted authors, and
// for data of limited size. Run other scripts in worker processes, with the executor of package
// worker.
package scripting
