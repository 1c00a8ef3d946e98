//go:build !unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// watchTerminal calls h.end on a signal to stop, until release is called. A second signal to stop exits
// the process at once.
func watchTerminal(h terminalHandlers) (release func()) {
	received := make(chan os.Signal, 2)
	signal.Notify(received, os.Interrupt, syscall.SIGTERM)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for stops := 0; ; {
			select {
			case <-done:
				return
			case <-received:
				if stops++; stops == 2 {
					os.Exit(exitFindings)
				}
				h.end()
			}
		}
	}()
	return func() {
		signal.Stop(received)
		close(done)
		<-ended
	}
}

// stopJob does nothing: the system has no stopped processes.
func stopJob() {}
