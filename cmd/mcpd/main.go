// Command mcpd serves tools to AI agents over the Model Context Protocol. Tools are
// written in HCL and JavaScript. Each verb has a file; only env.go accesses the outside
// world.
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
	// Scripts, logs and tests use the same time zone on every machine.
	time.Local = time.UTC
	os.Exit(run(processEnv(), os.Args[1:]))
}

// Exit codes of all verbs.
const (
	exitOK       = 0
	exitFindings = 1 // errors in tool files, failed tests, a failed call, a second signal to stop
	exitUsage    = 2 // wrong flags, or errors in mcpd.hcl
)

// exitError ends a verb with an exit code. An empty text means that the message was
// already printed.
type exitError struct {
	code  int
	text  string
	cause error // for errors.Is; not printed
}

// Error returns the message to print.
func (e *exitError) Error() string { return e.text }

// Unwrap returns the cause, which is not printed.
func (e *exitError) Unwrap() error { return e.cause }

func findingsError(format string, args ...any) error {
	return &exitError{code: exitFindings, text: fmt.Sprintf(format, args...)}
}

func usageError(format string, args ...any) error {
	return &exitError{code: exitUsage, text: fmt.Sprintf(format, args...)}
}

func run(e env, args []string) int {
	root := newRoot(e)
	root.SetArgs(args)
	err := root.Execute()
	if err == nil {
		return exitOK
	}
	code := exitUsage
	var exit *exitError
	if errors.As(err, &exit) {
		code = exit.code
	}
	if err.Error() != "" {
		fmt.Fprintf(e.stderr, "mcpd: %s\n", sanitize(err.Error()))
	}
	return code
}

// sanitize returns untrusted text, such as the output of a tool, made safe for a
// terminal.
func sanitize(text string) string { return diag.PrintableLines(text, "") }

func newRoot(e env) *cobra.Command {
	root := &cobra.Command{
		Use:   "mcpd",
		Short: "Serve tools, resources and prompts to AI agents",
		Long: `mcpd serves tools, resources and prompts to AI agents over the Model Context
Protocol.

Tools and policies are HCL files with JavaScript code and CEL expressions. Save a
file, and the next call runs the new version. If a file has an error, the server
keeps the previous version.`,
		Example: `  mcpd init                      # write a small mcpd.hcl and tools.d
  mcpd serve                     # serve ./tools.d on http://127.0.0.1:8080/mcp
  mcpd dev                       # serve while you write: check, test and types on each save
  mcpd attach                    # connect a desktop client to the running server
  mcpd check                     # report all errors in the files
  mcpd diff old.d tools.d        # print the permissions that an edit adds
  mcpd test                      # run the test blocks in the tool files
  mcpd call add a=2 b=3          # call a tool from the command line
  mcpd console                   # open a web console of the running server
  mcpd status                    # print the state of the running server
  mcpd read runbook://restart    # read a resource
  mcpd compose                   # write docker-compose.yml and Kubernetes manifests
  mcpd audit verify              # verify the audit log
  mcpd policy explain add a=2    # print how each policy decides about a call
  mcpd bundle build . -o FILE    # pack the files for appliances
  mcpd lock diff                 # print changes to the tools of upstream servers`,
		Version:               version(),
		DisableFlagsInUseLine: true,
		SilenceErrors:         true,
		SilenceUsage:          true,
		RunE:                  helpOnVerbs,
		Args:                  cobra.ArbitraryArgs,
	}
	// mcpd without a verb prints help; the usage line must not suggest that form.
	root.SetUsageTemplate(strings.Replace(root.UsageTemplate(), "{{if .Runnable}}", "{{if and .Runnable .HasParent}}", 1))
	root.SetVersionTemplate(versionLine() + "\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError("%v; see %s --help", err, cmd.CommandPath())
	})
	root.SetIn(e.stdin)
	root.SetOut(e.stdout)
	root.SetErr(e.stderr)
	root.AddCommand(
		newServe(e), newDev(e), newAttach(e), newCheck(e), newDiff(e), newTest(e), newCall(e), newRead(e), newPrompt(e), newList(e), newFmt(e), newLSP(e), newTypes(e), newInit(e), newCompose(e), newKey(e), newToken(e), newAudit(e), newPolicy(e), newLock(e), newImport(e), newBundle(e), newStatus(e), newConsole(e), newReload(e), newHistory(e), newRollback(e), newVersion(e), newWorker(e), newSupervise(e),
	)
	refuseOtherShells(root)
	root.SetHelpCommand(newHelp())
	keepFlagOrder(root)
	return root
}

// keepFlagOrder makes help list the flags of all verbs in the order of their definition.
func keepFlagOrder(cmd *cobra.Command) {
	cmd.Flags().SortFlags, cmd.PersistentFlags().SortFlags = false, false
	for _, verb := range cmd.Commands() {
		keepFlagOrder(verb)
	}
}

// helpOnVerbs prints the help of a command with verbs, or rejects an unknown verb.
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
	return usageError("unknown verb %q; %s", name, hint)
}

// newHelp returns the help verb, which rejects unknown verbs. That of cobra exits with 0.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [VERB]",
		Short: "Print the help of a verb",
		RunE: func(cmd *cobra.Command, args []string) error {
			verb, rest, err := cmd.Root().Find(args)
			if err != nil {
				return usageError("%v", err)
			}
			verb.InitDefaultHelpFlag()
			return helpOnVerbs(verb, rest)
		},
		ValidArgsFunction: completeVerbs,
	}
}

// version returns the module version of the build.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "0.1.0-dev"
	}
	return info.Main.Version
}

// noOperand rejects operands.
func noOperand(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usageError("%s takes no operand %q; see %[1]s --help", cmd.CommandPath(), args[0])
	}
	return nil
}

// oneFolderArg accepts at most one operand, a directory.
func oneFolderArg(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usageError("mcpd %s takes one directory, not %d; see mcpd %[1]s --help", cmd.Name(), len(args))
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
		Long:  "Version prints the version of mcpd, the Go version and the platform of the build.",
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

// extensions returns all extensions except telemetry, which only serve uses.
func extensions() []engine.Extension {
	return []engine.Extension{codemode.New(), federation.New(), typescript.New(), oidc.New(), postgres.New(), sqlite.New()}
}
