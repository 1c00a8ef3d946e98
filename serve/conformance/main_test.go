// Package conformance_test runs the scenarios of the official conformance
// suite, which supports only Streamable HTTP, over every transport.
package conformance_test

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
