// Package supervisor runs a program so that nothing of it is left when it has
// ended: no process that it started, however that has hidden itself, and no
// pipe that keeps its caller waiting.
//
// [Run] starts a [Program] and returns its [Result]. On Linux it does so through
// another process that runs [Main]: all descendants of the program become
// children of that one when their parents end, and it kills them until there are
// none. It does so, too, when whoever called Run dies. Without such a process,
// and on other systems, the group of processes is killed that the program began
// in; what has left the group goes on.
//
// No shell takes part. The program has the environment that it is given and no
// other, reads nothing, and has no file open but its three standard streams.
// Which programs may run is not decided here.
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

// Program is what is to be run.
type Program struct {
	// Path is the file, and Argv what the program is told, its own name first.
	Path string
	Argv []string
	// Env are NAME=value. There is nothing else in the environment.
	Env []string
	// Dir is the folder that it works in.
	Dir string
	// MaxOutput bounds each of its two outputs, in bytes.
	MaxOutput int
}

// Result is how a program ended.
type Result struct {
	// Code is the exit code, and of a program that a signal has ended 128 and the
	// number of the signal, as shells tell it.
	Code int
	// Stdout and Stderr are what it has written until then.
	Stdout, Stderr []byte
}

// ErrTooMuch says that a program was ended since it wrote more than it may.
var ErrOutputLimit = errors.New("the program writes too much")

// ErrLost says that it is not known how a program ended.
var ErrLost = errors.New("the process that runs the program was lost")

const (
	// patience is how long a supervisor may take to end all that a program has
	// started.
	killTimeout = 5 * time.Second
	// linger is how long outputs are waited for that something else than the
	// program holds.
	outputTimeout = time.Second
)

// Run runs a program to its end, and ends it with all that it has started when
// ctx is done. command is the process that runs [Main], its path and then its
// arguments with its own name first; empty means that there is none.
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
	held := outputTimeout
	if c.control != nil {
		held = killTimeout // nothing of the program is left to hold them
	}
	late := time.AfterFunc(held, c.close)
	copies.Wait()
	late.Stop()
	if cause := context.Cause(ctx); cause != nil {
		return Result{}, cause
	}
	return Result{Code: code, Stdout: stdout.buffer.Bytes(), Stderr: stderr.buffer.Bytes()}, err
}

// order is what a process that runs [Main] reads, and report what it answers
// once nothing of the program is left.
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

// failure is why the program did not run, nil when it did.
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

// capped takes no more than it has room for, and tells full when there is more.
// It does not embed the buffer, whose ReadFrom knows no bound.
type limitedBuffer struct {
	buffer bytes.Buffer
	max    int
	onFull func(error)
}

// Write fails when there is no room for all of p.
func (c *limitedBuffer) Write(p []byte) (int, error) {
	if len(p) > c.max-c.buffer.Len() {
		c.onFull(ErrOutputLimit)
		return 0, ErrOutputLimit
	}
	return c.buffer.Write(p)
}

// signalled is added to the number of the signal that has ended a program.
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
