package identity

// ContradictionError says that a caller claims to be another agent than the one
// that its credential is bound to. It is to be refused as forbidden (403), and
// written down. It repeats neither id.
type ContradictionError struct{}

// Error says what to do.
func (*ContradictionError) Error() string {
	return "the credential is bound to another agent; claim that one, or none"
}

// Bind returns the agent that the caller is taken for: the one that the
// credential is bound to, verified, when it is bound to one, and otherwise the
// one that the caller claims, which is never verified. claimed holds what the
// caller itself has said, and nothing that was made up in its place, such as the
// name of its software. A claim that contradicts the binding is a
// [*ContradictionError].
func (p *Principal) Bind(claimed Agent) (Agent, error) {
	claimed.Verified = false
	if p.Agent == "" {
		return claimed, nil
	}
	if id := claimed.AgentID; id != "" && id != AnonymousAgent && id != p.Agent {
		return Agent{}, &ContradictionError{}
	}
	claimed.AgentID, claimed.Verified = p.Agent, true
	return claimed, nil
}
