package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/mcpd/mcpd/scripting"
)

var (
	// errNoSecrets is what a Pool without a resolver says to itself.
	errNoSecrets = errors.New("no secrets are configured")
	// errNetwork is what the dialer refuses an address with.
	errNetwork = errors.New("the grant does not reach this network")
)

// fault makes the error that the script sees. The arguments are only what the
// script has passed itself, or figures of the grant.
func fault(code, format string, args ...any) *scripting.HostError {
	return &scripting.HostError{Code: code, Message: fmt.Sprintf(format, args...)}
}

// explain turns a failure of the network into what the script may know of it:
// the text of err may hold anything, from addresses to pieces of the answer.
func explain(ctx context.Context, host string, err error) *scripting.HostError {
	var dns *net.DNSError
	var alert tls.AlertError
	var cert *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case errors.Is(err, errNetwork):
		return fault(scripting.Denied, "%s is in a network that the grant does not reach (private_networks)", host)
	case errors.Is(ctx.Err(), context.Canceled):
		return fault(scripting.Unavailable, "the call was cancelled before %s answered", host)
	case ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded) || isTimeout(err):
		return fault(scripting.TimedOut, "%s did not answer in time", host)
	case errors.As(err, &dns):
		return fault(scripting.Unavailable, "%s was not found by its name", host)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fault(scripting.Unavailable, "%s refused the connection", host)
	case errors.As(err, &alert), errors.As(err, &cert), errors.As(err, &record):
		return fault(scripting.Unavailable, "no trusted TLS connection to %s could be made", host)
	}
	return fault(scripting.Unavailable, "%s gave no valid answer", host)
}

// cause returns what the operator may know of a failure: the operating
// system's and the name server's words, which quote nothing of the messages.
func cause(err error) string {
	var op *net.OpError
	var dns *net.DNSError
	switch {
	case errors.As(err, &op):
		return op.Error()
	case errors.As(err, &dns):
		return dns.Error()
	}
	return ""
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}
