package execs

import (
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"os"
	"strings"

	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/process/supervisor"
	"github.com/mcpd/mcpd/scripting"
)

// Broker runs programs. It is safe for concurrent use.
type Broker struct {
	// Supervisor is the command by which a program is run, so that nothing of it
	// is left: see package supervisor. Empty means that there is none.
	Supervisor []string
	// Resolve returns the value of a secret.
	Resolve func(ctx context.Context, name string) (string, error)
	// Redact takes what no script may see out of what a program writes.
	Redact func([]byte) []byte
	// Logger gets what the operator should know.
	Logger *slog.Logger

	turns turns
}

// Do runs a program for a payload (see [Program.Parse]), and returns what
// [Answer] tells of it. The error is always a [*scripting.HostError]: beside those
// of Parse NOT_FOUND and DENIED for a program that is not the one that was
// granted, TOO_LARGE for too much output, TIMEOUT, and UNAVAILABLE for what the
// system does not do.
func (b *Broker) Do(ctx context.Context, p Program, payload []byte) ([]byte, error) {
	arguments, err := p.Parse(payload)
	if err != nil {
		return nil, err
	}
	if p.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.Timeout)
		defer cancel()
	}
	result, err := b.run(ctx, p.Exec, arguments)
	if err != nil {
		b.Logger.DebugContext(ctx, "a program was not run to its end", slog.String("grant", p.Name), slog.Any("error", err))
		return nil, explain(ctx, p.Exec, err)
	}
	return Answer(result.Code, b.Redact(result.Stdout), b.Redact(result.Stderr)), nil
}

func (b *Broker) run(ctx context.Context, g grant.Exec, arguments []string) (result supervisor.Result, err error) {
	free, err := b.turns.take(ctx, g)
	if err != nil {
		return result, err
	}
	defer free()
	if err := find(g); err != nil {
		return result, err
	}
	env, err := b.environment(ctx, g)
	if err != nil {
		return result, err
	}
	folder, err := os.MkdirTemp("", "mcpd-exec-")
	if err != nil {
		return result, err
	}
	defer func() {
		if err := os.RemoveAll(folder); err != nil {
			b.Logger.WarnContext(ctx, "the folder of a program cannot be removed", slog.String("grant", g.Name), slog.Any("error", err))
		}
	}()
	return supervisor.Run(ctx, b.Supervisor, supervisor.Program{
		Path: g.Real, Argv: append([]string{g.Path}, arguments...), Env: env, Dir: folder, MaxOutput: int(g.MaxOutput),
	})
}

// environment returns the environment of a program, with the secrets in it.
func (b *Broker) environment(ctx context.Context, g grant.Exec) ([]string, error) {
	env := make([]string, len(g.Env))
	for i, v := range g.Env {
		value, err := b.Text(ctx, v.Value)
		if err != nil {
			return nil, err
		}
		if strings.ContainsRune(value, 0) {
			return nil, errors.New("a secret in the environment of the program holds NUL")
		}
		env[i] = v.Name + "=" + value
	}
	return env, nil
}

// Text returns a value with the secrets that it holds, which are to be put in the place
// that it was written for and nowhere else.
func (b *Broker) Text(ctx context.Context, v grant.Value) (string, error) {
	var text strings.Builder
	for _, part := range v.Parts {
		value := part.Literal
		var err error
		switch {
		case part.Secret != "":
			value, err = b.Resolve(ctx, part.Secret)
		case part.Base64 != nil:
			value, err = b.Text(ctx, *part.Base64)
			value = base64.StdEncoding.EncodeToString([]byte(value))
		}
		if err != nil {
			return "", err
		}
		text.WriteString(value)
	}
	return text.String(), nil
}

// explain turns what went wrong into what the script may know of it.
func explain(ctx context.Context, g grant.Exec, err error) error {
	var known *scripting.HostError
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, supervisor.ErrTooMuch):
		return fault(scripting.TooLarge, "exec.%s: the program was ended, since it wrote more than %d bytes (max_output)", g.Name, g.MaxOutput)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fault(scripting.TimedOut, "exec.%s: the program was not done in time", g.Name)
	case ctx.Err() != nil:
		return fault(scripting.Unavailable, "exec.%s: the call was cancelled", g.Name)
	}
	return fault(scripting.Unavailable, "exec.%s: the program cannot be run now", g.Name)
}
