// Command mcpd serves tools that are written in HCL and JavaScript to AI
// agents over the Model Context Protocol. One file holds each verb; env.go is
// the only place where the process meets the outside world.
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/extensions/codemode"
	"github.com/mcpd/mcpd/extensions/federation"
	"github.com/mcpd/mcpd/extensions/oidc"
	"github.com/mcpd/mcpd/extensions/postgres"
	"github.com/mcpd/mcpd/extensions/sqlite"
	"github.com/mcpd/mcpd/extensions/typescript"
)

func main() {
	// Scripts, logs and tests see the same time on every machine.
	time.Local = time.UTC
	os.Exit(run(processEnv(), os.Args[1:]))
}

// The exit codes of every verb.
const (
	exitGood     = 0
	exitFindings = 1 // broken tool files, failed tests, a failed call, a second signal to stop
	exitUsage    = 2 // wrong flags, or a broken mcpd.hcl
)

// exitError ends a verb with a code. What there was to say has been said when
// its text is empty.
type exitError struct {
	code  int
	text  string
	cause error // what errors.Is knows it by, where somebody asks
}

// Error returns what there is left to say.
func (e *exitError) Error() string { return e.text }

// Unwrap returns the cause, which is not said.
func (e *exitError) Unwrap() error { return e.cause }

func findings(format string, args ...any) error {
	return &exitError{code: exitFindings, text: fmt.Sprintf(format, args...)}
}

func usage(format string, args ...any) error {
	return &exitError{code: exitUsage, text: fmt.Sprintf(format, args...)}
}

func run(e env, args []string) int {
	root := newRoot(e)
	root.SetArgs(args)
	err := root.Execute()
	if err == nil {
		return exitGood
	}
	code := exitUsage
	var exit *exitError
	if errors.As(err, &exit) {
		code = exit.code
	}
	if err.Error() != "" {
		fmt.Fprintf(e.stderr, "mcpd: %s\n", printable(err.Error()))
	}
	return code
}

// printable returns text from elsewhere, such as what a tool or a server says,
// as it may be shown on a terminal.
func printable(text string) string { return diag.PrintableLines(text, "") }

func newRoot(e env) *cobra.Command {
	root := &cobra.Command{
		Use:   "mcpd",
		Short: "Serve tools, resources and prompts to AI agents",
		Long: `mcpd serves tools, resources and prompts to AI agents over the Model Context
Protocol.

All of them, and the policies on them, are HCL files with JavaScript bodies and
CEL expressions. Save a file, and the next call runs the new version; a file with
a mistake leaves the old version serving.`,
		Example: `  mcpd init                      # write a small mcpd.hcl and tools.d
  mcpd serve                     # serve ./tools.d on http://127.0.0.1:8080/mcp
  mcpd check                     # report every mistake in the files
  mcpd diff old.d tools.d        # print what power an edit adds
  mcpd test                      # run the test blocks beside the tools
  mcpd call add a=2 b=3          # call a tool from the command line
  mcpd status                    # tell how the server is that serves ./tools.d
  mcpd read runbook://restart    # read a resource
  mcpd compose                   # write docker-compose.yml and manifests of Kubernetes
  mcpd audit verify              # check what was written down of calls
  mcpd policy explain add a=2    # print what each policy says of a call
  mcpd lock diff                 # print what other servers changed of their tools`,
		Version:               version(),
		DisableFlagsInUseLine: true,
		SilenceErrors:         true,
		SilenceUsage:          true,
		RunE:                  helpOnVerbs,
		Args:                  cobra.ArbitraryArgs,
	}
	// mcpd alone prints help, and is no way to use it.
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), "{{if .Runnable}}", "{{if and .Runnable .HasParent}}", 1))
	root.SetVersionTemplate(versionLine() + "\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage("%v; see %s --help", err, cmd.CommandPath())
	})
	root.SetIn(e.stdin)
	root.SetOut(e.stdout)
	root.SetErr(e.stderr)
	root.AddCommand(
		newServe(e), newCheck(e), newDiff(e), newTest(e), newCall(e), newRead(e), newPrompt(e), newList(e), newFmt(e), newInit(e), newCompose(e), newKey(e), newToken(e), newAudit(e), newPolicy(e), newLock(e), newStatus(e), newReload(e), newVersion(e), newWorker(e), newSupervise(e),
	)
	refuseOtherShells(root)
	return root
}

// helpOnVerbs is what a command with verbs runs when none of its verbs is named.
func helpOnVerbs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return cmd.Help()
	}
	var verbs []string
	for _, verb := range cmd.Commands() {
		verbs = append(verbs, verb.Name())
	}
	name := args[0]
	hint := diag.DidYouMean(name, verbs)
	if hint == "" {
		hint = "see mcpd --help"
	}
	return usage("there is no verb %q; %s", name, hint)
}

// version is the version of the module that the binary was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "0.1.0-dev"
	}
	return info.Main.Version
}

// noOperand refuses the operands of a verb that takes none.
func noOperand(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("%s takes no %q; see %[1]s --help", cmd.CommandPath(), args[0])
	}
	return nil
}

// oneFolder lets a verb take a folder, and no more.
func oneFolder(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usage("mcpd %s takes one folder, not %d; see mcpd %[1]s --help", cmd.Name(), len(args))
	}
	return nil
}

const platform = runtime.GOOS + "/" + runtime.GOARCH

func versionLine() string {
	return fmt.Sprintf("mcpd %s %s %s", version(), runtime.Version(), platform)
}

func newVersion(e env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Long:  "Version prints the version of mcpd, and the Go and the platform that it was built with and for.",
		Args:  noOperand,
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return printJSON(e.stdout, struct {
					Version  string `json:"version"`
					Go       string `json:"go"`
					Platform string `json:"platform"`
				}{version(), runtime.Version(), platform})
			}
			_, err := fmt.Fprintln(e.stdout, versionLine())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

// extensions returns all extensions but telemetry, which a server that listens has.
func extensions() []engine.Extension {
	return []engine.Extension{codemode.New(), federation.New(), typescript.New(), oidc.New(), postgres.New(), sqlite.New()}
}
