// Package engine turns files into an immutable [Snapshot] and runs calls
// against it. It is the RFC's McpServer: it registers tools, exposes
// capabilities, enforces policies, executes tools and tells hooks and
// listeners what happened. Transports are joined to it by package serve.
//
// # The path of a call
//
// What a call is made of stands in package call. [Server.Execute] loads the current
// snapshot once and never looks at another.
// The start hook fires; the tool is found; what its policies say without the
// arguments is asked, so that a call that is surely denied ends before its
// arguments are looked at; values of `from` inputs and defaults are filled in
// and the arguments are validated; policies decide, and limits count; the body
// runs under its deadline; the result is validated; and exactly one of the end
// and error hooks fires, however the call ended.
//
// # The path of a reload
//
// [Server.Load] and [Server.Reload] read sources, parse all of them, compile
// what is new, link everything together and publish the result by one pointer
// store. Any error leaves the old snapshot serving, and nothing outside of
// local variables has changed.
//
// The engine holds no global state: any number of servers live in one process.
// It imports no JavaScript, CEL or HCL library and no transport.
package engine
