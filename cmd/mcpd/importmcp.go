package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/federation"
	"github.com/mcpd/mcpd/internal/federation/lockfile"
	"github.com/mcpd/mcpd/internal/language/definition"
	"github.com/mcpd/mcpd/internal/language/hclfile"
	"github.com/mcpd/mcpd/internal/ops/openapi"
	"github.com/mcpd/mcpd/internal/ops/tooltest"
)

// mcpFlags holds the flags of import mcp.
type mcpFlags struct {
	importFlags
	bearer string
}

func newImportMCP(e env) *cobra.Command {
	var f mcpFlags
	cmd := &cobra.Command{
		Use:   "mcp URL | -- COMMAND [ARGUMENT...]",
		Short: "Connect an MCP server as an upstream",
		Long: `Mcp connects to an MCP server, at a URL or as a program, and prints its tools. If you agree, it
adds an upstream block to mcpd.hcl, and the tools in their current form to mcpd.lock.`,
		Example: `  mcpd import mcp https://mcp.example.com/mcp
  mcpd import mcp https://mcp.example.com/mcp --name issues --bearer ISSUES_TOKEN
  mcpd import mcp --name files -- npx -y @modelcontextprotocol/server-filesystem /srv`,
		Args: needs(1, math.MaxInt, "mcpd import mcp takes a URL, or -- and a command; see mcpd import mcp --help"),
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), e, args) },
	}
	f.add(cmd)
	cmd.Flags().StringVar(&f.name, "name", "", "`NAME` of the upstream; by default from the URL or the program")
	cmd.Flags().StringVar(&f.bearer, "bearer", "", "send the value of the environment variable `VARIABLE` as a bearer token")
	return cmd
}

func (f *mcpFlags) run(ctx context.Context, e env, args []string) error {
	block, err := f.block(e, args)
	if err != nil {
		return err
	}
	config, err := readCandidate(e, f.files.config)
	if err != nil {
		return err
	}
	was, err := f.definitions(ctx, e, unexplained, config)
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(was.Config.Upstreams, func(u definition.Upstream) bool { return u.Name == f.name }); i >= 0 {
		return f.exists(&was.Config.Upstreams[i], args)
	}
	if len(config.before) > 0 {
		block = "\n" + block
	}
	after, problems := hclfile.Format(hclfile.Source{Path: config.path, Bytes: append(slices.Clone(config.before), block...)})
	if problems.HasErrors() {
		return findingsError("%v", problems)
	}
	config.after = after
	drift, upstream, err := f.connect(ctx, e, config)
	if err != nil {
		return err
	}
	if err := f.show(e, block, drift); err != nil || f.dryRun {
		return err
	}
	if err := f.confirm(e, "Add the upstream, and accept these tools?"); err != nil {
		return err
	}
	return f.write(e, config, drift, upstream)
}

// exists returns the error for an upstream whose name is taken, by the same server or by another one.
func (f *mcpFlags) exists(u *definition.Upstream, args []string) error {
	if slices.Equal(u.Command, args) || len(args) == 1 && u.URL == args[0] {
		return usageError("%s: upstream %q is this server; to see how its tools have changed: mcpd lock diff %s; to accept them: mcpd lock accept %s", u.AddressRange, f.name, f.name, f.name)
	}
	return usageError("%s: there is an upstream %q at another address; choose another name with --name", u.AddressRange, f.name)
}

// directory returns the working directory of a program, relative to mcpd.hcl, if an argument is a path
// relative to this directory: mcpd may later start in another one. Otherwise it returns "".
func (f *mcpFlags) directory(e env, args []string) (string, error) {
	isPath := func(arg string) bool {
		_, err := e.disk.stat(e.resolve(arg))
		return err == nil && arg != "" && !filepath.IsAbs(arg)
	}
	if !slices.ContainsFunc(args, isPath) {
		return "", nil
	}
	here, err := filepath.Abs(e.resolve("."))
	if err != nil {
		return "", findingsError("%v", err)
	}
	config, err := filepath.Abs(e.resolve(filepath.Dir(f.files.config)))
	if err != nil {
		return "", findingsError("%v", err)
	}
	if relative, err := filepath.Rel(config, here); err == nil {
		here = relative
	}
	return filepath.ToSlash(here), nil
}

