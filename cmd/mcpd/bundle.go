package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/language/privdiff"
	"github.com/mcpd/mcpd/internal/ops/bundle"
	"github.com/mcpd/mcpd/scripting/worker"
)

func newBundle(e env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bundle",
		Short: "Build, sign, verify and push bundles for appliances",
		Long: `Bundle puts the files of a server in one signed file, for mcpd serve --bundle: mcpd.hcl,
mcpd.lock, *.mcpdvars and tools.d. Its manifest has a name, a serial number, an expiry
and the digest of every file.`,
		Example: `  mcpd bundle build . -o shop.bundle --name shop --serial 7 --expires 90d
  mcpd bundle sign shop.bundle --key release.key
  mcpd bundle verify shop.bundle --trust release.pub
  mcpd bundle diff shop-6.bundle shop.bundle`,
		Args: cobra.ArbitraryArgs,
		RunE: helpOnVerbs,
	}
	cmd.AddCommand(newBundleBuild(e), newBundleSign(e), newBundleTrust(e), newBundleVerify(e), newBundleInspect(e), newBundleDiff(e), newBundlePush(e))
	return cmd
}

func newBundleBuild(e env) *cobra.Command {
	var f projectFlags
	var about bundle.Manifest
	var out, expires, created, rollout string
	var rolloutLabels []string
	cmd := &cobra.Command{
		Use:   "build DIR",
		Short: "Build a bundle from a directory",
		Long: `Build writes a bundle of mcpd.hcl, mcpd.lock, *.mcpdvars and tools.d in DIR. It first
loads the files and runs their tests as an appliance does. No bundle is written if the
files have errors or a test fails. The exit code is 1 then, and 2 for errors in
mcpd.hcl.

The same files and flags, with --created, produce the same bytes.`,
		Example: `  mcpd bundle build . -o shop.bundle --name shop --serial 7
  mcpd bundle build . -o shop.bundle --name shop --serial 7 --expires 90d --min-version 1.4.0
  mcpd bundle build . -o shop.bundle --name shop --serial 7 --rollout 10% --rollout-label site=lab`,
		Args: oneOperand("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			about.Created = e.now()
			if created != "" {
				at, err := time.Parse(time.RFC3339, created)
				if err != nil {
					return usageError("--created takes a time such as 2026-01-02T03:04:05Z")
				}
				about.Created = at
			}
			if expires != "" {
				life, err := parseLife(expires)
				if err != nil {
					return err
				}
				about.Expires = about.Created.Add(life)
			}
			var err error
			if about.Rollout, err = parseRollout(rollout, rolloutLabels); err != nil {
				return err
			}
			data, err := bundle.Pack(engine.Dir(e.resolve(args[0])), about)
			if err != nil {
				return findingsError("%v", err)
			}
			if err := tryBundle(cmd.Context(), e, &f, data); err != nil {
				return err
			}
			return writeBundle(e, out, data, "built")
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&out, "out", "o", "", "write the bundle to `FILE` (required)")
	flags.StringVar(&about.Name, "name", "", "give the bundle the `NAME` (required)")
	flags.Int64Var(&about.Serial, "serial", 0, "give the bundle the serial number `N`, which must grow (required)")
	flags.StringVar(&expires, "expires", "", "let the bundle expire after `TIME`, such as 90d or 12h (default never)")
	flags.StringVar(&about.MinVersion, "min-version", "", "require at least mcpd `VERSION`, such as 1.4.0 (default any)")
	flags.StringVar(&created, "created", "", "set the time of the build to `TIME` in RFC 3339 (default now)")
	flags.StringVar(&rollout, "rollout", "", "let only the share `PERCENT` of the appliances take the bundle, such as 10% (default all)")
	flags.StringArrayVar(&rolloutLabels, "rollout-label", nil, "let only appliances with the label `NAME=VALUE` take the bundle (repeatable)")
	for _, name := range []string{"out", "name", "serial"} {
		_ = cmd.MarkFlagRequired(name)
	}
	f.addVars(cmd)
	return cmd
}

// parseRollout returns the rollout that flags describe; nil for none.
func parseRollout(share string, labels []string) (*bundle.Rollout, error) {
	if share == "" && len(labels) == 0 {
		return nil, nil
	}
	r := &bundle.Rollout{Percent: 100}
	var err error
	if share != "" {
		if r.Percent, err = strconv.Atoi(strings.TrimSuffix(share, "%")); err != nil || r.Percent < 1 || r.Percent > 100 {
			return nil, usageError("--rollout takes a whole percentage from 1%% to 100%%")
		}
	}
	r.Labels, err = parseLabels("--rollout-label", labels)
	return r, err
}

// readBundle reads a bundle from a file.
func readBundle(e env, name string) ([]byte, *bundle.Bundle, error) {
	data, err := e.disk.readFile(e.resolve(name))
	if err != nil {
		return nil, nil, usageError("read bundle: %v", err)
	}
	b, err := bundle.Read(data)
	if err != nil {
		return nil, nil, findingsError("%s: %v", name, err)
	}
	return data, b, nil
}

// writeBundle writes a bundle, and prints what it is.
func writeBundle(e env, name string, data []byte, verb string) error {
	b, err := bundle.Read(data)
	if err != nil {
		return err
	}
	err = e.disk.replaceFile(e.resolve(name), data)
	if errors.Is(err, fs.ErrNotExist) {
		err = e.disk.writeFile(e.resolve(name), data, 0o644)
	}
	if err != nil {
		return usageError("write bundle: %v", err)
	}
	_, err = fmt.Fprintf(e.stdout, "%s %s: %s, serial %d, %s, %s\n", verb, sanitize(name), b.Manifest.Name, b.Manifest.Serial, count(len(b.Manifest.Files), "file"), count(len(b.Signers()), "signature"))
	return err
}

// setBundle makes an engine load the files of bundles.
func setBundle(o *engine.Options, files fs.FS) error {
	tools, err := fs.Sub(files, "tools.d")
	if err != nil {
		return err
	}
	o.Files.Tools, o.Files.ToolsPath, o.Files.Config, o.Files.ConfigPath = tools, "tools.d", files, "mcpd.hcl"
	o.Files.Lock, o.Files.LockPath, o.Files.RequireTests = files, "mcpd.lock", true
	return nil
}

// openBundle loads the files of a bundle without connections, and prints their problems.
func openBundle(ctx context.Context, e env, f *projectFlags, o engine.Options, b *bundle.Bundle, asJSON bool) (*engine.Server, error) {
	o.Mode = engine.Offline
	if err := setBundle(&o, b.Files()); err != nil {
		return nil, err
	}
	f.config = o.Files.ConfigPath
	s, err := f.open(e, o)
	if err != nil {
		return nil, err
	}
	if err := f.load(ctx, e, s, asJSON); err != nil {
		return nil, errors.Join(err, s.Close(ctx))
	}
	return s, nil
}

// tryBundle loads the files of a bundle and runs their tests.
func tryBundle(ctx context.Context, e env, f *projectFlags, data []byte) error {
	b, err := bundle.Read(data)
	if err != nil {
		return err
	}
	x, _ := executor(e, executorWorker, worker.Options{}, slog.New(slog.NewTextHandler(e.stderr, nil)))
	s, err := openBundle(ctx, e, f, engine.Options{Scripts: engine.Scripts{Executor: x}}, b, false)
	if err != nil {
		return err
	}
	defer s.Close(ctx)
	results, err := s.RunTests(ctx, nil)
	if err != nil {
		return err
	}
	all := len(results)
	results = slices.DeleteFunc(results, engine.TestResult.Passed)
	if len(results) == 0 {
		return nil
	}
	if err := printTests(e, results, len(results)); err != nil {
		return err
	}
	return findingsError("%d of %s failed", len(results), count(all, "test"))
}

func newBundleSign(e env) *cobra.Command {
	var key string
	cmd := &cobra.Command{
		Use:   "sign FILE",
		Short: "Add a signature to a bundle",
		Long: `Sign adds a signature to a bundle, and keeps the signatures by other keys. The key is an
Ed25519 or ECDSA private key, in PEM as openssl writes it or as a JWK.`,
		Example: `  openssl genpkey -algorithm ed25519 -out release.key
  openssl pkey -in release.key -pubout -out release.pub
  mcpd bundle sign shop.bundle --key release.key`,
		Args: oneOperand("FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			data, _, err := readBundle(e, args[0])
			if err != nil {
				return err
			}
			private, err := e.disk.readFile(e.resolve(key))
			if err != nil {
				return usageError("read key: %v", err)
			}
			signed, err := bundle.Sign(data, private)
			if err != nil {
				return usageError("%s: %v", key, err)
			}
			return writeBundle(e, args[0], signed, "signed")
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "sign with the private key in `FILE` (required)")
	_ = cmd.MarkFlagRequired("key")
	return cmd
}

func newBundleTrust(e env) *cobra.Command {
	var threshold int
	var name string
	cmd := &cobra.Command{
		Use:   "trust KEY...",
		Short: "Print a trust file with several keys",
		Long: `Trust prints a trust file with the public keys in the files KEY, in PEM as openssl writes
them or in other trust files. With --threshold, a bundle needs signatures by several of
them.`,
		Example: `  mcpd bundle trust ann.pub bob.pub --threshold 2 --name shop > trust.json`,
		Args:    needs(1, math.MaxInt, "mcpd bundle trust takes files with public keys; see mcpd bundle trust --help"),
		RunE: func(_ *cobra.Command, args []string) error {
			var keys [][]byte
			for _, arg := range args {
				text, err := e.disk.readFile(e.resolve(arg))
				if err != nil {
					return usageError("read key: %v", err)
				}
				keys = append(keys, text)
			}
			text, err := bundle.NewTrust(keys, threshold, name)
			if err != nil {
				return usageError("%v", err)
			}
			_, err = e.stdout.Write(text)
			return err
		},
	}
	cmd.Flags().IntVar(&threshold, "threshold", 1, "require signatures by `N` of the keys")
	cmd.Flags().StringVar(&name, "name", "", "accept only bundles with the `NAME` (default every name)")
	return cmd
}

func newBundleVerify(e env) *cobra.Command {
	var trustFile string
	cmd := &cobra.Command{
		Use:   "verify FILE",
		Short: "Verify the signatures of a bundle",
		Long: `Verify checks the form of a bundle, the digest of every file, the signatures, the trusted
name, the expiry and the minimum version. It does not load the files or run their tests,
as bundle build does. Only an appliance can check that the serial number grows. The exit
code is 1 if the bundle is refused.`,
		Example: `  mcpd bundle verify shop.bundle --trust release.pub`,
		Args:    oneOperand("FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := e.disk.readFile(e.resolve(trustFile))
			if err != nil {
				return usageError("read trust file: %v", err)
			}
			trust, err := bundle.ParseTrust(text)
			if err != nil {
				return usageError("%s: %v", trustFile, err)
			}
			_, b, err := readBundle(e, args[0])
			if err == nil {
				err = trust.Verify(b)
			}
			if err == nil {
				err = b.Manifest.Usable(version(), e.now())
			}
			var exit *exitError
			if errors.As(err, &exit) {
				return err
			}
			if err != nil {
				return findingsError("%s: %v", args[0], err)
			}
			_, err = fmt.Fprintf(e.stdout, "ok: %s, serial %d\n", b.Manifest.Name, b.Manifest.Serial)
			return err
		},
	}
	cmd.Flags().StringVar(&trustFile, "trust", "", "accept the public keys in `FILE` (required)")
	_ = cmd.MarkFlagRequired("trust")
	return cmd
}

func newBundleInspect(e env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "inspect FILE",
		Short:   "Print the manifest of a bundle",
		Long:    `Inspect prints the manifest of a bundle and the keys that signed it. It checks the digest of every file, but no signature.`,
		Example: `  mcpd bundle inspect shop.bundle --json`,
		Args:    oneOperand("FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			_, b, err := readBundle(e, args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(e.stdout, struct {
					Digest   string          `json:"digest"`
					Keys     []string        `json:"keys"`
					Manifest bundle.Manifest `json:"manifest"`
				}{b.Digest, b.Signers(), b.Manifest})
			}
			m := b.Manifest
			expires, least, keys := "never", "any", "none"
			if !m.Expires.IsZero() {
				expires = m.Expires.Format(time.RFC3339)
			}
			if m.MinVersion != "" {
				least = "mcpd " + sanitize(m.MinVersion)
			}
			if len(b.Signers()) > 0 {
				keys = strings.Join(b.Signers(), ", ")
			}
			table := tabwriter.NewWriter(e.stdout, 0, 0, 3, ' ', 0)
			fmt.Fprintf(table, "name\t%s\nserial\t%d\ncreated\t%s\nexpires\t%s\nneeds\t%s\nrollout\t%s\ndigest\t%s\nsigned by\t%s\n", m.Name, m.Serial, m.Created.Format(time.RFC3339), expires, least, m.Rollout, b.Digest, sanitize(keys))
			for _, f := range m.Files {
				fmt.Fprintf(table, "file\t%s, %d bytes\n", f.Path, f.Size)
			}
			return table.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

func newBundleDiff(e env) *cobra.Command {
	var d diffFlags
	cmd := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Print the permissions that a bundle adds",
		Long: `Diff compares two bundles as mcpd diff compares two directories. The exit code is 1 if
NEW adds a permission.`,
		Example: `  mcpd bundle diff shop-6.bundle shop-7.bundle`,
		Args:    needs(2, 2, "mcpd bundle diff takes two bundles, OLD and NEW; see mcpd bundle diff --help"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var sides [2]privdiff.Snapshot
			for i, name := range args {
				_, b, err := readBundle(e, name)
				if err != nil {
					return err
				}
				s, err := openBundle(cmd.Context(), e, &d.projectFlags, engine.Options{}, b, d.asJSON)
				if err != nil {
					return err
				}
				sides[i] = s.Snapshot().Inside().Definitions()
				if err := s.Close(cmd.Context()); err != nil {
					return err
				}
			}
			return d.finish(e, privdiff.Compare(sides[0], sides[1]))
		},
	}
	cmd.Flags().BoolVar(&d.asJSON, "json", false, "print the changes as JSON")
	d.addVars(cmd)
	return cmd
}
