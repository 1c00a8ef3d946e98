package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/call"
	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
	"github.com/mcpd/mcpd/internal/ops/tooltest"
	"github.com/mcpd/mcpd/scripting"
	"github.com/mcpd/mcpd/scripting/worker"
	"github.com/mcpd/mcpd/serve"
)

type callFlags struct {
	files   projectFlags
	log     logging
	args    string
	url     string
	keyFile string
	// cert and key are the files of the client certificate, and caCert verifies the server.
	cert, key, caCert string
	raw               bool
	// answers holds the values of --answer.
	answers []string
	// record is the file that gets a test of the call; "" for none. unrecorded says why the call
	// was not recorded.
	record     string
	unrecorded error
}

func newCall(e env) *cobra.Command {
	var f callFlags
	cmd := &cobra.Command{
		Use:   "call TOOL [NAME=VALUE...]",
		Short: "Call a tool from the command line",
		Long: `Call runs a tool from the files as serve does, with its policies and limits, and prints
the result. With --url it calls a running server.

A value is a string if the schema of the tool wants one, and JSON otherwise. Logs go
to standard error, and so do descriptions of images and other content; --raw prints
that content.

If the call needs an approval or input, mcpd asks at the terminal. --answer KEY=JSON
answers on the command line: true accepts and false declines; an object fills in a
form; a string is the response of a model; a list holds the URIs of roots. Without a
terminal, a missing answer is an error that names its key.

--record FILE appends a test to a file of the tools directory: the call with its result,
and mocks with the answers of its hosts. Values of secrets are replaced.`,
		Example: `  mcpd call add a=2 b=3
  mcpd call get_customer --json '{"customer_id": "C-1042"}'
  mcpd call add a=2 b=3 --url http://127.0.0.1:8080
  mcpd call wipe disk=sda --answer approval=true
  mcpd call get_customer customer_id=C-1042 --record tools.d/customer_test.hcl`,
		Args: needs(1, math.MaxInt, "name a tool: mcpd call TOOL [NAME=VALUE...]; mcpd list shows them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.checkJSON(cmd); err != nil {
				return err
			}
			if err := f.checkRecord(e); err != nil {
				return err
			}
			if f.url != "" {
				return callURL(cmd.Context(), e, &f, args[0], args[1:])
			}
			return callFiles(cmd.Context(), e, &f, args[0], args[1:])
		},
	}
	f.addArguments(cmd, "a tool")
	cmd.Flags().StringArrayVar(&f.answers, "answer", nil, "answer the input request KEY with `KEY=JSON`")
	cmd.Flags().BoolVar(&f.raw, "raw", false, "print the response or error of the REST API as JSON")
	cmd.Flags().StringVar(&f.record, "record", "", "append a test of the call, with mocks, to `FILE` in the tools directory")
	_ = cmd.MarkFlagFilename("record", "hcl")
	f.add(cmd, "call")
	cmd.ValidArgsFunction = completeTools(e, &f.files, &f)
	return cmd
}

// add adds the flags that call, read and prompt share.
func (f *callFlags) add(cmd *cobra.Command, verb string) {
	cmd.Flags().StringVar(&f.url, "url", "", verb+" the server at `URL`, or at unix:PATH, instead of the files")
	cmd.Flags().StringVar(&f.keyFile, "key-file", "", "send the API key or token in `FILE` to the server (default the variable "+keyVariable+")")
	cmd.Flags().StringVar(&f.cert, "cert", "", "present the client certificate in `FILE` to the server (PEM)")
	cmd.Flags().StringVar(&f.key, "key", "", "read the private key of --cert from `FILE` (PEM)")
	cmd.Flags().StringVar(&f.caCert, "cacert", "", "verify the server with the CA certificates in `FILE` (PEM; default: the certificates of the system)")
	for _, name := range []string{"key-file", "cert", "key", "cacert"} {
		_ = cmd.MarkFlagFilename(name)
	}
	f.files.add(cmd)
	f.files.upstreams.add(cmd)
	f.log.add(cmd)
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		f.files.note(cmd)
		if f.keyFile != "" && f.url == "" {
			return usageError("--key-file needs --url: without it the caller is the local user")
		}
		if (f.cert != "" || f.key != "" || f.caCert != "") && f.url == "" {
			return usageError("--cert, --key and --cacert need --url: without it the caller is the local user")
		}
		return nil
	}
}