// block returns the upstream block, and the secret that it needs.
func (f *mcpFlags) block(e env, args []string) (string, error) {
	var b strings.Builder
	address := ""
	if len(args) == 1 && (strings.HasPrefix(args[0], "http://") || strings.HasPrefix(args[0], "https://")) {
		address = args[0]
	}
	if f.name == "" && address != "" {
		f.name = openapi.ImportName(hostName(address))
	} else if f.name == "" {
		f.name = openapi.ImportName(strings.TrimSuffix(filepath.Base(args[0]), filepath.Ext(args[0])))
	}
	if !importedName.MatchString(f.name) {
		return "", usageError("name the upstream with --name, in lower-case letters, digits and underscores")
	}
	if f.bearer != "" {
		if address == "" {
			return "", usageError("--bearer needs a URL: a program gets secrets with env in its upstream block")
		}
		fmt.Fprintf(&b, "secret %s { env = %s }\n\n", tooltest.QuoteHCL(f.name+"_token"), tooltest.QuoteHCL(f.bearer))
	}
	fmt.Fprintf(&b, "upstream %s {\n", tooltest.QuoteHCL(f.name))
	if address != "" {
		if at, err := url.Parse(address); err != nil || at.User != nil {
			return "", usageError("the URL is malformed, or contains a user; use --bearer, or a header in the upstream block")
		}
		fmt.Fprintf(&b, "  url = %s\n", tooltest.QuoteHCL(address))
	} else {
		words := make([]string, len(args))
		for i, arg := range args {
			words[i] = tooltest.QuoteHCL(arg)
		}
		fmt.Fprintf(&b, "  command = [%s]\n", strings.Join(words, ", "))
		dir, err := f.directory(e, args)
		if err != nil {
			return "", err
		}
		if dir != "" {
			fmt.Fprintf(&b, "  dir = %s\n", tooltest.QuoteHCL(dir))
		}
	}
	if f.bearer != "" {
		fmt.Fprintf(&b, "\n  header \"Authorization\" { value = \"Bearer ${secret.%s_token}\" }\n", f.name)
	}
	b.WriteString("}\n")
	return b.String(), nil
}

// connect loads the files with the new block, and returns what the server offers and the new upstream.
func (f *mcpFlags) connect(ctx context.Context, e env, config candidate) (drift federation.Drift, added definition.Upstream, err error) {
	s, err := f.overlaid(e, engine.Options{Mode: engine.Eager}, config)
	if err != nil {
		return drift, added, err
	}
	defer s.Close(ctx)
	report, err := s.Load(ctx)
	if err != nil {
		if printErr := printProblems(e, report); printErr != nil {
			return drift, added, printErr
		}
		return drift, added, loadError(report, f.files.config, err)
	}
	for _, u := range s.Snapshot().Inside().Definitions().Config.Upstreams {
		if u.Name == f.name {
			added = u
		}
	}
	for _, d := range s.Inside().Drifts() {
		if d.Upstream != f.name {
			continue
		}
		if d.Err != nil {
			return d, added, findingsError("nothing was changed: upstream %s cannot be listed: %s", f.name, diag.PrintableLines(d.Err.Error(), "  "))
		}
		return d, added, nil
	}
	return drift, added, findingsError("nothing was changed: upstream %s lists no tools", f.name)
}

// show prints the block and the tools.
func (f *mcpFlags) show(e env, block string, d federation.Drift) error {
	if _, err := fmt.Fprintf(e.text(), "%s\n", strings.TrimSpace(block)); err != nil {
		return err
	}
	for _, c := range d.Changes {
		if _, err := fmt.Fprintf(e.text(), "\n%s", c.Diff()); err != nil {
			return err
		}
		if c.New.Hides() {
			warnf(e, "tool %q of %s has invisible characters, shown as escapes", c.Name, c.Upstream)
		}
	}
	for _, why := range d.Unacceptable {
		warnf(e, "upstream %s: cannot accept %s", d.Upstream, why)
	}
	return nil
}

// write writes mcpd.hcl and mcpd.lock, both or none, and creates a missing tools directory, which the
// other verbs require. Tools that were not shown in full are not accepted.
func (f *mcpFlags) write(e env, config candidate, d federation.Drift, added definition.Upstream) error {
	path := e.resolve(f.files.lockPath())
	lock, err := lockfile.ReadOrNew(path)
	if err != nil {
		return findingsError("%v", err)
	}
	served := slices.Clone(d.Tools)
	d.Changes = slices.DeleteFunc(d.Changes, func(c lockfile.Change) bool {
		if !c.Complete() || c.Kind == lockfile.Removed {
			served = slices.DeleteFunc(served, func(name string) bool { return name == c.Name })
		}
		if !c.Complete() {
			warnf(e, "tool %q of %s is too long to show in full, and stays in quarantine; review it with mcpd lock diff --json", c.Name, c.Upstream)
		}
		return !c.Complete()
	})
	if lock = lock.Accept(d.Changes...); d.New {
		lock = lock.WithTools(f.name)
	}
	if err := writeAll(e, config); err != nil {
		return err
	}
	if err := lockfile.Write(path, lock); err != nil {
		return findingsError("%v", errors.Join(err, config.restore(e)))
	}
	wrote := fmt.Sprintf("wrote %s and %s", filepath.ToSlash(filepath.Clean(f.files.config)), filepath.ToSlash(f.files.lockPath()))
	created, err := f.createTools(e)
	if err != nil {
		return findingsError("%s; then: %v", wrote, err)
	}
	if created {
		wrote += ", and created the directory " + filepath.ToSlash(filepath.Clean(f.files.tools))
	}
	if err := tellAccepted(e, []federation.Drift{d}); err != nil {
		return err
	}
	var names []string // as agents see them; a server may list a name twice
	for _, name := range served {
		if name = shownName(added.LocalName(name)); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		wrote += fmt.Sprintf("\nthe tools of upstream %s are served as: %s", f.name, strings.Join(names, ", "))
	}
	_, err = fmt.Fprintln(e.text(), wrote)
	return err
}

// shownName returns a name for a line of output, quoted if it has characters that hide or end the line.
func shownName(name string) string {
	if quoted := strconv.Quote(name); diag.Printable(name) != name || quoted != `"`+name+`"` {
		return quoted
	}
	return name
}
