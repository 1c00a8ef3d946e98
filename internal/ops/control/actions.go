package control

import (
	"encoding/json"
	"time"

	"github.com/mcpd/mcpd/identity"
)

// The actions of the console and of programs like it. Their parameters are in
// [Request.Params].
const (
	// Catalog returns a [CatalogResult]: what the server serves.
	Catalog Action = "catalog"
	// Item takes an [ItemName] and returns an [ItemResult].
	Item Action = "item"
	// Explain takes an [ExplainCall] and returns an [ExplainResult]. It calls nothing.
	Explain Action = "explain"
	// Matrix takes a [MatrixQuery] and returns a [MatrixResult].
	Matrix Action = "matrix"
	// Try takes a [TryCall] and starts a stream of [TryEvent] lines. The response that
	// starts the stream is an empty object. The client writes a [TryAnswer] line for each ask. The
	// call is cancelled when the client closes its end.
	Try Action = "try"
	// Complete takes a [CompleteQuery] and returns a [CompleteResult]. It calls the completion as the
	// operator.
	Complete Action = "complete"
	// Calls takes a [CallQuery] and starts a stream of [Call] lines: recent calls, oldest first,
	// and then each call that ends.
	Calls Action = "calls"
	// Audit takes a [CallQuery] and returns an [AuditResult]: calls in the audit log, newest first.
	Audit Action = "audit"
	// Pins takes nothing and returns [Pin] values: tools of upstream servers that differ from
	// what was accepted.
	Pins Action = "pins"
	// Accept takes a [PinName], accepts the tool as [Pin] showed it, and returns an empty object.
	Accept Action = "accept"
	// Keys returns [Key] values. RevokeKey takes a [KeyName] and returns the [Key].
	Keys      Action = "keys"
	RevokeKey Action = "revoke_key"
	// Tasks returns [Task] values, at most 1,000: those that expire last. CancelTask takes a [TaskName] and returns an
	// empty object.
	Tasks      Action = "tasks"
	CancelTask Action = "cancel_task"
)

// CatalogResult lists what a server serves.
type CatalogResult struct {
	Revision string        `json:"revision"`
	Items    []ItemSummary `json:"items"`
}

// ItemName identifies an item. Kind is tool, resource, template or prompt; Address is a name or a
// URI.
type ItemName struct {
	Kind    string `json:"kind"`
	Address string `json:"address"`
}

// ItemSummary describes an item in a list. Summary is the first line of its description. Origin is
// "file", "go" or the name of an upstream server.
type ItemSummary struct {
	ItemName
	Title   string `json:"title,omitempty"`
	Summary string `json:"summary,omitempty"`
	Origin  string `json:"origin"`
	Place   *Place `json:"place,omitempty"`
}

// Place is a position in a file of the project. Line and Column count from 1.
type Place struct {
	File   string `json:"file"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
}

// ItemResult describes an item in full. Source is its block with secrets masked, as in an excerpt.
type ItemResult struct {
	ItemSummary
	Description string          `json:"description,omitempty"`
	Input       json.RawMessage `json:"input,omitempty"`
	Output      json.RawMessage `json:"output,omitempty"`
	Arguments   []Argument      `json:"arguments,omitempty"`
	Annotations json.RawMessage `json:"annotations,omitempty"`
	Grants      []string        `json:"grants,omitempty"`
	Source      string          `json:"source,omitempty"`
	Policies    []Policy        `json:"policies"`
	Limits      []string        `json:"limits"`
}

// Argument is an argument of a prompt or a variable of a template. Completes reports that it has a
// completion.
type Argument struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitempty"`
	Completes   bool   `json:"completes,omitempty"`
}

// Policy is a policy that covers an item. Place is nil for a policy in Go.
type Policy struct {
	Name  string `json:"name"`
	Place *Place `json:"place,omitempty"`
}

// As is the caller of a call that the operator makes as another principal. A nil Principal is the
// operator, and a nil Agent claims none.
type As struct {
	Principal *identity.Principal `json:"principal,omitempty"`
	Agent     *Agent              `json:"agent,omitempty"`
}

// Agent is the agent that a caller claims to be. The credential of the principal decides whether
// it is verified.
type Agent struct {
	AgentID   string            `json:"agent_id"`
	Model     string            `json:"model,omitempty"`
	RequestID string            `json:"request_id,omitempty"`
	Metadata  map[string]string `json:"metadata,omitempty"`
}

// ExplainCall is a call to explain. The address of a template stands for all URIs that it matches.
// Without arguments, the arguments are not known.
type ExplainCall struct {
	ItemName
	Arguments json.RawMessage `json:"arguments,omitempty"`
	As
}

// ExplainResult is an explanation. Verdict is as in mcpd policy explain --json, Lines say the same in
// words, and the other fields describe the error for the caller.
type ExplainResult struct {
	Verdict string       `json:"verdict"`
	Lines   []string     `json:"lines"`
	Code    string       `json:"code,omitempty"`
	Message string       `json:"message,omitempty"`
	Rulings []RulingLine `json:"rulings"`
}

