package definition

import (
	"slices"
	"strings"
	"time"

	"github.com/mcpd/mcpd/diag"
	"github.com/mcpd/mcpd/internal/base/wildcard"
	"github.com/mcpd/mcpd/internal/language/grant"
)

// Policy is a policy block. Exactly one of Allow and Deny is set, and exactly
// one of Reason and ReasonExpr.
type Policy struct {
	Name string
	Targets
	// OnResult says that the policy judges what calls return.
	OnResult bool
	// Exactly one of Allow, Deny and Approval decides; When may be nil.
	When, Allow, Deny, Approval *Body
	Reason                      string
	ReasonExpr                  *Body
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

// Limit is a limit block. It has a rate, a concurrency or both.
type Limit struct {
	Name string
	Targets
	// Key tells calls apart that are counted apart; nil counts all together.
	Key *Body
	// Calls are how many may be made in Per, and Burst how many in no time; all
	// are 0 when there is no rate.
	Calls, Burst int
	Per          time.Duration
	// Concurrency is how many calls may run at once; 0 is no bound.
	Concurrency int
	// Reason may be empty.
	Reason string

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
	// TimeoutRange is empty when no timeout is written.
	TimeoutRange diag.Range
	Grant        grant.Set
	// GrantRanges maps an object such as "http.crm" to its block.
	GrantRanges map[string]diag.Range
	Run         Body

	NameRange diag.Range
	Hashes
}

// The values of [Hook.On].
const (
	OnStart = "start"
	OnEnd   = "end"
	OnError = "error"
)

// Targets are what a policy, a limit or a hook is about. A list that is nil names
// everything of its kind, an empty one nothing: a block that has none of the
// lists is about everything, and one that has some about what they name. See
// [Covers].
type Targets struct {
	Tools []Name
	// Resources are names of resources, folders and templates.
	Resources []Name
	Prompts   []Name
}

// Name is a name, or a pattern in which * matches any run of characters, and
// where it stands.
type Name struct {
	Text  string
	Range diag.Range
}

// Matches reports whether the name, or the pattern in which * stands for any
// run of characters, fits a name.
func (n Name) Matches(name string) bool { return wildcard.Matches(n.Text, name) }

// Covers reports whether a list of names and patterns covers a name; a nil
// list covers all.
func MatchesAny(names []Name, name string) bool {
	return names == nil || slices.ContainsFunc(names, func(n Name) bool { return n.Matches(name) })
}

// IsName reports whether a definition may have the name: 1 to 64 letters,
// digits, dots, dashes and underscores.
func IsName(s string) bool {
	return s != "" && len(s) <= MaxName && strings.Trim(s, WordCharacters+".-") == ""
}

// MaxName is the length of a name in bytes.
const MaxName = 64

// IsToolName reports whether a tool or a prompt may have the name here that a server
// offers: 1 to 128 letters, digits, dots, dashes, underscores and slashes.
func IsToolName(s string) bool { return IsPattern(s) && !wildcard.Is(s) }

// MaxPatternName bounds a name with patterns and an upstream's prefix.
const MaxPatternName = 2 * MaxName

// IsPattern reports whether s may be a tool's name, also one that an upstream
// gives, in which * matches any run of characters.
func IsPattern(s string) bool {
	return s != "" && len(s) <= MaxPatternName && strings.Trim(s, WordCharacters+".-/*") == ""
}

// The characters of identifiers.
const (
	letters        = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	digits         = "0123456789"
	WordCharacters = letters + digits + "_"
)
