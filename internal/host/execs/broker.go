// Package execs runs the programs of exec grants for scripts.
//
// The grant says which program, with which arguments and which environment. A
// script gives values for the parameters among the arguments, and each becomes
// a part of exactly one argument or is refused ([Program.Parse]). A [Broker] runs the
// program in an empty folder of its own, and returns what it has written. It never
// starts a shell, and takes no path from a script.
package execs

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/process/supervisor"
	"github.com/mcpd/mcpd/scripting"
)

// Broker runs programs. It is safe for concurrent use.
type Broker struct {
	// Supervisor is the command by which a program is run, so that nothing of it
	// is left: see package supervisor. Empty means that there is none.
	Supervisor []string
	Resolve    func(ctx context.Context, name string) (string, error)
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
		Path: g.ResolvedPath, Argv: append([]string{g.Path}, arguments...), Env: env, Dir: folder, MaxOutput: int(g.MaxOutput),
	})
}

func (b *Broker) environment(ctx context.Context, g grant.Exec) ([]string, error) {
	env := make([]string, len(g.Env))
	for i, v := range g.Env {
		value, err := v.Value.Text(ctx, b.Resolve)
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

// explain turns what went wrong into what the script may know of it.
func explain(ctx context.Context, g grant.Exec, err error) error {
	var known *scripting.HostError
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, supervisor.ErrOutputLimit):
		return fault(scripting.TooLarge, "exec.%s: the program was ended, since it wrote more than %d bytes (max_output)", g.Name, g.MaxOutput)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fault(scripting.TimedOut, "exec.%s: the program was not done in time", g.Name)
	case ctx.Err() != nil:
		return fault(scripting.Unavailable, "exec.%s: the call was cancelled", g.Name)
	}
	return fault(scripting.Unavailable, "exec.%s: the program cannot be run now", g.Name)
}

// Answer returns what a script is told of a program that has ended: {"code"}, and
// each of the outputs as "stdout" and "stderr", or where it is no text in
// standard base64 as "stdout64" and "stderr64".
func Answer(code int, stdout, stderr []byte) []byte {
	answer := map[string]any{"code": code}
	for name, output := range map[string][]byte{"stdout": stdout, "stderr": stderr} {
		if utf8.Valid(output) {
			answer[name] = string(output)
		} else {
			answer[name+"64"] = base64.StdEncoding.EncodeToString(output)
		}
	}
	// Plain data always encodes.
	encoded, _ := json.Marshal(answer)
	return encoded
}

// find looks whether the program is the one that was there when the grant was
// judged, and one that only those may change who could before.
func find(g grant.Exec) error {
	real, err := filepath.EvalSymlinks(g.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fault(scripting.NotFound, "exec.%s: the program is not there", g.Name)
	case err != nil || real != g.ResolvedPath:
		return fault(scripting.Denied, "exec.%s: the program is another than when the files were loaded", g.Name)
	}
	info, err := os.Lstat(real)
	// Modes say nothing of that on Windows.
	written := err == nil && info.Mode().Perm()&0o002 != 0 && runtime.GOOS != "windows"
	if err != nil || written || !info.Mode().IsRegular() {
		return fault(scripting.Denied, "exec.%s: the program may be changed by everyone, or is no file", g.Name)
	}
	return nil
}

// turns count how many programs of each grant run. The zero turns count none.
type turns struct {
	mu sync.Mutex
	// of has a line for each grant of which somebody runs or waits.
	of map[[sha256.Size]byte]*line
}

// line is a grant whose programs run. It has as many places as may run at once.
type line struct {
	places chan struct{}
	users  int // who runs or waits, guarded by the mutex of turns
}

// take waits for a place of a grant, and returns how it is given back.
func (t *turns) take(ctx context.Context, g grant.Exec) (free func(), err error) {
	key := g.Hash()
	t.mu.Lock()
	if t.of == nil {
		t.of = map[[sha256.Size]byte]*line{}
	}
	l := t.of[key]
	if l == nil {
		l = &line{places: make(chan struct{}, max(1, g.Concurrency))}
		t.of[key] = l
	}
	l.users++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(t.of, key)
		}
	}
	select {
	case l.places <- struct{}{}:
		return func() { <-l.places; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
