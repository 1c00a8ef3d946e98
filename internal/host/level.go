package host

import "log/slog"

// level is how severe a record is: for the log, and by its name in MCP (2026-07-28
// server/utilities/logging), which has more of them.
type level struct {
	log slog.Level
	mcp string
}

// levelOf returns a level by the name that bodies, or servers behind this one, have for it.
func levelOf(name string) level {
	switch name {
	case "debug":
		return level{slog.LevelDebug, name}
	case "notice":
		return level{slog.LevelInfo, name}
	case "warn", "warning":
		return level{slog.LevelWarn, "warning"}
	case "error", "critical", "alert", "emergency":
		return level{slog.LevelError, name}
	default:
		return level{slog.LevelInfo, "info"}
	}
}
