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

// Checks is the [engine.FrontChecks] of a [Front]: set it in
// [engine.Options].Front, with the fields of the [Options] of the front. The zero
// value is for a front with zero Options.
type Checks struct {
	// Address is [Options].Address. If it is empty, the address in the config
	// file is checked.
	Address string
	// InsecureListen is [Options].InsecureListen. It accepts an address other
	// than loopback without authentication.
	InsecureListen bool
}

// CheckTool returns an error if a tool cannot be encoded for clients.
func (Checks) CheckTool(m engine.Metadata) error {
	_, err := mcp.NewTool(toolInfo(m))
	return err
}

// CheckAuth returns an error if the auth blocks cannot be applied now.
func (Checks) CheckAuth(blocks []engine.Auth) error { return authn.Check(authnOptions(blocks)) }

// CheckTLS returns an error if the files of a tls block cannot be used now.
func (Checks) CheckTLS(t engine.ListenTLS) error {
	_, err := authn.NewTLS(tlsOptions(t))
	return err
}

// CheckListen returns an error if the front would not listen at the configured
// address, because other machines could call every tool.
func (c Checks) CheckListen(l engine.Listen, auths []engine.Auth) error {
	if c.Address != "" || c.InsecureListen || httpguard.CheckListen(l.Address, true) != nil {
		return nil // an invalid address is a separate error
	}
	if httpguard.CheckListen(l.Address, l.TLS != nil && requiresCredentials(auths)) != nil {
		return fmt.Errorf("%q is not a loopback address, and there is no authentication with TLS: anyone who reaches it could call every tool", l.Address)
	}
	return nil
}

// CheckVacant returns an error that is [syscall.EADDRINUSE] if another program
// listens at the address. [Front.Run] reports other errors of an address.
// CheckVacant does not check [DefaultAddress], because a program with its own
// listener sets no address.
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

// ToolChecks is the [engine.FrontChecks] of programs that do not listen. It
// checks only tools.
type ToolChecks struct{}

// CheckTool returns an error if a tool cannot be encoded for clients.
func (ToolChecks) CheckTool(m engine.Metadata) error { return Checks{}.CheckTool(m) }

// CheckAuth returns nil.
func (ToolChecks) CheckAuth([]engine.Auth) error { return nil }

// CheckTLS returns nil.
func (ToolChecks) CheckTLS(engine.ListenTLS) error { return nil }

// CheckListen returns nil.
func (ToolChecks) CheckListen(engine.Listen, []engine.Auth) error { return nil }

// CheckVacant returns nil.
func (ToolChecks) CheckVacant(engine.Listen) error { return nil }
