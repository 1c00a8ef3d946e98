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

// token returns a token as it is now, and hides it before anyone
// can use it.
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

// Refused says that somebody did not accept the value of a secret, which was asked
// for in a context. A token is then renewed, but not at will.
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

// UserOf names the token of a user: by the key of the secret, and the user.
type UserTokenID struct{ Key, User string }

// DropTokens drops the tokens of users of which the function says so by the key of
// their secret (see [oauth.Users.Drop]), also where calls that began before a reload
// use a definition that is gone. It returns those that it has found.
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

// patience is how long output is waited for when a program has ended.
const outputTimeout = time.Second

// variablePrefix begins the variables of the environment that give values to
// variable blocks, which may be sensitive.
const variablePrefix = "MCPD_VAR_"

// errTooLong ends a command that prints more than any value may hold.
var errTooLong = errors.New("it prints too much")

// runCommand runs a program and returns what it prints. What it writes to
// standard error is dropped: it may repeat the value.
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

// capped takes no more than a value with its line break. It does not embed
// the buffer, whose ReadFrom knows no bound.
type limitedBuffer struct {
	buffer bytes.Buffer
	full   bool
}

// Write fails when there is no room for all of p.
func (c *limitedBuffer) Write(p []byte) (int, error) {
	if c.buffer.Len()+len(p) > MaxValue+len("\r\n") {
		c.full = true
		return 0, errTooLong
	}
	return c.buffer.Write(p)
}
