//go:build !unix

package worker

import "os"

func inboundPipe() (r, w *os.File, err error) { return os.Pipe() }

func outboundPipe() (r, w *os.File, err error) { return os.Pipe() }

func (p pipes) wake() { _ = p.Close() }

// resident is unknown on this system.
func resident(int, int64) int64 { return 0 }
