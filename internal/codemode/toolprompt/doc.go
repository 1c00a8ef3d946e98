// Package toolprompt makes the texts by which an agent that writes code learns
// which tools there are.
//
// A [Tool] is what is told of a tool: its names, its description and its JSON
// Schemas. [Describe] declares one of them in TypeScript, and [Prompt] is the
// system prompt: how code is written here, and the declarations of all tools, in
// as much [Detail] as a budget of tokens allows. An [Index] finds tools by words.
//
// The sentences of the prompt are those of OpenEnv's RFC 003, in which Python has
// become JavaScript.
//
// # Names
//
// A tool whose name is an identifier that the language leaves free is a function
// of that name. One with a group is a member of it, as crm.get_customer is of crm.
// All others are members of tools, as tools["any-name"]. [Tool.Call] says which.
//
// # What others wrote
//
// Schemas and descriptions are texts of strangers. They are shown in comments
// and in string literals alone, which nothing in them ends; a line break begins
// no line that looks like a declaration; what cannot be seen, such as characters
// that turn the direction of text, is left out of comments and escaped in
// literals. Whether a description tells the truth is not for this package to say.
//
// Schemas may be of any draft, wrong or hostile. What is not understood is
// unknown, so a declaration says less than its schema and never more that matters
// to who writes a call: arguments are held against the schema itself when they
// come. References are followed within their schema only. Reading is bounded in
// bytes, nodes and depth, and printing in bytes, breadth and depth, so that the
// work on a tool is linear in what is read of it.
//
// # Who sees what
//
// The package knows no callers. It declares the tools that it is handed; and
// [Index.Search] asks for each tool whether it is seen, so that one that is not
// changes neither which tools are found nor their order.
package toolprompt
