// Package privdiff compares two states of the files that a server is made of, and
// says what power the second has that the first has not.
//
// A [Side] is one state. What its definitions say is gathered as facts, those of
// package grant among them, each of which gives power, holds it back, bounds it,
// has to be read to be judged, or says nothing of it. [Compare] sets the facts of
// two sides against each other, definition by definition and by their names, and
// returns a [Change] for each difference.
//
// What it cannot weigh counts as power. It reads no body: bodies can do what
// they are granted, whatever stands in them.
package privdiff