// addArguments adds the flags for arguments. what is the noun in the messages.
func (f *callFlags) addArguments(cmd *cobra.Command, what string) {
	cmd.Flags().StringVar(&f.args, "json", "", "pass the JSON `OBJECT` as the arguments")
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usageError("%v; arguments of %s are written NAME=VALUE, without dashes; see %s --help", err, what, cmd.CommandPath())
	})
}

// checkJSON rejects an empty --json.
func (f *callFlags) checkJSON(cmd *cobra.Command) error {
	if f.args == "" && cmd.Flags().Changed("json") {
		return usageError("--json takes a JSON object")
	}
	return nil
}

// callFiles calls a tool of the files as the local user.
func callFiles(ctx context.Context, e env, f *callFlags, tool string, pairs []string) error {
	answers, err := answersOf(e, f.answers)
	if err != nil {
		return err
	}
	result, err := f.run(ctx, e, "mcpd-call", answers, func(s *engine.Snapshot) (request call.Request, err error) {
		var schema json.RawMessage
		if known := s.Tool(tool); known != nil {
			schema = known.Metadata().InputSchema
		}
		request.Name, request.Can = tool, call.Capabilities{Form: true, URL: true, Sample: true, Roots: true}
		request.Arguments, err = argumentsOf(f.args, pairs, schema)
		return request, err
	})
	if err != nil {
		return err
	}
	answers.tellUnused(e)
	err = printAnswer(e, f.answerOf(result), f.raw)
	if err == nil || f.unrecorded == nil {
		return cmp.Or(err, f.unrecorded)
	}
	fmt.Fprintf(e.stderr, "mcpd: %s\n", sanitize(f.unrecorded.Error()))
	return err
}

// run loads the files and executes a request as the local user. answers responds to its
// input requests; it is nil if the request cannot send any.
func (f *callFlags) run(ctx context.Context, e env, agent string, answers *answers, make func(*engine.Snapshot) (call.Request, error)) (call.Result, error) {
	logger, err := f.log.open(e)
	if err != nil {
		return call.Result{}, err
	}
	quiet := filterHandler{logger.Handler(), f.log.levelSet(), new(atomic.Pointer[slog.Record])}
	if !f.log.forMachines() {
		logger = slog.New(quiet)
	}
	x, _ := executor(e, executorWorker, worker.Options{}, logger)
	o := engine.Options{Logger: logger, LogRedactor: &f.log.redactor, Scripts: engine.Scripts{Executor: x}}
	s, err := f.files.open(e, o)
	if err != nil {
		return call.Result{}, err
	}
	defer s.Close(ctx)
	if err := f.files.load(ctx, e, s, f.raw); err != nil {
		return call.Result{}, err
	}
	request, err := make(s.Snapshot())
	if err != nil {
		return call.Result{}, err
	}
	request.Caller, request.Emit = callerOf(e, agent), printer{e}
	var recording *tooltest.Recording
	if f.record != "" {
		recording = new(tooltest.Recording)
		request.Emit = recordingPrinter{printer{e}, recording}
	}
	result, err := execute(ctx, s, request, answers, recording)
	if err != nil {
		return call.Result{}, err
	}
	if recording != nil {
		f.unrecorded = writeTest(ctx, e, f, s, recordedCall{recording, request, result, plainCaller(), nil})
	}
	if result.Err != nil {
		err = quiet.tell(ctx, result.Err.Message)
	}
	return result, err
}

