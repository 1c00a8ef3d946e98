package control

import (
	"encoding/json"
	"time"
)

// The actions of policies and limits.
const (
	// PolicyFiles takes a [PolicyFile] and returns a [PolicyFilesResult].
	PolicyFiles Action = "policy_files"
	// Replay takes a [PolicyEdit] and returns a [ReplayResult].
	Replay Action = "replay"
	// Limits returns [LimitUse] values, those that are nearest to their bound first.
	Limits Action = "limits"
)

// PolicyFile names a file with policies, as diagnostics do. The empty name is for none.
type PolicyFile struct {
	File string `json:"file,omitempty"`
}

// PolicyFilesResult lists the files of the serving revision that have policies, and mcpd.hcl. Text is
// the source of the file in the params, with secrets masked as in the source of an [ItemRow]. Problem says why
// these files cannot be edited here.
type PolicyFilesResult struct {
	Revision string   `json:"revision"`
	Files    []string `json:"files"`
	Text     string   `json:"text,omitempty"`
	Problem  string   `json:"problem,omitempty"`
}

// PolicyEdit is the text of a policy file after an edit. Literals that [PolicyFilesResult] masks have
// their value where the text before or after the edit is unchanged; an edit of such a line is an
// error. Revision is the one whose text was edited; empty for a text without masks.
type PolicyEdit struct {
	PolicyFile
	Text     string `json:"text"`
	Revision string `json:"revision,omitempty"`
}

// ReplayResult says what an edit changes. Problems are the diagnostics of the files with the edit, and
// Diagnostics the same as text, with excerpts. Counts is nil if the files have errors, or if Problem
// says why no calls were replayed.
type ReplayResult struct {
	Problems    json.RawMessage `json:"problems"`
	Diagnostics string          `json:"diagnostics"`
	Problem     string          `json:"problem,omitempty"`
	Counts      *ReplayCounts   `json:"counts,omitempty"`
	// Changes are the first changed calls, newest first.
	Changes []ReplayedCall `json:"changes"`
	// Truncated reports that older calls were not read, as the time or the bytes were used up.
	Truncated bool `json:"truncated,omitempty"`
}

// ReplayCounts counts replayed calls. Each is changed, Same or not judged: Unknown, or Gone if its item
// does not exist any more.
type ReplayCounts struct {
	Calls           int `json:"calls"`
	Judged          int `json:"judged"`
	Same            int `json:"same"`
	AllowedToDenied int `json:"allowed_to_denied"`
	DeniedToAllowed int `json:"denied_to_allowed"`
	// OtherChanges are to or from an approval or a refusal of the arguments.
	OtherChanges int `json:"other_changes"`
	Unknown      int `json:"unknown"`
	Gone         int `json:"gone"`
	// Reasons counts the unknown calls by reason.
	Reasons map[string]int `json:"unknown_reasons,omitempty"`
}

// ReplayedCall is a call that the edit decides differently. It has no arguments.
type ReplayedCall struct {
	Seq       uint64         `json:"seq"`
	Time      time.Time      `json:"time"`
	CallID    string         `json:"call_id"`
	Kind      string         `json:"kind"`
	Name      string         `json:"name"`
	Principal string         `json:"principal"`
	AuthKind  string         `json:"auth_kind"`
	Before    PolicyDecision `json:"before"`
	After     PolicyDecision `json:"after"`
}

// PolicyDecision is a verdict, as in a [MatrixCell], and the policy that decides it.
type PolicyDecision struct {
	Verdict string `json:"verdict"`
	Policy  string `json:"policy,omitempty"`
	Place   *Place `json:"place,omitempty"`
}

// LimitUse is how much of a limit block is in use. Kind is rate or concurrency; a block with both has
// two values. Bound is the limit in words. Shared reports that a store of all replicas counts. If the keys
// of that store are not known, Problem says why.
type LimitUse struct {
	Limit   string   `json:"limit"`
	Place   *Place   `json:"place,omitempty"`
	Kind    string   `json:"kind"`
	Bound   string   `json:"bound"`
	Shared  bool     `json:"shared,omitempty"`
	Problem string   `json:"problem,omitempty"`
	Keys    int      `json:"keys"`
	Most    []KeyUse `json:"most"`
}

// KeyUse is a key of a limit with its share in use, from 0 to 1. A key that may contain arguments, or that
// the server does not know, has only a Hash, which changes when the server restarts. AuthKind and Issuer
// describe the principal, if the key reads its id. All fields but Share are empty for a limit without a key.
type KeyUse struct {
	Key      string `json:"key,omitempty"`
	AuthKind string `json:"auth_kind,omitempty"`
	Issuer   string `json:"issuer,omitempty"`
	Hash     string `json:"hash,omitempty"`
	// Rest reports that these are all keys beyond the bound of separate ones.
	Rest  bool    `json:"rest,omitempty"`
	Share float64 `json:"share"`
}
