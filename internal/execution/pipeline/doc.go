// Package pipeline takes a call from its beginning to its end: it finds what is
// called, asks policies, fills in and validates arguments, counts limits, runs the
// body, checks what that returned, writes down what became of it, and fires the hooks
// around all of it.
//
// A [Pipeline] runs every call of a server on the one catalog that it loads for it.
// What a call goes through is the same for tools, resources, prompts and completions,
// whatever carried it and whether a client, a body or a test made it.
//
// It reads no files and keeps nothing of a call that has ended: a call that waits for
// its client is in the state store, and goes on from there.
package pipeline