// RulingLine is what one policy says.
type RulingLine struct {
	Policy
	Decides bool   `json:"decides"`
	Says    string `json:"says"`
}

// MatrixQuery asks what principals may call. Without principals, the server uses the operator and
// the principals of the latest calls and of the API keys. A matrix has at most 16 principals and 1,000 items.
type MatrixQuery struct {
	Principals []identity.Principal `json:"principals,omitempty"`
}

// MatrixResult has a row for each item and a cell for each principal. A cell is the verdict of the
// policies for arguments that are not known: allowed, denied, needs_approval, refused or unknown.
type MatrixResult struct {
	Principals []identity.Principal `json:"principals"`
	Items      []ItemName           `json:"items"`
	Cells      [][]MatrixCell       `json:"cells"`
	// Truncated reports that items or principals were left out.
	Truncated bool `json:"truncated,omitempty"`
}

// MatrixCell is a verdict and the policy that decides it.
type MatrixCell struct {
	Verdict string `json:"verdict"`
	Policy  string `json:"policy,omitempty"`
}

// CompleteQuery asks for values of an argument of a prompt, or of a variable of a template. Value is
// the typed text, and Arguments are the other arguments so far.
type CompleteQuery struct {
	ItemName
	Argument  string            `json:"argument"`
	Value     string            `json:"value,omitempty"`
	Arguments map[string]string `json:"arguments,omitempty"`
}

// CompleteResult has at most 100 values. More reports that there are more.
type CompleteResult struct {
	Values []string `json:"values"`
	More   bool     `json:"more,omitempty"`
}

// TryCall is a call of an item. Record asks for a test of it: see [TryResult].
type TryCall struct {
	ItemName
	Arguments json.RawMessage `json:"arguments,omitempty"`
	As
	Record bool `json:"record,omitempty"`
}

// TryEvent is one line of a tried call. One of its members is set. Result or Error is the last.
// Error says why the call ended without a result: the client has sent a line that answers nothing,
// or no answer in time.
type TryEvent struct {
	At       time.Time     `json:"at"`
	Progress *TryProgress  `json:"progress,omitempty"`
	Log      *TryLog       `json:"log,omitempty"`
	Step     *TryStep      `json:"step,omitempty"`
	Ask      []TryQuestion `json:"ask,omitempty"`
	Result   *TryResult    `json:"result,omitempty"`
	Error    string        `json:"error,omitempty"`
}

// TryProgress is a progress notification.
type TryProgress struct {
	Done    float64  `json:"done"`
	Total   *float64 `json:"total,omitempty"`
	Message string   `json:"message,omitempty"`
}

// TryLog is a log record of the script.
type TryLog struct {
	Level   string          `json:"level"`
	Message string          `json:"message"`
	Fields  json.RawMessage `json:"fields,omitempty"`
}

// TryStep is a part of the call that has ended: policies, the script, a host call, a nested call.
// Name has no argument values. Steps arrive in the order in which they end; Depth is 0 for the call
// itself, which is the last.
type TryStep struct {
	Name       string    `json:"name"`
	Began      time.Time `json:"began"`
	DurationMS float64   `json:"duration_ms"`
	Failed     string    `json:"failed,omitempty"`
	Depth      int       `json:"depth"`
}

