package engine

import "github.com/mcpd/mcpd/call"

// What a call is made of stands in package call. These are its names here.
type (
	// Request is one call.
	Request = call.Request
	// Trace is where a request comes from, as its caller says.
	Trace = call.Trace
	// Result is what a call ends with.
	Result = call.Result
	// CallError is why a call failed, told to its caller.
	CallError = call.Error
	// Code is one of the five reserved error codes of the RFC (section 14).
	Code = call.Code
	// Violation is one way in which arguments break their schema.
	Violation = call.Violation
	// RPCError is a JSON-RPC error that a script raised with RpcError.
	RPCError = call.RPCError
	// Kind is a kind of what can be called.
	Kind = call.Kind
	// Via says what made a call.
	Via = call.Via
	// Capabilities are what the client of a call can be asked for.
	Capabilities = call.Capabilities
	// Ask says that a call waits for its client.
	Ask = call.Ask
	// AskRequest is one thing that a client is asked.
	AskRequest = call.AskRequest
	// Resume is what a client answered to an [Ask].
	Resume = call.Resume
	// Emitter receives what a tool tells its caller before the result.
	Emitter = call.Emitter
	// Cancellation says who had a call end before it had a result, and why.
	Cancellation = call.Cancellation
	// Answerer receives the result of a call.
	Answerer = call.Answerer
	// HookEvent is what a hook is told.
	HookEvent = call.Event
	// Phase is a point in the life of a call at which hooks fire (RFC section 12).
	Phase = call.Phase
)

// The kinds of what can be called.
const (
	Tools     = call.Tools
	Resources = call.Resources
	Templates = call.Templates
	Prompts   = call.Prompts
)

// What makes a call.
const (
	ViaClient = call.ViaClient
	ViaCode   = call.ViaCode
	ViaTool   = call.ViaTool
	ViaTest   = call.ViaTest
)

// Who can have a call end.
const (
	CancelledByClient     = call.CancelledByClient
	CancelledByConnection = call.CancelledByConnection
	CancelledBySession    = call.CancelledBySession
	CancelledByServer     = call.CancelledByServer
)

// The codes of the RFC.
const (
	InvalidInput   = call.InvalidInput
	ToolNotFound   = call.ToolNotFound
	PolicyDenied   = call.PolicyDenied
	ExecutionError = call.ExecutionError
	Timeout        = call.Timeout
)

// The phases of a call.
const (
	Start  = call.Start
	End    = call.End
	Failed = call.Failed
)
