package mcp

import (
	"context"
	"slices"

	"github.com/mcpd/mcpd/internal/base/jsontext"
)

// LogLevels are the levels of log messages, the least severe first (RFC 5424
// section 6.2.1).
var LogLevels = [...]string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// severityOf returns the severity of a level, from 1 up; 0 when there is none of the name.
func severityOf(level string) int32 { return int32(slices.Index(LogLevels[:], level)) + 1 }

func setLevel(_ context.Context, c *request) (*result, *fault) {
	level, _ := jsontext.Text(jsontext.Get(c.params, "level"))
	severity := severityOf(level)
	if severity == 0 {
		return nil, invalidParams("params.level must be a log level")
	}
	c.origin.session.logLevel.Store(severity)
	return &result{}, nil
}

// logLevel returns the severity from which on the client wants to hear of what
// the call logs; 0 when it does not.
func (c *request) logLevel() (int32, *fault) {
	if c.era == legacy {
		return c.origin.session.logLevel.Load(), nil
	}
	if jsontext.IsNull(c.meta.logLevel) {
		return 0, nil
	}
	level, _ := jsontext.Text(c.meta.logLevel)
	severity := severityOf(level)
	if severity == 0 {
		return 0, invalidParams("params._meta: " + keyLogLevel + " must be a log level")
	}
	return severity, nil
}
