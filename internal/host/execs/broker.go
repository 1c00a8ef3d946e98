// Package execs runs the programs of exec grants for scripts.
//
// A grant defines the program, its arguments and its environment. A script gives values for the
// parameters in the arguments. Each value becomes part of exactly one argument, or is rejected
// ([Program.Parse]). A [Broker] runs the program in an empty temporary directory and returns
// its output. It never starts a shell, and takes no path from a script.
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

	"github.com/mcpd/mcpd/internal/host/secrets"
	"github.com/mcpd/mcpd/internal/language/grant"
	"github.com/mcpd/mcpd/internal/process/supervisor"
	"github.com/mcpd/mcpd/scripting"
)

// Broker runs programs. It is safe for concurrent use.
type Broker struct {
	// Supervisor is the command that runs a program and leaves no processes behind: see package
	// supervisor. If empty, there is none.
	Supervisor []string
	Resolve    func(ctx context.Context, name string) (string, error)
	// Redact redacts the output of programs for scripts.
	Redact func([]byte) []byte
	// Logger receives messages for the operator.
	Logger *slog.Logger

	limiter limiter
}

// Do runs a program with a payload (see [Program.Parse]), and returns the result of
// [EncodeResult]. The error is always a [*scripting.HostError]: the errors of Parse, NOT_FOUND
// and DENIED for a program that is not the granted one, TOO_LARGE for too much output, TIMEOUT,
// and UNAVAILABLE for other failures.
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
		b.Logger.DebugContext(ctx, "run program of grant", slog.String("grant", p.Name), slog.Any("error", err))
		return nil, explain(ctx, p.Exec, err)
	}
	return EncodeResult(result.Code, b.Redact(result.Stdout), b.Redact(result.Stderr)), nil
}

func (b *Broker) run(ctx context.Context, g grant.Exec, arguments []string) (result supervisor.Result, err error) {
	free, err := b.limiter.acquire(ctx, g)
	if err != nil {
		return result, err
	}
	defer free()
	if err := verifyExecutable(g); err != nil {
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
			b.Logger.WarnContext(ctx, "remove working directory of program", slog.String("grant", g.Name), slog.Any("error", err))
		}
	}()
	return supervisor.Run(ctx, b.Supervisor, supervisor.Program{
		Path: g.ResolvedPath, Argv: append([]string{g.Path}, arguments...), Env: env, Dir: folder, MaxOutput: int(g.MaxOutput),
	})
}

func (b *Broker) environment(ctx context.Context, g grant.Exec) ([]string, error) {
	env, resolve := make([]string, len(g.Env)), secrets.LogErrors(b.Resolve, b.Logger, g.Name)
	for i, v := range g.Env {
		value, err := v.Value.Text(ctx, resolve)
		if err != nil {
			return nil, err
		}
		if strings.ContainsRune(value, 0) {
			return nil, errors.New("a secret in the environment of the program contains NUL")
		}
		env[i] = v.Name + "=" + value
	}
	return env, nil
}

// explain converts an error to an error for the script.
func explain(ctx context.Context, g grant.Exec, err error) error {
	var known *scripting.HostError
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, supervisor.ErrOutputLimit):
		return newHostError(scripting.TooLarge, "exec.%s: the program was killed because it wrote more than %d bytes (max_output)", g.Name, g.MaxOutput)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return newHostError(scripting.TimedOut, "exec.%s: the program did not finish in time", g.Name)
	case ctx.Err() != nil:
		return newHostError(scripting.Unavailable, "exec.%s: the call was cancelled", g.Name)
	}
	return newHostError(scripting.Unavailable, "exec.%s: the program cannot be run now", g.Name)
}

// EncodeResult encodes the result of an exited program for scripts: {"code"}, and each output
// as "stdout" and "stderr", or in standard base64 as "stdout64" and "stderr64" if it is not
// text.
func EncodeResult(code int, stdout, stderr []byte) []byte {
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

// verifyExecutable checks that the program is the one that was there when the grant was loaded,
// and not world-writable.
func verifyExecutable(g grant.Exec) error {
	real, err := filepath.EvalSymlinks(g.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return newHostError(scripting.NotFound, "exec.%s: the program does not exist", g.Name)
	case err != nil || real != g.ResolvedPath:
		return newHostError(scripting.Denied, "exec.%s: the program has changed since the files were loaded", g.Name)
	}
	info, err := os.Lstat(real)
	// Modes do not say that on Windows.
	written := err == nil && info.Mode().Perm()&0o002 != 0 && runtime.GOOS != "windows"
	if err != nil || written || !info.Mode().IsRegular() {
		return newHostError(scripting.Denied, "exec.%s: every user can change the program, or it is not a file", g.Name)
	}
	return nil
}

// limiter limits the concurrent programs of each grant. The zero limiter is ready to use.
type limiter struct {
	mu sync.Mutex
	// grants has an entry for each grant with running or waiting programs.
	grants map[[sha256.Size]byte]*grantSlots
}

// grantSlots has a slot for each concurrent program of a grant.
type grantSlots struct {
	slots chan struct{}
	users int // running and waiting; guarded by the mutex of limiter
}

// acquire waits for a slot of a grant, and returns a function to release it.
func (t *limiter) acquire(ctx context.Context, g grant.Exec) (free func(), err error) {
	key := g.Hash()
	t.mu.Lock()
	if t.grants == nil {
		t.grants = map[[sha256.Size]byte]*grantSlots{}
	}
	l := t.grants[key]
	if l == nil {
		l = &grantSlots{slots: make(chan struct{}, max(1, g.Concurrency))}
		t.grants[key] = l
	}
	l.users++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if l.users--; l.users == 0 {
			delete(t.grants, key)
		}
	}
	select {
	case l.slots <- struct{}{}:
		return func() { <-l.slots; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, ctx.Err()
	}
}
