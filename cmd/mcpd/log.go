package main

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/mcpd/mcpd/engine"
)

// logging holds the flags of verbs that write a log.
type logging struct {
	level, format string
	// levelSet reports whether --log-level was set.
	levelSet func() bool
	// redactor redacts secrets in all records, including records of workers and libraries.
	// The server that has it in its options supplies the secrets.
	redactor engine.LogRedactor
}

var (
	logLevels  = []string{"debug", "info", "warn", "error"}
	logFormats = []string{"text", "json"}
)

func (l *logging) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&l.level, "log-level", "info", "log records of `LEVEL` and above: debug, info, warn or error")
	cmd.Flags().StringVar(&l.format, "log-format", "text", "write the log as `FORMAT`: text or json")
	l.levelSet = func() bool { return cmd.Flags().Changed("log-level") }
	_ = cmd.RegisterFlagCompletionFunc("log-level", cobra.FixedCompletions(logLevels, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("log-format", cobra.FixedCompletions(logFormats, cobra.ShellCompDirectiveNoFileComp))
}

// forMachines reports whether the log must hold only JSON records.
func (l *logging) forMachines() bool { return l.format == "json" }

// open returns a redacting logger on stderr. In the text format it leaves out
// diagnostics of files, which people get with source excerpts.
func (l *logging) open(e env) (*slog.Logger, error) {
	var level slog.Level
	if !slices.Contains(logLevels, l.level) || level.UnmarshalText([]byte(l.level)) != nil {
		return nil, usageError("--log-level takes debug, info, warn or error")
	}
	options := &slog.HandlerOptions{Level: level}
	logger, err := l.logger(e, options)
	if err != nil {
		return nil, err
	}
	logger = l.redactor.Logger(logger)
	// Libraries log through the same redactor, without what they quote.
	e.libraryLog(stdlogWriter{logger})
	return logger, nil
}

func (l *logging) logger(e env, options *slog.HandlerOptions) (*slog.Logger, error) {
	switch l.format {
	case "text":
		options.ReplaceAttr = func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && a.Key == "problems" {
				return slog.Attr{}
			}
			return a
		}
		return slog.New(slog.NewTextHandler(e.stderr, options)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(escapeWriter{e.stderr}, options)), nil
	default:
		return nil, usageError("--log-format takes text or json")
	}
}

// stdlogWriter turns what libraries write to package log into log records.
type stdlogWriter struct{ logger *slog.Logger }

// unsolicitedPrefix starts the message of net/http about an unexpected response. It quotes
// the response, which may hold a secret that the host was sent.
const unsolicitedPrefix = "Unsolicited response received on idle HTTP channel"

func (s stdlogWriter) Write(line []byte) (int, error) {
	if bytes.HasPrefix(line, []byte(unsolicitedPrefix)) {
		s.logger.Debug("discard unsolicited HTTP response")
	} else {
		s.logger.Warn("library message", slog.String("text", string(bytes.TrimRight(line, "\n"))))
	}
	return len(line), nil
}

// filterHandler drops the records that call prints itself: the result of the load, the failure
// of the call and, unless --log-level is set, unreachable upstreams. It recognizes them
// by attributes that only the engine sets; a script cannot choose top-level attributes.
// It holds the failure of a call in last until the command knows what it prints.
type filterHandler struct {
	slog.Handler
	all  bool
	last *atomic.Pointer[slog.Record]
}

// Handle passes on all other records, including causes of failures that callers do not
// get.
func (u filterHandler) Handle(ctx context.Context, r slog.Record) error {
	attrs := map[string]string{}
	r.Attrs(func(a slog.Attr) bool {
		attrs[a.Key] = a.Value.String()
		return true
	})
	_, loaded := attrs["revision"]
	_, mistaken := attrs["problems"]
	_, failed := attrs["code"]
	_, down := attrs["again_in"]
	_, late := attrs["after"]
	// A cause with a stack is an exception of the script; call prints it.
	printed := attrs["cause"] == "" || strings.Contains(attrs["cause"], "\n    at ")
	switch {
	case loaded || mistaken || failed && printed, attrs["upstream"] != "" && (down || late) && !u.all:
		return nil
	case failed:
		u.last.Store(&r)
		return nil
	}
	return u.Handler.Handle(ctx, r)
}

// tell passes on the failure of the call, unless its cause is the printed message.
func (u filterHandler) tell(ctx context.Context, message string) error {
	r := u.last.Load()
	if r == nil {
		return nil
	}
	told := false
	r.Attrs(func(a slog.Attr) bool {
		told = told || a.Key == "cause" && a.Value.String() == message
		return true
	})
	if told {
		return nil
	}
	return u.Handler.Handle(ctx, *r)
}
