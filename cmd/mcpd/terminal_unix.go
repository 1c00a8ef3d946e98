//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// watchTerminal calls the functions of h on signals that concern the terminal, one after the other,
// until release is called. A second signal to stop exits the process at once.
func watchTerminal(h terminalHandlers) (release func()) {
	received := make(chan os.Signal, 8)
	signal.Notify(received, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGTSTP, syscall.SIGCONT)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for stops := 0; ; {
			select {
			case <-done:
				return
			case s := <-received:
				switch s {
				case os.Interrupt, syscall.SIGTERM:
					if stops++; stops == 2 {
						os.Exit(exitFindings)
					}
					h.end()
				case syscall.SIGQUIT:
					h.end()
					signal.Reset(syscall.SIGQUIT)
					_ = syscall.Kill(os.Getpid(), syscall.SIGQUIT) // the runtime prints its goroutines, and ends the process
				case syscall.SIGTSTP:
					h.pause(stopProcess)
				case syscall.SIGCONT:
					h.resume()
				default: // SIGHUP
					h.end()
				}
			}
		}
	}()
	return func() {
		signal.Stop(received)
		close(done)
		<-ended
	}
}

// stopJob stops the processes that share the terminal, as Ctrl-Z does in a terminal with echo.
func stopJob() { _ = syscall.Kill(0, syscall.SIGTSTP) } // the process itself may always get it

// stopTimeout is the time that the kernel has to stop the process.
const stopTimeout = 200 * time.Millisecond

// stopProcess stops the process until it is continued. The default of SIGTSTP cannot be restored:
// package signal would ignore it. SIGTTIN has the same default. The kernel discards it if no shell could
// continue the process, and stopProcess returns after a short time.
func stopProcess() {
	continued := make(chan os.Signal, 1)
	signal.Notify(continued, syscall.SIGCONT)
	defer signal.Stop(continued)
	if syscall.Kill(os.Getpid(), syscall.SIGTTIN) != nil {
		return
	}
	select {
	case <-continued:
	case <-time.After(stopTimeout):
	}
}
