package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/auth/apikey"
	"github.com/mcpd/mcpd/internal/base/state"
	"github.com/mcpd/mcpd/internal/federation/lockfile"
	"github.com/mcpd/mcpd/internal/ops/control"
)

// maxPinText bounds the diffs of all pins in bytes; a diff that exceeds it is not shown.
const maxPinText = 16 << 20

// pins returns the differences between the tools of pinned upstreams and the lock file.
func (o *runningServer) pins() []control.Pin {
	rows, left := []control.Pin{}, maxPinText
	for _, d := range o.server.Inside().Drifts() {
		if d.Err != nil {
			rows = append(rows, control.Pin{PinName: control.PinName{Upstream: d.Upstream}, Problem: d.Err.Error()})
		}
		for _, problem := range d.Unacceptable {
			rows = append(rows, control.Pin{PinName: control.PinName{Upstream: d.Upstream}, Problem: "cannot accept " + problem})
		}
		for _, c := range d.Changes {
			row := control.Pin{PinName: control.PinName{Upstream: c.Upstream, Tool: c.Name}, Kind: c.Kind.String()}
			switch text := c.Diff(); {
			case !c.Complete():
				row.Problem = errIncomplete.Error()
			case len(text) > left:
				row.Problem = "the changes are too long to show together; review this one with mcpd lock diff"
			default:
				row.Change, row.Digest = text, digestOf(c)
				left -= len(text)
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// errIncomplete is the error of a change that the console cannot show in full.
var errIncomplete = errors.New("the change is too long to show in full; review it with mcpd lock diff --json, then accept it with mcpd lock accept --force")

// digestOf identifies a change: the accepted and the listed definition.
func digestOf(c lockfile.Change) string {
	sum := sha256.Sum256([]byte(c.Kind.String() + " " + c.Old.Hash() + " " + c.New.Hash()))
	return hex.EncodeToString(sum[:])
}

// accept writes the change of a tool to the lock file, if it is still the one that was shown. A server
// that watches its files applies it before accept returns.
func (o *runningServer) accept(ctx context.Context, of control.PinName) (any, error) {
	if o.flags.bundle.follower != nil {
		return nil, errors.New("the lock file is in the bundle; accept the tool in its source, and push the bundle")
	}
	o.accepting.Lock()
	defer o.accepting.Unlock()
	for _, d := range o.server.Inside().Drifts() {
		if d.Upstream != of.Upstream {
			continue
		}
		i := slices.IndexFunc(d.Changes, func(c lockfile.Change) bool { return c.Name == of.Tool && digestOf(c) == of.Digest })
		if i < 0 {
			break
		}
		c := d.Changes[i]
		if !c.Complete() {
			return nil, errIncomplete
		}
		if err := o.recordChange(ctx, "console.tool_accepted", map[string]string{"upstream": c.Upstream, "tool": c.Name, "kind": c.Kind.String()}); err != nil {
			return nil, err
		}
		if err := o.acceptChange(c); err != nil {
			return nil, err
		}
		if o.server.Snapshot().AutoReload() {
			// A watcher notices the change, too, but later. The errors of other files are reported elsewhere.
			_, _, _ = o.reload(ctx, engine.Change{Config: true})
		}
		return struct{}{}, nil
	}
	return nil, fmt.Errorf("the tool %.128q of upstream %.128q has changed since, or is accepted; list the pins again", of.Tool, of.Upstream)
}

// acceptChange adds a change to the lock file.
func (o *runningServer) acceptChange(c lockfile.Change) error {
	path := o.env.resolve(o.flags.files.lockPath())
	lock, err := lockfile.ReadOrNew(path)
	if err != nil {
		return err
	}
	return lockfile.Write(path, lock.Accept(c))
}

// keys returns the API keys of all auth blocks.
func (o *runningServer) keys() (any, error) {
	rows := []control.Key{}
	for _, a := range o.server.Snapshot().Auths() {
		if a.Keys == nil {
			continue
		}
		keys, err := apikey.Load(a.Keys.File)
		if err != nil {
			return nil, fmt.Errorf("auth %q: %w", a.Name, err)
		}
		for _, r := range keys.Records() {
			rows = append(rows, keyIn(a.Name, &r, o.env.now()))
		}
	}
	return rows, nil
}

func keyIn(auth string, r *apikey.Record, now time.Time) control.Key {
	row := control.Key{
		KeyName: control.KeyName{Auth: auth, ID: r.ID}, Name: r.Name, Principal: r.Principal, Scopes: r.Scopes, Groups: r.Groups, Agent: r.Agent,
		State: keyState(r, now), Created: r.Created,
	}
	if !r.Expires.IsZero() {
		row.Expires = &r.Expires
	}
	return row
}

// recordChange records that the operator of a request makes a change. Without the event, the change is
// not made.
func (o *runningServer) recordChange(ctx context.Context, name string, attributes map[string]string) error {
	if err := recordOperator(o.server, operatorOf(ctx, o.attached(control.UserOf(ctx))), name, attributes); err != nil {
		return errors.New("the server cannot write its audit log, so it changes nothing")
	}
	return nil
}

// noteChange is recordChange for a change that takes access away, or that a signal makes too: it is
// made even if the event cannot be written, which is logged.
func (o *runningServer) noteChange(ctx context.Context, name string, attributes map[string]string) {
	if err := o.recordChange(ctx, name, attributes); err != nil {
		o.logger.Warn("write audit event", slog.String("event", name), slog.String("error", err.Error()))
	}
}

// revokeKey revokes an API key. The authenticator of the file writes an audit event, too, which does
// not name the operator.
func (o *runningServer) revokeKey(ctx context.Context, of control.KeyName) (any, error) {
	auths := o.server.Snapshot().Auths()
	i := slices.IndexFunc(auths, func(a engine.Auth) bool { return a.Name == of.Auth && a.Keys != nil })
	if i < 0 {
		return nil, fmt.Errorf("no auth block of the kind api_key has the name %.100q", of.Auth)
	}
	keys, err := apikey.Load(auths[i].Keys.File)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(keys.Records(), func(r apikey.Record) bool { return r.ID == of.ID }) {
		o.noteChange(ctx, "console.key_revoked", map[string]string{"auth": of.Auth, "key": of.ID})
	}
	r, err := apikey.Revoke(auths[i].Keys.File, of.ID, o.env.now().UTC().Truncate(time.Second))
	if errors.Is(err, apikey.ErrUnknown) {
		return nil, fmt.Errorf("the file of auth %q has no key with that id", of.Auth)
	}
	if err != nil {
		return nil, err
	}
	return keyIn(of.Auth, &r, o.env.now()), nil
}

// maxTasks is the number of tasks in a response.
const maxTasks = 1000

// tasks returns tasks of all principals, at most maxTasks. Those that expire last come first.
func (o *runningServer) tasks() (any, error) {
	store, err := o.server.Inside().State()
	if err != nil {
		return nil, err
	}
	tasks, err := store.Tasks(maxTasks)
	if err != nil {
		return nil, err
	}
	rows := make([]control.Task, len(tasks))
	for i, t := range tasks {
		rows[i] = control.Task{
			TaskName: control.TaskName{Principal: t.Owner.ID, AuthKind: string(t.Owner.Kind), Issuer: t.Owner.Issuer, Agent: t.Owner.Agent, ID: t.ID},
			Tool:     t.Tool, Status: string(t.Status), Created: t.Created, Updated: t.Updated,
		}
	}
	return rows, nil
}

// cancelTask ends a task. The record of its call says that its client has cancelled it, so an event
// says that the operator has.
func (o *runningServer) cancelTask(ctx context.Context, of control.TaskName) (any, error) {
	store, err := o.server.Inside().State()
	if err != nil {
		return nil, err
	}
	owner := ownerOf(of)
	task, err := store.Task(state.OwnerOf(owner), of.ID)
	if err != nil {
		return nil, err
	}
	err = o.recordChange(ctx, "console.task_cancelled", map[string]string{"tool": task.Tool, "principal": of.Principal, "kind": of.AuthKind, "issuer": of.Issuer})
	if err == nil {
		err = o.front.CancelTask(ctx, owner, of.ID)
	}
	if err != nil {
		return nil, err
	}
	return struct{}{}, nil
}
