//go:build !unix

package worker

import (
	"errors"
	"io"
	"os"
	"os/exec"
)

// pipes are a stream of one for each direction.
type pipes struct{ in, out *os.File }

// connect returns the stream to a process that is to be started, and its ends of
// it, which are to be closed once it was.
func connect(cmd *exec.Cmd) (ours stream, theirs []io.Closer, err error) {
	stdin, in, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	out, stdout, err := os.Pipe()
	if err != nil {
		return nil, nil, errors.Join(err, stdin.Close(), in.Close())
	}
	cmd.Stdin, cmd.Stdout = stdin, stdout
	return pipes{in, out}, []io.Closer{stdin, stdout}, nil
}

func (p pipes) Read(b []byte) (int, error)  { return p.out.Read(b) }
func (p pipes) Write(b []byte) (int, error) { return p.in.Write(b) }

func (p pipes) Close() error { return errors.Join(p.in.Close(), p.out.Close()) }

func (p pipes) wake() { _ = p.Close() }

// resident is not known on this system.
func resident(int, int64) int64 { return 0 }
