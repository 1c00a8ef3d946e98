package main

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// logging are the flags of verbs that write a log.
type logging struct{ level, format string }

var (
	logLevels  = []string{"debug", "info", "warn", "error"}
	logFormats = []string{"text", "json"}
)

func (l *logging) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&l.level, "log-level", "info", "log from `LEVEL` on: debug, info, warn or error")
	cmd.Flags().StringVar(&l.format, "log-format", "text", "write the log as `FORMAT`: text or json")
	_ = cmd.RegisterFlagCompletionFunc("log-level", cobra.FixedCompletions(logLevels, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("log-format", cobra.FixedCompletions(logFormats, cobra.ShellCompDirectiveNoFileComp))
}

// forMachines says that nothing but records may stand in the log.
func (l *logging) forMachines() bool { return l.format == "json" }

// open returns a logger on stderr. The mistakes of files are part of it for
// machines only: people get them with the lines that they are in.
func (l *logging) open(e env) (*slog.Logger, error) {
	var level slog.Level
	if !slices.Contains(logLevels, l.level) || level.UnmarshalText([]byte(l.level)) != nil {
		return nil, usage("--log-level takes debug, info, warn or error")
	}
	options := &slog.HandlerOptions{Level: level}
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
		return slog.New(slog.NewJSONHandler(e.stderr, options)), nil
	default:
		return nil, usage("--log-format takes text or json")
	}
}

// unsaid is a handler without the records of what call prints itself. What
// scripts log remains, and causes of failures that callers are not told.
type unsaid struct{ slog.Handler }

// Handle passes on what call does not print itself.
func (u unsaid) Handle(ctx context.Context, r slog.Record) error {
	switch r.Message {
	case "loaded", "the files have mistakes; nothing is served":
		return nil
	case "a call failed":
		cause := ""
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "cause" {
				cause = a.Value.String()
			}
			return true
		})
		// A cause with a stack is what the script threw, which is the message.
		if cause == "" || strings.Contains(cause, "\n    at ") {
			return nil
		}
	}
	return u.Handler.Handle(ctx, r)
}
