// Package overlay offers what upstream MCP servers offer as if it were our own.
//
// A [Federation] keeps a connection to each server that an upstream block names (package
// upstream), and makes of what they list [catalog.Item]s: tools, resources, templates and
// prompts, by the names and with the changes that the block wants. What cannot be offered
// is left out, with a warning that says why: a schema that the lint refuses, a name that
// no tool can have, a URI that is none. The items go through the same pipeline as all
// others; their bodies pass the call on.
//
// Tools are held to what was accepted of them (package lockfile): what a server
// lists otherwise is no item, until somebody accepts it. What a block takes in without a
// question is written to the lock file before it is served.
//
// A server is believed nothing. Its schemas are compiled by our own validator, which
// checks arguments before they leave and results before they reach anybody. What it asks
// in the midst of a call reaches the client only where the block allows it, as a question
// that bears its name and holds the members that we know. The credentials of callers do
// not reach it.
package overlay
