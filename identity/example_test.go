package identity_test

import (
	"fmt"

	"github.com/mcpd/mcpd/identity"
)

// A credential that is bound to an agent decides which agent calls. Otherwise the claim of the
// caller is used, unverified.
func ExamplePrincipal_Bind() {
	bound := identity.Principal{ID: "ci", Kind: identity.KindKey, Agent: "deployer"}
	free := identity.Principal{ID: "ada", Kind: identity.KindToken}
	for _, principal := range []identity.Principal{bound, free} {
		agent, err := principal.Bind(identity.Agent{})
		fmt.Printf("%s: %q %t %v\n", principal.ID, agent.AgentID, agent.Verified, err)
	}
	_, err := bound.Bind(identity.Agent{AgentID: "reviewer"})
	fmt.Println(err)
	// Output:
	// ci: "deployer" true <nil>
	// ada: "" false <nil>
	// the credential is bound to another agent; claim that one, or none
}
