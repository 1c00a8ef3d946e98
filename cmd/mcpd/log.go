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

// logging are the flags of verbs that write a log.
type logging struct {
	level, format string
	// asked reports whether the level was written.
	asked func() bool
	// veil is over all that is logged, by workers and libraries too. It hides the
	// secrets of the server that has it in its options.
	veil engine.LogRedactor
}

var (
	logLevels  = []string{"debug", "info", "warn", "error"}
	logFormats = []string{"text", "json"}
)

func (l *logging) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&l.level, "log-level", "info", "log from `LEVEL` on: debug, info, warn or error")
	cmd.Flags().StringVar(&l.format, "log-format", "text", "write the log as `FORMAT`: text or json")
	l.asked = func() bool { return cmd.Flags().Changed("log-level") }
	_ = cmd.RegisterFlagCompletionFunc("log-level", cobra.FixedCompletions(logLevels, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("log-format", cobra.FixedCompletions(logFormats, cobra.ShellCompDirectiveNoFileComp))
}

// forMachines says that nothing but records may stand in the log.
func (l *logging) forMachines() bool { return l.format == "json" }

// open returns a logger on stderr, under the veil. The mistakes of files are part of it for
// machines only: people get them with the lines that they are in.
func (l *logging) open(e env) (*slog.Logger, error) {
	var level slog.Level
	if !slices.Contains(logLevels, l.level) || level.UnmarshalText([]byte(l.level)) != nil {
		return nil, usage("--log-level takes debug, info, warn or error")
	}
	options := &slog.HandlerOptions{Level: level}
	logger, err := l.logger(e, options)
	if err != nil {
		return nil, err
	}
	logger = l.veil.Logger(logger)
	// What libraries write goes the same way, and without what it quotes.
	e.libraryLog(strays{logger})
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
		return slog.New(slog.NewJSONHandler(seen{e.stderr}, options)), nil
	default:
		return nil, usage("--log-format takes text or json")
	}
}

// strays makes records of what libraries write to the log of the process.
type strays struct{ logger *slog.Logger }

// unsolicited begins what net/http says of a host that sends what nobody asked
// for, and quotes it: that may be a secret which the host was sent.
const unsolicited = "Unsolicited response received on idle HTTP channel"

func (s strays) Write(line []byte) (int, error) {
	if bytes.HasPrefix(line, []byte(unsolicited)) {
		s.logger.Debug("a host sent more than it was asked for")
	} else {
		s.logger.Warn("a library has something to say", slog.String("text", string(bytes.TrimRight(line, "\n"))))
	}
	return len(line), nil
}

// unsaid is a handler without the records of what call prints itself: how the
// load ended, that the call failed, and, unless all of it was asked for, which upstreams
// cannot be reached. They are known by attributes that only
// the engine sets: those of what a script logs are not the script's to choose.
// How a call failed waits in last until it is known what is printed of it.
type unsaid struct {
	slog.Handler
	all  bool
	last *atomic.Pointer[slog.Record]
}

// Handle passes on what call does not print itself, causes of failures too that
// callers are not told.
func (u unsaid) Handle(ctx context.Context, r slog.Record) error {
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
	// A cause with a stack is what the script threw, which is the message.
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

// tell passes on how the call failed, unless its cause is the message that is printed.
func (u unsaid) tell(ctx context.Context, message string) error {
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
