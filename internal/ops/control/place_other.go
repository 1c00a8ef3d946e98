//go:build !unix

package control

import "io/fs"

// place is where a socket stands.
type place struct{ short string }

// enter returns the place of an absolute path.
func enter(path string) (*place, error) { return &place{short: path}, nil }

func (p *place) leave() error { return nil }

// lock locks nothing: two servers that start at once on a socket that is dead may
// both replace it, and the last one has it.
func (p *place) lock() (unlock func(), err error) { return func() {}, nil }

// checkOwner admits everything: the rights of files stand in lists here, which
// new files inherit from their folder.
func checkOwner(string, fs.FileInfo) error { return nil }