// execute executes a request, with answers to its input requests. recording gets the answers, too,
// unless it is nil.
func execute(ctx context.Context, s *engine.Server, request call.Request, answers *answers, recording *tooltest.Recording) (call.Result, error) {
	result := s.Execute(ctx, request)
	for result.Ask != nil {
		responses, err := answers.to(result.Ask.Requests)
		if err != nil {
			return call.Result{}, err
		}
		if recording != nil {
			recording.Answers(result.Ask.Requests, responses)
		}
		request.Resume = &call.Resume{State: result.Ask.State, Responses: responses}
		result = s.Execute(ctx, request)
	}
	return result, nil
}

// callerOf returns the local user as the caller.
func callerOf(e env, agent string) identity.Caller {
	return identity.Caller{
		Principal: serve.LocalPrincipal(e.process.uid, e.process.username),
		Agent:     identity.Agent{AgentID: agent},
		Source:    identity.Source{Listener: "local"},
	}
}

// answer is the outcome of a call, in the format of the REST API (RFC section 13).
type answer struct {
	Ask     *askedJSON      `json:"ask,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Content json.RawMessage `json:"content,omitempty"`
	Error   string          `json:"error,omitempty"`
	Message string          `json:"message,omitempty"`
	Details json.RawMessage `json:"details,omitempty"`
	Trace   string          `json:"trace,omitempty"`
}

// askedJSON holds the input requests of a call over the REST API.
type askedJSON struct {
	Requests []call.AskRequest `json:"requests"`
	State    string            `json:"state"`
}

// answerOf returns the outcome of a local call. Without --raw it includes the stack of
// the script, which remote callers do not get.
func (f *callFlags) answerOf(r call.Result) answer {
	if r.Err != nil {
		a := answer{Error: string(r.Err.Code), Message: r.Err.Message, Trace: r.Err.Trace}
		if !f.raw {
			a.Trace = scripting.FormatStack(scripting.StackOf(r.Err), "")
		}
		if r.Err.Violations != nil {
			a.Details = r.Err.DetailsJSON()
		}
		return a
	}
	a := answer{Result: r.Value}
	if r.Rich {
		a.Content = r.Content
	}
	return a
}

// printAnswer prints a string as text and any other result as JSON. Images and other
// content beside a result go to stderr, so that stdout stays JSON.
func printAnswer(e env, a answer, raw bool) error {
	failed := &exitError{code: exitFindings}
	if raw {
		if err := printJSON(e.text(), a); err != nil {
			return err
		}
		if a.Error != "" {
			return failed
		}
		return nil
	}
	if a.Error != "" {
		failed.text = a.Error + ": " + a.Message
		if a.Trace != "" {
			failed.text += "\n  " + strings.ReplaceAll(a.Trace, "\n", "\n  ")
		}
		return failed
	}
	var text string
	if a.Content == nil && json.Unmarshal(a.Result, &text) == nil {
		_, err := fmt.Fprintln(e.text(), text)
		return err
	}
	if a.Content != nil && string(a.Result) == "null" {
		return printJSON(e.text(), a.Content)
	}
	if err := printJSON(e.text(), a.Result); err != nil {
		return err
	}
	return printContentBlocks(terminalWriter{e.stderr}, a.Content)
}

// plainCaller returns the local user without the name, and without the program that makes the call.
func plainCaller() identity.Caller { return identity.Caller{Principal: serve.LocalPrincipal("", "")} }

// recordingPrinter is a printer for a call that is recorded.
type recordingPrinter struct {
	printer
	*tooltest.Recording
}

// printer prints the progress of a running tool.
type printer struct{ e env }

func (p printer) Progress(done float64, total *float64, message string) {
	of := ""
	if total != nil {
		of = fmt.Sprintf("/%g", *total)
	}
	fmt.Fprintf(p.e.stderr, "progress: %g%s %s\n", done, of, diag.Printable(message))
}

// CloseStream does nothing: there is no connection.
func (p printer) CloseStream() {}

// Log does nothing: the log of the operator goes to the same terminal.
func (p printer) Log(string, string, json.RawMessage) {}
