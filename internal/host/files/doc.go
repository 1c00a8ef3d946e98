// Package files reads and writes files for scripts, below the folder of a grant
// and nowhere else.
//
// A [Folder] is one grant with what one run has used of it, and a [Broker] does
// what a script asks of it. Every operation opens the folder anew and walks down
// from there: a path is checked before anything is opened (see [Folder.Parse]),
// and what was opened is checked again. No link is followed, and only regular
// files on the file system of the folder are read, written and removed that have
// no other name. [os.Root] keeps an operation below the folder whatever others
// do to it meanwhile.
//
// A file is written beside its place and put there when it is whole, so that
// nobody ever reads a part of it.
package files
