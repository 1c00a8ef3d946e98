package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/internal/federation"
	"github.com/mcpd/mcpd/internal/federation/lockfile"
)

// acceptFlags holds the flags of lock accept.
type acceptFlags struct {
	lockFlags
	hash  string
	force bool
	raw   bool
}

func newLockAccept(e env) *cobra.Command {
	var a acceptFlags
	cmd := &cobra.Command{
		Use:   "accept [UPSTREAM [TOOL...]]",
		Short: "Accept changed tools of upstream servers",
		Long: `Accept lists the tools of the upstream servers in mcpd.hcl, and writes them to mcpd.lock:
all changes, the changes of one upstream, or of some of its tools. A running server
applies the change and serves these tools.

A server can change its list between two requests. With --hash, the tool is accepted
only in the version that mcpd lock diff printed.

Invisible characters in a definition are served as escapes. Accept the tool with --raw
to serve them unchanged.`,
		Example: `  mcpd lock accept
  mcpd lock accept github search_code
  mcpd lock accept github search_code --hash 5f2fce6dea888958039a167bffc7d070e1bbc23be952067f26dd5e598f969b7f`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return a.run(cmd.Context(), e, args) },
	}
	cmd.Flags().StringVar(&a.hash, "hash", "", "accept the tool only if its definition has this `SHA256`")
	cmd.Flags().BoolVar(&a.force, "force", false, "also accept changes that are too long for mcpd lock diff to show in full")
	cmd.Flags().BoolVar(&a.raw, "raw", false, "serve the tools with their invisible characters unchanged")
	a.add(cmd)
	return cmd
}

// wholeHash matches the value of --hash. A prefix is not enough: a malicious server
// could search for another definition with the same prefix.
var wholeHash = regexp.MustCompile(`^[0-9a-f]{64}$`)

func (a *acceptFlags) run(ctx context.Context, e env, operands []string) error {
	if a.hash != "" && len(operands) != 2 {
		return usageError("--hash needs one tool: mcpd lock accept UPSTREAM TOOL --hash SHA256")
	}
	if a.hash != "" && !wholeHash.MatchString(a.hash) {
		return usageError("--hash takes a full SHA256, 64 hex digits, as printed by mcpd lock diff %s %s", operands[0], operands[1])
	}
	drifts, err := a.drifts(ctx, e, operands)
	if err != nil {
		return err
	}
	lock, err := lockfile.ReadOrNew(e.resolve(a.files.lockPath()))
	if err != nil {
		return findingsError("%v", err)
	}
	if a.raw {
		expose(lock, drifts, operands)
	}
	if err := a.check(drifts, operands); err != nil {
		return err
	}
	changed := 0
	for _, d := range drifts {
		lock, changed = lock.Accept(d.Changes...), changed+len(d.Changes)
		if d.New && d.Err == nil {
			lock, changed = lock.WithTools(d.Upstream), changed+1
		}
	}
	if changed > 0 {
		if err := lockfile.Write(e.resolve(a.files.lockPath()), lock); err != nil {
			return findingsError("%v", err)
		}
	}
	if err := tellAccepted(e, drifts); err != nil {
		return err
	}
	if tellUncompared(e, drifts) > 0 {
		return &exitError{code: exitFindings} // the messages were printed
	}
	return nil
}

// expose makes the changes of drifts raw. It adds the tools that were accepted before
// and are served with escapes.
func expose(lock *lockfile.Lock, drifts []federation.Drift, operands []string) {
	for i := range drifts {
		d := &drifts[i]
		differing := map[string]bool{}
		for j, c := range d.Changes {
			differing[c.Name] = true
			d.Changes[j].New = c.New.AsRaw()
		}
		for _, t := range lock.Tools(d.Upstream) {
			named := len(operands) < 2 || slices.Contains(operands[1:], t.Name())
			if named && !differing[t.Name()] && t.Hides() && !t.Raw() && slices.Contains(d.Tools, t.Name()) {
				d.Changes = append(d.Changes, lockfile.Change{Kind: lockfile.Changed, Upstream: d.Upstream, Name: t.Name(), Old: t, New: t.AsRaw()})
			}
		}
	}
}

// check rejects changes that the user did not name, or cannot have seen in full.
func (a *acceptFlags) check(drifts []federation.Drift, operands []string) error {
	differing := map[string]lockfile.Change{}
	for _, d := range drifts {
		for _, c := range d.Changes {
			if differing[c.Name] = c; !a.force && !c.Complete() {
				return findingsError("the change of %s %q is too long to show in full; review it with mcpd lock diff --json, then accept it with --force", c.Upstream, c.Name)
			}
		}
	}
	if len(operands) == 0 || drifts[0].Err != nil {
		return nil
	}
	for _, name := range operands[1:] {
		c, differs := differing[name]
		if !differs {
			return findingsError("upstream %s has no changed tool %q; mcpd lock diff shows the changed tools", operands[0], name)
		}
		if a.hash != "" && c.New.Hash() != a.hash {
			return findingsError("the definition of tool %q of %s does not match --hash; review it with mcpd lock diff %[2]s", name, operands[0])
		}
	}
	return nil
}

func tellAccepted(e env, drifts []federation.Drift) error {
	accepted := 0
	for _, d := range drifts {
		for _, c := range d.Changes {
			accepted++
			hash := ""
			if c.Kind != lockfile.Removed {
				hash = " sha256 " + c.New.Hash()
			}
			if c.New.Raw() {
				hash += " raw"
			}
			if _, err := fmt.Fprintf(e.text(), "accepted: %s %s %q%s\n", c.Kind, c.Upstream, c.Name, hash); err != nil {
				return err
			}
			if c.New.Hides() && !c.New.Raw() {
				warnf(e, "tool %q of %s has invisible characters, served as escapes; to serve them unchanged, use --raw", c.Name, c.Upstream)
			}
		}
	}
	switch {
	case accepted > 0:
		return nil
	case len(drifts) > 0 && !slices.ContainsFunc(drifts, func(d federation.Drift) bool { return d.Err == nil }):
		_, err := fmt.Fprintln(e.stdout, "nothing could be compared")
		return err
	}
	_, err := fmt.Fprintln(e.stdout, "nothing to accept")
	return err
}
