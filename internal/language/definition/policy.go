package definition

import (
	"slices"
	"strings"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/wildcard"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// Policy is a policy block. Exactly one of Reason and ReasonExpr is set.
type Policy struct {
	Name string
	Targets
	// OnResult means that the policy judges the results of calls.
	OnResult bool
	// Exactly one of Allow, Deny and Approval is set; When may be nil.
	When, Allow, Deny, Approval *Code
	Reason                      string
	ReasonExpr                  *Code
	// Disclose is [DiscloseReason], [DiscloseGeneric] or [DiscloseHide].
	Disclose string

	NameRange diag.Range
	Hashes
}

// The values of [Policy.Disclose].
const (
	DiscloseReason  = "reason"
	DiscloseGeneric = "generic"
	DiscloseHide    = "hide"
)

// Limit is a limit block. It has a rate, a concurrency limit, or both.
type Limit struct {
	Name string
	Targets
	// Key groups the calls that are counted together; nil counts all calls together.
	Key *Code
	// Calls is the number of calls allowed per Per, and Burst the number allowed at once. All
	// are 0 if there is no rate.
	Calls, Burst int
	Per          time.Duration
	// Concurrency is the maximum number of concurrent calls; 0 means no limit.
	Concurrency int
	// Reason may be empty.
	Reason string
	// FailOpen allows calls that the shared store cannot count; otherwise they are denied.
	FailOpen bool

	NameRange diag.Range
	Hashes
}

// Hook is a hook block.
type Hook struct {
	Name string
	// On holds [OnStart], [OnEnd], [OnError], each at most once.
	On []string
	Targets
	Timeout time.Duration
	// TimeoutRange is zero if the block has no timeout.
	TimeoutRange diag.Range
	Grant        grant.Set
	// GrantRanges maps an object such as "http.crm" to its block.
	GrantRanges map[string]diag.Range
	Run         Code

	NameRange diag.Range
	Hashes
}

// The values of [Hook.On].
const (
	OnStart = "start"
	OnEnd   = "end"
	OnError = "error"
)

// Targets are the tools, resources and prompts that a policy, a limit or a hook applies to. A
// nil list matches everything of its kind, an empty list nothing. A block without lists applies
// to everything; a block with lists applies only to the listed names. See [MatchesAny].
type Targets struct {
	Tools []Name
	// Resources are names of resources, resource folders and resource templates.
	Resources []Name
	Prompts   []Name
}

// Name is a name or a pattern with * as wildcard, and its position.
type Name struct {
	Text  string
	Range diag.Range
}

// Matches reports whether name matches the name or pattern.
func (n Name) Matches(name string) bool { return wildcard.Matches(n.Text, name) }

// MatchesAny reports whether name matches any of the names and patterns. A nil list matches
// every name.
func MatchesAny(names []Name, name string) bool {
	return names == nil || slices.ContainsFunc(names, func(n Name) bool { return n.Matches(name) })
}

// IsName reports whether s is a valid name of a definition: 1 to 64 letters, digits, dots,
// dashes and underscores.
func IsName(s string) bool {
	return s != "" && len(s) <= MaxName && strings.Trim(s, WordCharacters+".-") == ""
}

// MaxName is the maximum length of a name in bytes.
const MaxName = 64

// IsToolName reports whether s is a valid name for a tool or prompt of an upstream: 1 to 128
// letters, digits, dots, dashes, underscores and slashes.
func IsToolName(s string) bool { return IsPattern(s) && !wildcard.Is(s) }

// MaxPatternName bounds a pattern, and a name with the prefix of an upstream.
const MaxPatternName = 2 * MaxName

// IsPattern reports whether s is a valid pattern of tool names, including names of upstream
// tools, with * as wildcard.
func IsPattern(s string) bool {
	return s != "" && len(s) <= MaxPatternName && strings.Trim(s, WordCharacters+".-/*") == ""
}

// The characters of identifiers.
const (
	letters        = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	digits         = "0123456789"
	WordCharacters = letters + digits + "_"
)
