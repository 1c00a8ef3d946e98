package main

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/ops/control"
)

// tokenPatience is how long a server may take to say whose tokens it has, or to drop them.
const tokenPatience = time.Minute

// tokens are those of users, in a server that runs or in the file that it has left.
type tokens struct {
	asking asking
	state  string
	which  control.Which
	// at is where they were looked for.
	at string
}

func (t *tokens) add(cmd *cobra.Command) {
	t.asking.add(cmd)
	cmd.Flags().StringVar(&t.state, "state", "", "open this `FILE` where no server answers (default that of a server of these files)")
	_ = cmd.MarkFlagFilename("state")
}

// ask asks the server that runs, or the file where none does.
func (t *tokens) ask(ctx context.Context, e env, do control.Verb) (got tokenAnswer, err error) {
	r := control.Request{Do: do, Which: t.which}
	if t.at = t.asking.control.path(e, &t.asking.files); t.at != "" {
		_, err = reach(ctx, e.at(t.at), r, tokenPatience, &got)
		if err == nil {
			return got, nil
		}
		if !errors.Is(err, control.ErrNobody) {
			return got, findings("%v", err)
		}
	}
	return t.open(ctx, e, r)
}

// open asks the file.
func (t *tokens) open(ctx context.Context, e env, r control.Request) (got tokenAnswer, err error) {
	if t.at = t.state; t.at == "" {
		t.at = t.asking.files.state(e)
	}
	switch t.at {
	case inMemory:
		return got, usage("what a server keeps in memory is gone when it ends; name its socket with --control while it runs")
	case "":
		return got, usage("name the file of the server with --state FILE: there is no folder in which it would have one")
	}
	got.Tokens = []tokenRow{}
	if _, err := e.disk.stat(t.at); errors.Is(err, fs.ErrNotExist) {
		if t.state != "" {
			return got, usage("there is no file %s", t.state)
		}
		return got, nil // no server of these files has kept anything
	}
	s, err := engine.New(engine.Options{Name: "mcpd", Extensions: extensions(), StatePath: e.at(t.at), Now: e.now})
	if err != nil {
		return got, err
	}
	defer func() {
		if failed := s.Close(ctx); failed != nil && err == nil {
			err = findings("close %s: %v", t.at, failed)
		}
	}()
	if _, err := s.Inside().State(); err != nil {
		return got, findings("%v; a server that runs and has it is asked by its socket, which --control names", err)
	}
	got, err = tokensOf(s, r)
	if err != nil {
		return got, findings("%v", err)
	}
	return got, nil
}

// tokensOf carries out a request.
func tokensOf(s *engine.Server, r control.Request) (tokenAnswer, error) {
	if r.Do == control.Tokens {
		found, err := s.UserTokens()
		return tokenAnswer{Tokens: tokenRows(found)}, err
	}
	found, err := s.DropUserTokens(engine.UserTokenFilter(r.Which))
	got := tokenAnswer{Tokens: tokenRows(found)}
	if err != nil {
		got.Failure = err.Error()
	}
	return got, nil
}

// answerTokens answers a request on the control socket.
func answerTokens(s *engine.Server, r control.Request) (any, error) {
	got, err := tokensOf(s, r)
	if err != nil {
		return nil, err
	}
	return answerOf(got, nil, nil, r)
}
