package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// tour is one client that runs the steps.
type tour struct {
	client
	*inbox
	at    endpoint
	edits string // the directory of files to install
}

// step tests one client feature.
type step struct {
	name    string
	do      func(*tour, context.Context) error
	instead func(*tour, context.Context) error // for a client without the feature; may be nil
}

// steps are the columns of docs/reference/clients.md, in order.
var steps = []step{
	{name: "list", do: (*tour).list},
	{name: "call", do: (*tour).calls},
	{name: "progress", do: (*tour).told},
	{name: "cancel", do: (*tour).cancel, instead: (*tour).abandon},
	{name: "elicit", do: (*tour).elicit},
	{name: "complete", do: (*tour).complete},
	{name: "subscribe", do: (*tour).follow},
	{name: "reload", do: (*tour).reload},
}

func (t *tour) list(ctx context.Context) error {
	tools, err := t.tools(ctx)
	resources, err2 := t.resources(ctx)
	templates, err3 := t.templates(ctx)
	prompts, err4 := t.prompts(ctx)
	return errors.Join(err, err2, err3, err4,
		equal("revision", t.revision(), t.at.revision),
		equal("tools", ours(tools), []string{"add", "book", "count", "endless"}),
		equal("resources", ours(resources), []string{"notes://today"}),
		equal("templates", ours(templates), []string{"notes://days/{day}"}),
		equal("prompts", ours(prompts), []string{"plan"}),
		equal("prefixes without an offer", missing(slices.Concat(tools, resources, templates, prompts)), nil))
}

func (t *tour) calls(ctx context.Context) error {
	sum, err := t.call(ctx, "add", map[string]any{"a": 2, "b": 3})
	if err != nil {
		return err
	}
	invalid, err := t.call(ctx, "add", map[string]any{"a": 2})
	if err != nil {
		return err
	}
	denied, err := t.call(ctx, "add", map[string]any{"a": 2, "b": 3000})
	if err != nil {
		return err
	}
	_, hidden := t.call(ctx, "vault", nil)
	day, err := t.read(ctx, "notes://days/friday")
	plan, err2 := t.prompt(ctx, "plan", map[string]string{"day": "friday"})
	return errors.Join(err, err2,
		equal("sum", sum.structured, any(map[string]any{"sum": 5.0})),
		equal("invalid call", invalid.code, "INVALID_INPUT"),
		equal("denied call", *denied, result{text: "Sums stay small", code: "POLICY_DENIED"}),
		contains("call of the hidden tool", fmt.Sprint(hidden), "vault"),
		equal("resource", day, "Nothing on friday"),
		equal("prompt", plan, "Plan friday"))
}

func (t *tour) told(ctx context.Context) error {
	if err := t.wantLogs(ctx); err != nil {
		return err
	}
	got, err := t.call(ctx, "count", nil)
	if err != nil {
		return err
	}
	steps, err := take(ctx, t.progress, 3)
	logs, err2 := take(ctx, t.logs, 3)
	return errors.Join(err, err2,
		equal("result", got.text, "counted to three"),
		equal("progress", steps, []string{"1/3 at 1", "2/3 at 2", "3/3 at 3"}),
		equal("log messages", logs, []string{"info", "info", "info"}))
}

// scriptStopped is the log message of a hook in tour.d.
const scriptStopped = "the script of endless has stopped"

func (t *tour) cancel(ctx context.Context) error {
	return errors.Join(t.abandon(ctx), t.said(ctx, scriptStopped))
}

// abandon calls a tool that never ends, and cancels the call when it runs.
func (t *tour) abandon(ctx context.Context) error {
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := t.call(running, "endless", nil)
		ended <- err
	}()
	if _, err := take(ctx, t.progress, 1); err != nil {
		return err
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		return fmt.Errorf("the abandoned call returned %w", err)
	}
	return nil
}

func (t *tour) elicit(ctx context.Context) error {
	t.answers <- answer{"accept", map[string]any{"guests": 4}}
	t.answers <- answer{action: "decline"}
	booked, err := t.call(ctx, "book", map[string]any{"day": "Monday"})
	if err != nil {
		return err
	}
	declined, err := t.call(ctx, "book", map[string]any{"day": "Monday"})
	if err != nil {
		return err
	}
	asked := <-t.questions
	schema, _ := asked.schema.(map[string]any)
	return errors.Join(
		equal("question", asked.message, asks()+"How many come on Monday?"),
		equal("required fields", schema["required"], any([]any{"guests"})),
		equal("answer", booked.text, "A table for 4 on Monday"),
		equal("declined answer", declined.text, "No table on Monday: declined"))
}

