// Package catalog makes of files what a server offers.
//
// A [Builder] reads the tools folder and the operator's file, compiles every
// definition that is new, and links all of them together. What comes out is a
// [Catalog]: immutable, and complete with the policies and hooks that concern
// each [Item]. Everything that is wrong in any file comes out with it, at once;
// whether such a catalog is served is decided elsewhere, and so is everything
// about a call.
package catalog
