package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/mcpd/mcpd/internal/process/osproc"
)

// Child is a running program with pipes to its standard streams. None of its
// processes is left after [Child.Wait] returns.
type Child struct {
	// Stdin is the input of the program. Its writes support deadlines; closing it
	// ends the input. Stdout and Stderr are the outputs of the program.
	Stdin, Stdout, Stderr *os.File

	cmd *exec.Cmd
	// control ends the program when it is closed; nil without a supervisor.
	control io.Closer
	reports *os.File
	killing sync.Once
	ended   chan struct{}
	code    int
	err     error
}

// Start starts a program that runs until it ends or [Child.Kill] is called.
// command is as for [Run]; MaxOutput is ignored.
func Start(command []string, p Program) (*Child, error) {
	stdin, input, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	c, err := launch(command, p, stdin)
	if err != nil {
		return nil, errors.Join(err, input.Close())
	}
	c.Stdin = input
	return c, nil
}

// launch is Start for a program with an input file, which launch closes.
func launch(command []string, p Program, stdin *os.File) (*Child, error) {
	c := &Child{ended: make(chan struct{})}
	files := []*os.File{stdin, nil, nil}
	var errs [2]error
	c.Stdout, files[1], errs[0] = os.Pipe()
	c.Stderr, files[2], errs[1] = os.Pipe()
	err := errors.Join(errs[:]...)
	switch {
	case err != nil:
	case len(command) > 0 && supervising:
		err = c.supervised(command, p, files)
	default:
		err = c.direct(p, files)
	}
	for _, f := range files {
		_ = f.Close() // the program has its own copy; a nil file returns an error
	}
	if err != nil {
		c.close()
		return nil, err
	}
	go c.waitExit()
	return c, nil
}

// supervised starts the program through a supervisor process.
func (c *Child) supervised(command []string, p Program, files []*os.File) error {
	reports, reportWriter, err := os.Pipe()
	if err != nil {
		return err
	}
	defer reportWriter.Close()
	c.cmd = exec.Command(command[0])
	c.cmd.Args, c.cmd.Env, c.cmd.SysProcAttr = command[1:], []string{}, osproc.GroupAttr()
	c.cmd.Stdout, c.cmd.Stderr, c.cmd.ExtraFiles = files[1], files[2], []*os.File{reportWriter, files[0]}
	control, err := c.cmd.StdinPipe()
	if err == nil {
		err = c.cmd.Start()
	}
	if err != nil {
		return errors.Join(fmt.Errorf("start a supervisor: %w", err), reports.Close())
	}
	c.control, c.reports = control, reports
	// If this fails, the process has ended, and its missing report shows it.
	_ = json.NewEncoder(control).Encode(order{Path: p.Path, Dir: p.Dir, Argv: bytesOf(p.Argv), Env: bytesOf(p.Env)})
	return nil
}

// direct runs the program as a child of this process.
func (c *Child) direct(p Program, files []*os.File) error {
	c.cmd = exec.Command(p.Path)
	c.cmd.Args, c.cmd.Dir, c.cmd.Env, c.cmd.SysProcAttr = p.Argv, p.Dir, append([]string{}, p.Env...), osproc.GroupAttr()
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = files[0], files[1], files[2]
	return c.cmd.Start()
}

// waitExit waits for the program to end and records the result.
func (c *Child) waitExit() {
	defer close(c.ended)
	err := c.cmd.Wait()
	if c.reports == nil {
		_ = osproc.KillGroup(c.cmd.Process)
		c.code = codeOf(c.cmd.ProcessState)
		if _, exit := errors.AsType[*exec.ExitError](err); err != nil && !exit {
			c.err = err
		}
		return
	}
	var r report
	if json.NewDecoder(c.reports).Decode(&r) != nil {
		r, c.err = report{}, ErrLost
	} else {
		c.code, c.err = r.Code, r.failure()
	}
	_ = c.reports.Close()
}

// Kill ends the program and all processes that it has started. It also kills a
// supervisor that does not end in time.
func (c *Child) Kill() {
	c.killing.Do(func() {
		if c.control != nil {
			_ = c.control.Close()
			time.AfterFunc(killTimeout, func() { _ = c.cmd.Process.Kill() })
			return
		}
		_ = osproc.KillGroup(c.cmd.Process) // fails if the program has ended
	})
}

// Done returns a channel that is closed when none of the program's processes is
// left.
func (c *Child) Done() <-chan struct{} { return c.ended }

// Outcome waits until none of the program's processes is left, and returns how
// it ended. Its output can still be read.
func (c *Child) Outcome() (code int, err error) {
	<-c.ended
	return c.code, c.err
}

// Wait is Outcome, and also closes the streams.
func (c *Child) Wait() (code int, err error) {
	<-c.ended
	c.close()
	return c.Outcome()
}

func (c *Child) close() {
	for _, f := range []*os.File{c.Stdin, c.Stdout, c.Stderr} {
		if f != nil {
			_ = f.Close()
		}
	}
}
