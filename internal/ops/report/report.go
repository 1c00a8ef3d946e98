// Package report sends the state of a server to a web server, so that the maker of many servers
// sees which of them serve what.
//
// A [Report] is one JSON object. A [Reporter] posts it again and again until it is stopped. It
// makes a new report for each attempt, so a receiver that was away gets the newest state, and
// nothing is stored.
package report

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/truncate"
	"github.com/mcpd/mcpd/internal/language/definition"
)

// Format is the version of the format. Later versions of mcpd may add members, and never rename or
// remove one.
const Format = "mcpd-report/1"

// Limits of a report. With them it has at most 128 KiB.
const (
	maxProblems = 100
	maxText     = 256 // bytes of a text that the files decide about
)

// Report is the state of a server at one moment. It has no arguments, results, principals,
// secrets, messages or names of tools.
type Report struct {
	Format string `json:"format"`
	// ID identifies the server: see [ID].
	ID     string            `json:"id"`
	Time   time.Time         `json:"time"`
	Labels map[string]string `json:"labels"`
	// Server is the name in the server block.
	Server        string    `json:"server"`
	Version       string    `json:"version"`
	Started       time.Time `json:"started"`
	UptimeSeconds int64     `json:"uptime_seconds"`
	// Healthy is false if mcpd status exits with 1. Ready is false if calls are rejected.
	Healthy       bool   `json:"healthy"`
	Ready         bool   `json:"ready"`
	RestartNeeded bool   `json:"restart_needed"`
	Revision      string `json:"revision"`
	// Bundle is nil for a server of a directory.
	Bundle *Bundle `json:"bundle,omitempty"`
	// Problems are the problems of the last load, at most 100.
	Problems        []Problem `json:"problems"`
	ProblemsOmitted int       `json:"problems_omitted,omitempty"`
	Serves          Serves    `json:"serves"`
	Loads           Loads     `json:"loads"`
	Calls           Calls     `json:"calls"`
	Upstreams       Upstreams `json:"upstreams"`
}

// Bundle is the bundle in service, and the state of its source.
type Bundle struct {
	Name    string    `json:"name"`
	Serial  int64     `json:"serial"`
	Digest  string    `json:"digest"`
	Expires time.Time `json:"expires,omitzero"`
	// Pending is the serial number of a newer bundle that is rolled out to other servers.
	Pending int64 `json:"pending,omitempty"`
	// Checked is the time of the last check of the source that found nothing wrong.
	Checked time.Time `json:"checked,omitzero"`
	// Problem is the code of what is wrong; "" for nothing. Problems are the problems of the files of the
	// newest bundle, if it cannot be loaded.
	Problem         string    `json:"problem,omitempty"`
	Problems        []Problem `json:"problems,omitempty"`
	ProblemsOmitted int       `json:"problems_omitted,omitempty"`
}

// Problem is a diagnostic without its texts, which may quote values.
type Problem struct {
	Code     string `json:"code"`
	Severity string `json:"severity"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
}

// Serves counts the items in service.
type Serves struct {
	Tools     int `json:"tools"`
	Resources int `json:"resources"`
	Templates int `json:"templates"`
	Prompts   int `json:"prompts"`
}

// Loads counts the loads since the start.
type Loads struct {
	Total  uint64 `json:"total"`
	Failed uint64 `json:"failed"`
}

// Calls counts the calls since the start, or since there is a report block, by outcome.
type Calls struct {
	Running  int               `json:"running"`
	Outcomes map[string]uint64 `json:"outcomes"`
}

// Upstreams counts the upstream servers.
type Upstreams struct {
	Total       int `json:"total"`
	Unreachable int `json:"unreachable"`
}

// ProblemsOf returns the codes and positions of diagnostics, and how many it left out.
func ProblemsOf(list diag.List) (problems []Problem, omitted int) {
	problems = []Problem{}
	for _, d := range list[:min(len(list), maxProblems)] {
		problems = append(problems, Problem{d.Code, d.Severity.String(), fileName(d.Range.File), d.Range.Start.Line, d.Range.Start.Column})
	}
	return problems, len(list) - len(problems)
}

// fileName returns the name of a file without characters that JSON encodes in several bytes, which
// would make a report too large.
func fileName(name string) string {
	return strings.Map(func(c rune) rune {
		if c < ' ' || c == utf8.RuneError || strings.ContainsRune("\"\\<>&\u2028\u2029", c) {
			return '_'
		}
		return c
	}, truncate.Start(name, maxText))
}

// ServerName returns the name of a server, cut to the limit of a report.
func ServerName(name string) string { return truncate.Start(name, maxText) }

// ID returns the ID of a server: the given one, or else a hash of the machine ID of the operating
// system, which must itself stay on the machine, or else the name of the host. machine is the content
// of /etc/machine-id, which has no ID during the first boot.
func ID(given, machine, host string) string {
	switch machine = strings.TrimSpace(machine); {
	case given != "":
		return given
	case len(machine) == 32 && strings.Trim(machine, "0123456789abcdef") == "":
		return hash(machine)
	case definition.IsApplianceLabel(host):
		return host
	}
	return hash(host)
}

// hash returns a hash of a text that is of no use in other programs.
func hash(text string) string {
	mac := hmac.New(sha256.New, []byte(text))
	mac.Write([]byte("mcpd-appliance/1"))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}
