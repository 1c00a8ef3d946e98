package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/scripting"
)

// Probe returns nil when the server answers calls, and else why it does not. It
// runs a body that does nothing, as calls run theirs, without being a call: no
// policy is asked, no hook fires and nothing is counted.
//
// A server that is busy is not stuck: one that refuses for want of room answers,
// and so does one whose calls end while the probe waits for its turn. One that
// shuts down does what it is to. The error says that none of that happened before
// ctx was done, that no process can be had for a body, or that nothing is served.
func (s *Server) Probe(ctx context.Context) error {
	before := s.pipeline.Stats()
	switch {
	case s.current.Load() == nil:
		return errors.New("probe: nothing is served")
	case before.Draining:
		return nil
	}
	program, problems := scripting.Compile(scripting.Source{Name: "probe", Text: diag.NewText("probe", "return 1;", diag.Pos{Line: 1, Column: 1})})
	if program == nil {
		return fmt.Errorf("probe: %w", problems)
	}
	out, err := s.options.Executor.Run(ctx, scripting.Call{Program: program}, noHost{})
	switch {
	case err == nil && out.Result != nil, errors.Is(err, scripting.ErrOverloaded):
		return nil
	case s.pipeline.Stats().Calls != before.Calls:
		return nil
	case err != nil:
		return fmt.Errorf("probe: %w", err)
	case out.Failure != nil:
		return fmt.Errorf("probe: a body that does nothing: %s", out.Failure.Message)
	default:
		return errors.New("probe: a body that does nothing has no result")
	}
}

// noHost is that of a body which asks for nothing.
type noHost struct{}

// Do refuses.
func (noHost) Do(context.Context, int, string, []byte) ([]byte, error) {
	return nil, &scripting.HostError{Code: scripting.NotGranted, Message: "a probe is granted nothing"}
}
