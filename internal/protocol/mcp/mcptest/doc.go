// Package mcptest helps to test what stands on package mcp: a [Backend] whose
// tools are functions, and [Play], which plays the transcripts in testdata/wire
// over any transport. It is imported by tests alone.
package mcptest
