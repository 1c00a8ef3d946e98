// Package uritemplate reads URI templates (RFC 6570, levels 1 to 3) that can be
// matched back: from each URI that a template makes, the values that made it
// follow without doubt.
//
// [Parse] refuses every other template: where two values touch, where a value
// could end at several places, and what only expands. [Template.Match] takes a
// URI apart from left to right, in time linear in its length and without
// recursion; [Template.Expand] is its inverse. Values are strings, of which
// those of {x}, {+x}, {#x}, {.x} and {/x} are never empty, and those of {;x},
// {?x} and {&x} may be absent.
//
// Unlike RFC 6570, {+x} and {#x} encode every percent sign of a value, since
// the value could not be told from its encoded form otherwise.
package uritemplate
