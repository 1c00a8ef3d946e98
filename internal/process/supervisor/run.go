// Package supervisor runs a program so that nothing of it is left when it has
// ended: no process that it started, even one that has detached, and no pipe
// that blocks the caller.
//
// [Run] runs a [Program] and returns its [Result]. On Linux it does so through
// another process that runs [Main]: orphaned descendants of the program become
// children of that process, which kills them until none is left. It does the
// same if the caller of Run dies. Without such a process, and on other systems,
// only the process group of the program is killed; processes that have left the
// group continue.
//
// No shell is involved. The program has only the given environment, no input,
// and no open file but its three standard streams. This package does not decide
// which programs may run.
package supervisor

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// Program describes a program to run.
type Program struct {
	// Path is the file, and Argv its arguments, starting with its own name.
	Path string
	Argv []string
	// Env holds NAME=value entries. The environment has nothing else.
	Env []string
	// Dir is the working directory.
	Dir string
	// MaxOutput bounds each of the two outputs, in bytes.
	MaxOutput int
}

// Result is the result of a program.
type Result struct {
	// Code is the exit code. For a program that a signal ended, it is 128 plus
	// the signal number, as in shells.
	Code int
	// Stdout and Stderr are its output.
	Stdout, Stderr []byte
}

// ErrOutputLimit reports that a program was killed because it wrote too much.
var ErrOutputLimit = errors.New("the program wrote too much output")

// ErrLost reports that the outcome of a program is unknown.
var ErrLost = errors.New("the process that runs the program was lost")

const (
	// killTimeout is the time for a supervisor to kill all processes of a
	// program.
	killTimeout = 5 * time.Second
	// outputTimeout is the time to wait for outputs that another process holds
	// open.
	outputTimeout = time.Second
)

// Run runs a program to its end, and kills it and all its processes when ctx is
// done. command is the process that runs [Main]: its path and then its
// arguments, starting with its own name. Empty means no supervisor.
func Run(ctx context.Context, command []string, p Program) (Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if cause := context.Cause(ctx); cause != nil {
		return Result{}, cause
	}
	nothing, err := os.Open(os.DevNull)
	if err != nil {
		return Result{}, err
	}
	c, err := launch(command, p, nothing)
	if err != nil {
		return Result{}, err
	}
	defer c.close()
	defer context.AfterFunc(ctx, c.Kill)()
	stdout, stderr := &limitedBuffer{max: p.MaxOutput, onFull: cancel}, &limitedBuffer{max: p.MaxOutput, onFull: cancel}
	var copies sync.WaitGroup
	copies.Go(func() { _, _ = io.Copy(stdout, c.Stdout) })
	copies.Go(func() { _, _ = io.Copy(stderr, c.Stderr) })
	code, err := c.Outcome()
	wait := outputTimeout
	if c.control != nil {
		wait = killTimeout // none of the program's processes is left to hold them
	}
	timer := time.AfterFunc(wait, c.close)
	copies.Wait()
	timer.Stop()
	if cause := context.Cause(ctx); cause != nil {
		return Result{}, cause
	}
	return Result{Code: code, Stdout: stdout.buffer.Bytes(), Stderr: stderr.buffer.Bytes()}, err
}

// order is the input of a process that runs [Main], and report its output when
// none of the program's processes is left.
type (
	order struct {
		Path, Dir string
		Argv, Env [][]byte
	}
	report struct {
		Code  int
		Error string
	}
)

// failure returns why the program did not run; nil if it did.
func (r report) failure() error {
	if r.Error == "" {
		return nil
	}
	return errors.New(r.Error)
}

func bytesOf(texts []string) [][]byte {
	all := make([][]byte, len(texts))
	for i, text := range texts {
		all[i] = []byte(text)
	}
	return all
}

// limitedBuffer accepts at most max bytes, and calls onFull when there is more.
// It does not embed the buffer, because its ReadFrom has no limit.
type limitedBuffer struct {
	buffer bytes.Buffer
	max    int
	onFull func(error)
}

// Write fails if there is no room for all of p.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	if len(p) > b.max-b.buffer.Len() {
		b.onFull(ErrOutputLimit)
		return 0, ErrOutputLimit
	}
	return b.buffer.Write(p)
}

// signalBase is added to the number of the signal that ended a program.
const signalBase = 128

func codeOf(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok {
		return codeOfStatus(status)
	}
	return state.ExitCode()
}

func codeOfStatus(status syscall.WaitStatus) int {
	if status.Signaled() {
		return signalBase + int(status.Signal())
	}
	return status.ExitStatus()
}
