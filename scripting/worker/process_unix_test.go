//go:build unix

package worker

import (
	"os"
	"syscall"
	"testing"
)

func init() {
	programs["leads"] = func() error {
		if syscall.Getpgrp() != os.Getpid() {
			return errFrame
		}
		return writeFrame(os.Stdout, frameTrialDone, nil)
	}
}

// A signal to the group of the daemon, such as Ctrl-C, must not reach worker processes.
func TestProcess_ownGroup(t *testing.T) {
	if err := pool(t, "leads").Try(source("return 1")); err != nil {
		t.Error(err)
	}
}
