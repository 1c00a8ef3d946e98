package serve

import (
	"cmp"
	"errors"
	"fmt"
	"syscall"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/auth/authn"
	"github.com/mcpd/mcpd/internal/protocol/mcp"
	"github.com/mcpd/mcpd/internal/protocol/transport/httpguard"
)

// Checks is the [engine.FrontChecks] of a [Front]: its Address and InsecureListen are those of
// [Options].
type Checks struct {
	Address        string
	InsecureListen bool
}

// CheckTool returns why a tool cannot be put on the wire.
func (Checks) CheckTool(m engine.Metadata) error {
	_, err := mcp.NewTool(toolInfo(m))
	return err
}

// CheckAuth returns why auth blocks cannot be applied together now.
func (Checks) CheckAuth(blocks []engine.Auth) error { return authn.Check(authnOptions(blocks)) }

// CheckTLS returns why the files of a tls block cannot be used now.
func (Checks) CheckTLS(t engine.ListenTLS) error {
	_, err := authn.NewTLS(tlsOptions(t))
	return err
}

// CheckListen returns why the front would not listen where the operator's file says: anyone
// could come in from elsewhere.
func (c Checks) CheckListen(l engine.Listen, auths []engine.Auth) error {
	if c.Address != "" || c.InsecureListen || httpguard.CheckListen(l.Address, true) != nil {
		return nil // what is no address is a mistake of its own
	}
	if httpguard.CheckListen(l.Address, l.TLS != nil && requiresCredentials(auths)) != nil {
		return fmt.Errorf("%q is not a loopback address, and there is no authentication with TLS: anyone who reaches it could call every tool", l.Address)
	}
	return nil
}

// CheckVacant returns an error that is [syscall.EADDRINUSE] if another program listens at the
// address. Anything else that is wrong with an address is for [Front.Run], and so is
// [DefaultAddress]: a program with a listener of its own names none.
func (c Checks) CheckVacant(l engine.Listen) error {
	address := cmp.Or(c.Address, l.Address)
	if address == "" {
		return nil
	}
	if err := httpguard.CheckAddressFree(address); errors.Is(err, syscall.EADDRINUSE) {
		return err
	}
	return nil
}

// ToolChecks is the [engine.FrontChecks] of programs that do not listen: it looks at tools alone.
type ToolChecks struct{}

// CheckTool returns why a tool cannot be put on the wire.
func (ToolChecks) CheckTool(m engine.Metadata) error { return Checks{}.CheckTool(m) }

// CheckAuth accepts all.
func (ToolChecks) CheckAuth([]engine.Auth) error { return nil }

// CheckTLS accepts all.
func (ToolChecks) CheckTLS(engine.ListenTLS) error { return nil }

// CheckListen accepts all.
func (ToolChecks) CheckListen(engine.Listen, []engine.Auth) error { return nil }

// CheckVacant accepts all.
func (ToolChecks) CheckVacant(engine.Listen) error { return nil }
