// Package safetext writes text of others so that it shows what it holds, and nothing of it
// passes for what somebody else says: no character that is not seen, turns others around or
// covers them, and no line that looks as if it were ours.
//
// [Line] is for one line among others of ours, [Words] for what people read of somebody
// whose label it bears, and [Prompt] for what models read of them.
package safetext