// asks returns the label of elicitations: empty if mcpd itself has the tools.
func asks() string {
	if upstream := os.Getenv("TOUR_ASKS"); upstream != "" {
		return "[" + upstream + "] "
	}
	return ""
}

func (t *tour) complete(ctx context.Context) error {
	argument, err := t.completePrompt(ctx, "plan", "day", "t")
	variable, err2 := t.completeTemplate(ctx, "notes://days/{day}", "day", "m")
	return errors.Join(err, err2,
		equal("argument", argument, []string{"tuesday"}),
		equal("variable", variable, []string{"monday"}))
}

// follow edits the notes until the client is notified: in the stateless
// revision, libraries return from subscribing before the server has received
// the subscription.
func (t *tour) follow(ctx context.Context) error {
	if before, err := t.read(ctx, "notes://today"); err != nil || before != "Nothing yet.\n" {
		return fmt.Errorf("the notes were %q, %w", before, err)
	}
	if err := t.subscribe(ctx, "notes://today"); err != nil {
		return err
	}
	text := ""
	for edit := 1; ; edit++ {
		text = fmt.Sprintf("Edit %d.\n", edit)
		if err := t.save("notes.md", []byte(text)); err != nil {
			return err
		}
		if notified, err := soon(ctx, t.updated); err != nil {
			return err
		} else if notified {
			break
		}
	}
	got, err := t.read(ctx, "notes://today")
	return errors.Join(err, equal("notes", got, text), t.unsubscribe(ctx, "notes://today"))
}

func (t *tour) reload(ctx context.Context) error {
	for version := 1; version <= 2; version++ {
		drain(t.changed)
		if err := t.put(fmt.Sprintf("added.%d.hcl", version), "added.hcl"); err != nil {
			return err
		}
		if _, err := take(ctx, t.changed, 1); err != nil {
			return err
		}
		tools, err := t.tools(ctx)
		if err != nil {
			return err
		}
		got, err := t.call(ctx, "added", nil)
		if err != nil {
			return err
		}
		if err := errors.Join(
			equal("tools", ours(tools), []string{"add", "added", "book", "count", "endless"}),
			equal("new tool", got.text, fmt.Sprint("version ", version))); err != nil {
			return err
		}
	}
	if err := errors.Join(t.put("broken.hcl", "broken.hcl"), t.said(ctx, "broken.hcl")); err != nil {
		return err
	}
	got, err := t.call(ctx, "added", nil)
	if err != nil {
		return err
	}
	return equal("tool with a broken file", got.text, "version 2")
}

// put installs a file of the edits in the tools directory.
func (t *tour) put(edit, name string) error {
	text, err := os.ReadFile(filepath.Join(t.edits, edit))
	if err != nil {
		return err
	}
	return t.save(name, text)
}

// save writes a temporary file and renames it, as editors do.
func (t *tour) save(name string, text []byte) error {
	draft := filepath.Join(t.at.home, "tools", ".draft")
	if err := os.WriteFile(draft, text, 0o644); err != nil {
		return err
	}
	return os.Rename(draft, filepath.Join(t.at.home, "tools", name))
}

// beside returns the prefixes of the names and URIs that the server offers in
// addition to the names of the tour.
func beside() []string { return strings.Fields(os.Getenv("TOUR_BESIDE")) }

// ours returns the offered names without those.
func ours(offered []string) []string {
	return slices.DeleteFunc(slices.Clone(offered), func(name string) bool {
		return slices.ContainsFunc(beside(), func(word string) bool { return strings.HasPrefix(name, word) })
	})
}

// missing returns the prefixes that no offered name has.
func missing(offered []string) (words []string) {
	for _, word := range beside() {
		if !slices.ContainsFunc(offered, func(name string) bool { return strings.HasPrefix(name, word) }) {
			words = append(words, word)
		}
	}
	return words
}
