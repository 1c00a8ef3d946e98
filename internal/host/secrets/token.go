package secrets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/mcpd/mcpd/internal/host/oauth"
	"github.com/mcpd/mcpd/internal/process/osproc"
)

// token returns the current token, and redacts it before it is used.
func (s *Store) token(ctx context.Context, e *entry, from interface {
	Token(ctx context.Context) (string, error)
}) (string, error) {
	token, err := from.Token(ctx)
	switch {
	case err != nil:
		return "", err
	case len(token) > MaxValue:
		return "", fmt.Errorf("%s: the token is longer than %d bytes", e.def.OAuth.TokenURL, MaxValue)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addValues(map[string]string{e.def.Name: token})
	return token, nil
}

// ReportUnauthorized reports that a host rejected the value of a secret that was resolved in
// ctx. A token is then renewed, at a limited rate.
func (s *Store) ReportUnauthorized(ctx context.Context, id string) {
	s.mu.Lock()
	e, ok := s.entries[id]
	s.mu.Unlock()
	switch {
	case !ok:
	case e.tokens != nil:
		e.tokens.ReportUnauthorized()
	case e.users != nil:
		e.users.ReportUnauthorized(ctx)
	}
}

// UserTokenID identifies the token of a user by the key of its secret.
type UserTokenID struct{ Key, User string }

// DropTokens drops the matching user tokens (see [oauth.UserTokens.Drop]), including tokens of
// removed definitions that running calls use. It returns the dropped ones.
func (s *Store) DropTokens(of func(key, user string) bool) (dropped []UserTokenID, err error) {
	for key, users := range s.userTokens() {
		had, failed := users.Drop(func(user string) bool { return of(key, user) })
		err = errors.Join(err, failed)
		for _, user := range had {
			dropped = append(dropped, UserTokenID{key, user})
		}
	}
	return dropped, err
}

// ReloadTokens makes the next calls read the tokens of the matching users of clients again; see
// [oauth.UserTokens.Reload].
func (s *Store) ReloadTokens(of func(key, user string) bool, dropped bool) {
	for key, users := range s.userTokens() {
		users.Reload(func(user string) bool { return of(key, user) }, dropped)
	}
}

func (s *Store) userTokens() map[string]*oauth.UserTokens {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := map[string]*oauth.UserTokens{}
	for id, e := range s.entries {
		if e.users != nil && id == e.def.Key() {
			found[id] = e.users
		}
	}
	return found
}

// outputTimeout bounds the wait for output after a program has exited.
const outputTimeout = time.Second

// variablePrefix is the prefix of environment variables with values of variable blocks, which
// may be sensitive.
const variablePrefix = "MCPD_VAR_"

// errTooLong ends a command with more output than a value may hold.
var errTooLong = errors.New("its output is too long")

// runCommand runs a program and returns its standard output. It drops standard error, which may
// repeat the value.
func runCommand(ctx context.Context, argv, without []string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = slices.DeleteFunc(cmd.Environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(without, name) || strings.HasPrefix(name, variablePrefix)
	})
	cmd.SysProcAttr = osproc.GroupAttr()
	cmd.Cancel = func() error { return osproc.KillGroup(cmd.Process) }
	cmd.WaitDelay = outputTimeout
	var out limitedBuffer
	cmd.Stdout = &out
	err := cmd.Run()
	var exit *exec.ExitError
	switch {
	case out.full:
		return nil, errTooLong
	case errors.As(err, &exit):
		return nil, fmt.Errorf("it failed with exit code %d", exit.ExitCode())
	case err != nil:
		return nil, err
	}
	return out.buffer.Bytes(), nil
}

// limitedBuffer holds at most one value with its line break. It does not embed the buffer,
// because ReadFrom has no limit.
type limitedBuffer struct {
	buffer bytes.Buffer
	full   bool
}

// Write fails if p does not fit.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.buffer.Len()+len(p) > MaxValue+len("\r\n") {
		b.full = true
		return 0, errTooLong
	}
	return b.buffer.Write(p)
}
