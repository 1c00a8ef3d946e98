package worker

import (
	"io"
	"io/fs"
	"os/exec"
	"sync"
	"time"

	"github.com/mcpd/mcpd/internal/procgroup"
	"github.com/mcpd/mcpd/internal/timerslack"
	"github.com/mcpd/mcpd/scripting"
)

// process is a started program that runs [Main]. One goroutine at a time may
// use it; kill may be called by any, more than once.
type process struct {
	in     io.WriteCloser
	out    io.ReadCloser
	kill   func()
	ended  <-chan struct{} // closed when a process that was killed has ended
	expiry *time.Timer
}

// start starts a process, without an environment, that reaping waits for.
func start(path string, argv []string, reaping *sync.WaitGroup) (*process, error) {
	cmd := &exec.Cmd{Path: path, Args: argv, Env: []string{}, SysProcAttr: procgroup.Attr()}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := timerslack.Start(cmd); err != nil {
		return nil, err
	}
	killed, ended := make(chan struct{}), make(chan struct{})
	reaping.Go(func() {
		defer close(ended)
		<-killed
		// How it ended says nothing that is not known: it was killed.
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	// When this fails the process has ended, which shows when it is used.
	_ = writeFrame(in, frameBounds, processBounds{memory: defaultMemory}.append(nil)) // a trial watches its own time
	return &process{in: in, out: out, ended: ended, kill: sync.OnceFunc(func() { close(killed) })}, nil
}

// attend answers what a process asks for that has taken a trial, until it says
// that it survived.
func (w *process) attend(src scripting.Source) error {
	for {
		kind, name, err := readFrame(w.out, maxName)
		switch {
		case err != nil:
			return err
		case kind == frameSurvived:
			return nil
		case kind != frameImport || src.Import == nil || !fs.ValidPath(string(name)):
			return errFrame
		}
		if err := w.answer(src, string(name)); err != nil {
			return err
		}
	}
}

// answer sends a file that the process asks for. Why there is none is told by
// the compiler of this side.
func (w *process) answer(src scripting.Source, name string) error {
	content, err := src.Import(name)
	if err != nil {
		return writeFrame(w.in, frameNoFile, nil)
	}
	return writeFrame(w.in, frameFile, content)
}
