package call

// Code is one of the five reserved error codes of the RFC (section 14).
type Code string

const (
	// InvalidInput says that the arguments break the tool's input schema.
	InvalidInput Code = "INVALID_INPUT"
	// ToolNotFound says that there is no such tool, or none that this caller may know of.
	ToolNotFound Code = "TOOL_NOT_FOUND"
	// PolicyDenied says that a policy or a limit forbids the call.
	PolicyDenied Code = "POLICY_DENIED"
	// ExecutionError says that the tool failed, or that its result broke its output schema.
	ExecutionError Code = "EXECUTION_ERROR"
	// Timeout says that the tool did not end within its timeout.
	Timeout Code = "TIMEOUT"
)
