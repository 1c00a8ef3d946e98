//go:build !unix

package atomicfile

// NonBlocking is no flag here: no pipe can be opened by its path.
const NonBlocking = 0

// SyncDir does nothing: names are durable without it.
func SyncDir(string) error { return nil }
