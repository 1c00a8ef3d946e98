// Package reply makes the results of MCP's calls that call no tool: the
// contents of a resource, the messages of a prompt, the values of a completion.
//
// What a body returned comes in as JSON and is checked here, since it may be
// anything; what stands in the files is only encoded. The errors are for the
// author of the body, and hold nothing that it has not written itself.
package reply
