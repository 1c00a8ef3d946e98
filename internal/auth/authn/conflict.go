package authn

import "github.com/mcpd/mcpd/identity"

// Conflict is a request whose credential is bound to another agent than its connection.
type Conflict struct {
	// Principal is whom the credential proves, with the agent that it is bound to.
	Principal identity.Principal
	// Agent is the one that the connection is bound to.
	Agent  string
	Source identity.Source
	// RequestID names the request, in its answer too.
	RequestID string
}

// conflictError refuses a request for its [Conflict]. It is errTwoAgents, and says between
// whom.
type conflictError struct {
	principal identity.Principal
	agent     string
}

func (*conflictError) Error() string { return errTwoAgents.Error() }

func (*conflictError) Unwrap() error { return errTwoAgents }