// TryQuestion is a request for input: see [call.AskRequest].
type TryQuestion struct {
	Key    string          `json:"key"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// TryAnswer answers all questions of an ask, by key. Each response is a result of MCP.
type TryAnswer struct {
	Responses map[string]json.RawMessage `json:"responses"`
}

// TryResult is the outcome of a call. Code is empty if it succeeded. Reply is the MCP result of
// a resource or prompt. Test is the test block of a recorded call, and TestNotes say what it cannot
// repeat. TestProblem says why there is no test.
type TryResult struct {
	CallID     string          `json:"call_id"`
	Revision   string          `json:"revision"`
	Value      json.RawMessage `json:"value,omitempty"`
	Content    json.RawMessage `json:"content,omitempty"`
	Reply      json.RawMessage `json:"reply,omitempty"`
	Code       string          `json:"code,omitempty"`
	Message    string          `json:"message,omitempty"`
	Details    json.RawMessage `json:"details,omitempty"`
	Trace      string          `json:"trace,omitempty"`
	DurationMS float64         `json:"duration_ms"`

	Test        string   `json:"test,omitempty"`
	TestNotes   []string `json:"test_notes,omitempty"`
	TestProblem string   `json:"test_problem,omitempty"`
}

// CallQuery selects calls. Empty fields match any call. CallID matches the call, its other legs and
// the calls that it has made. Limit is the number of past calls, at most 1,000; 0 means 100. Before
// is a sequence number of the audit log: only calls before it are returned.
type CallQuery struct {
	Name      string `json:"name,omitempty"`
	Principal string `json:"principal,omitempty"`
	Outcome   string `json:"outcome,omitempty"`
	CallID    string `json:"call_id,omitempty"`
	Before    uint64 `json:"before,omitempty"`
	Limit     int    `json:"limit,omitempty"`
}

// Matches reports whether a call matches the names in the query. It ignores Before and Limit.
func (q *CallQuery) Matches(c *Call) bool {
	return (q.Name == "" || q.Name == c.Name) &&
		(q.Principal == "" || q.Principal == c.Principal) &&
		(q.Outcome == "" || q.Outcome == c.Outcome) &&
		(q.CallID == "" || q.CallID == c.CallID || q.CallID == c.RootID || q.CallID == c.ParentID)
}

// Call is a call that has ended. It has no arguments and no result. Time is when it began. Name is
// the name of the item in its file: it is empty for an unknown resource, and has no values of a
// template. Outcome is ok, input_required, rehearsed or an error code. Seq and Message are in the
// audit log only.
type Call struct {
	Seq        uint64    `json:"seq,omitempty"`
	Time       time.Time `json:"time"`
	CallID     string    `json:"call_id"`
	RootID     string    `json:"root_id,omitempty"`
	ParentID   string    `json:"parent_id,omitempty"`
	Depth      int       `json:"depth,omitempty"`
	Kind       string    `json:"kind"`
	Name       string    `json:"name"`
	Principal  string    `json:"principal"`
	AuthKind   string    `json:"auth_kind"`
	Issuer     string    `json:"issuer,omitempty"`
	Scopes     []string  `json:"scopes,omitempty"`
	Groups     []string  `json:"groups,omitempty"`
	Agent      string    `json:"agent,omitempty"`
	Via        string    `json:"via,omitempty"`
	Listener   string    `json:"listener,omitempty"`
	Outcome    string    `json:"outcome"`
	DeniedBy   string    `json:"denied_by,omitempty"`
	Message    string    `json:"message,omitempty"`
	DurationMS float64   `json:"duration_ms"`
	RequestID  string    `json:"request_id,omitempty"`
	TraceID    string    `json:"trace_id,omitempty"`
	Revision   string    `json:"revision,omitempty"`
}

// AuditResult has calls of the audit log. More reports that there may be older ones: ask for those
// before Next. Problem says why there are none: the server writes no audit log.
type AuditResult struct {
	Calls   []Call `json:"calls"`
	More    bool   `json:"more,omitempty"`
	Next    uint64 `json:"next,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// Pin is a tool of an upstream server that differs from what was accepted. Kind is added, changed
// or removed. Change is the diff that mcpd lock diff prints, and Digest identifies what was shown. A
// row without a digest has a Problem: the upstream cannot be compared, or the tool not accepted here.
type Pin struct {
	PinName
	Kind    string `json:"kind,omitempty"`
	Change  string `json:"change,omitempty"`
	Problem string `json:"problem,omitempty"`
}

// PinName identifies a [Pin]. Accept fails if the tool has changed since.
type PinName struct {
	Upstream string `json:"upstream"`
	Tool     string `json:"tool,omitempty"`
	Digest   string `json:"digest,omitempty"`
}

// Key is an API key; never the key itself.
type Key struct {
	KeyName
	Name      string     `json:"name"`
	Principal string     `json:"principal"`
	Scopes    []string   `json:"scopes,omitempty"`
	Groups    []string   `json:"groups,omitempty"`
	Agent     string     `json:"agent,omitempty"`
	State     string     `json:"state"`
	Created   time.Time  `json:"created"`
	Expires   *time.Time `json:"expires,omitempty"`
}

// KeyName identifies a key: the label of its auth block and its id.
type KeyName struct {
	Auth string `json:"auth"`
	ID   string `json:"id"`
}

// TokensResult is the result of Tokens and DropTokens, within the response that verbs of mcpd print.
type TokensResult struct {
	Tokens []Token `json:"tokens"`
	// Failure is the reason why some tokens could not be dropped.
	Failure string `json:"failure,omitempty"`
}

// Token is a stored OAuth token of a principal; never the token itself. Its JSON is also what mcpd
// token list --json prints.
type Token struct {
	Secret     string    `json:"secret"`
	Definition string    `json:"definition"`
	Principal  string    `json:"principal"`
	Kind       string    `json:"kind"`
	Issuer     string    `json:"issuer,omitempty"`
	Given      time.Time `json:"given,omitzero"`
	Renewed    time.Time `json:"renewed,omitzero"`
	Until      time.Time `json:"until,omitzero"`
}

// Task is a task of a client.
type Task struct {
	TaskName
	Tool    string    `json:"tool"`
	Status  string    `json:"status"`
	Created time.Time `json:"created"`
	Updated time.Time `json:"updated"`
}

// TaskName identifies a task by its owner and id.
type TaskName struct {
	Principal string `json:"principal"`
	AuthKind  string `json:"auth_kind"`
	Issuer    string `json:"issuer,omitempty"`
	Agent     string `json:"agent,omitempty"`
	ID        string `json:"id"`
}
