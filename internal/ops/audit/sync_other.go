//go:build !linux

package audit

import "os"

// syncData makes content and size durable.
func syncData(f *os.File) error { return f.Sync() }
