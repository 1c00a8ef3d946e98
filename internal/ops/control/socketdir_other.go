//go:build !unix

package control

import "io/fs"

// socketDir is the location of a socket.
type socketDir struct{ short string }

// openSocketDir returns the location of an absolute path.
func openSocketDir(path string) (*socketDir, error) { return &socketDir{short: path}, nil }

func (p *socketDir) close() error { return nil }

// lock does nothing: two servers that start at once on a stale socket may both replace
// it, and the last one wins.
func (p *socketDir) lock() (unlock func(), err error) { return func() {}, nil }

// checkOwner accepts every directory: permissions are access control lists that new
// files inherit from it.
func checkOwner(string, fs.FileInfo) error { return nil }
