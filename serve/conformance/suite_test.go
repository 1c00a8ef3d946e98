//lint:file-ignore SA1019 roots are deprecated as of 2026-07-28, and are what older clients have

package conformance_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// scenario is a scenario of the official suite, or an additional one.
type scenario struct {
	name string
	// eras are the eras of the clients that it applies to.
	eras []era
	run  func(*visit)
}

var (
	both       = []era{legacy, modern}
	legacyOnly = []era{legacy}
	modernOnly = []era{modern}
)

// official are the server scenarios of the suite, by name. Only the suite
// itself checks HTTP headers and status codes.
var official = slices.Concat(lifecycleScenarios, toolScenarios, resourceScenarios, promptScenarios, askingScenarios, inputScenarios, taskScenarios)

// ours are scenarios that the suite lacks.
var ours = slices.Concat(listenScenarios, moreScenarios)

// suiteSize is the number of server scenarios in version 0.2.0-alpha.12.
const suiteSize = 65

// elsewhere are the scenarios of the suite that are not run here, and why.
var elsewhere = map[string]string{
	"dns-rebinding-protection":             "about the headers Host and Origin",
	"http-header-validation":               "about the headers Mcp-Method and Mcp-Name",
	"http-custom-header-server-validation": "about the headers Mcp-Param-*",
	"server-session-lifecycle":             "about the header Mcp-Session-Id, and DELETE",
	"server-sse-polling":                   "about the header Last-Event-ID, and events without data",
	"tasks-request-headers":                "about the headers Mcp-Method and Mcp-Name",
	"sep-2640-skills-directory":            noSkills,
	"sep-2640-skills-enumeration":          noSkills,
	"sep-2640-skills-manifest":             noSkills,
}

const noSkills = "extension not supported by mcpd"

// TestSuite_complete checks that each scenario of the suite is either run or
// excluded with a reason.
func TestSuite_complete(t *testing.T) {
	known := map[string]bool{}
	for name, reason := range elsewhere {
		if known[name] = true; reason == "" {
			t.Errorf("%s is excluded without a reason", name)
		}
	}
	for _, s := range official {
		if known[s.name] {
			t.Errorf("duplicate scenario %s", s.name)
		}
		known[s.name] = true
	}
	if len(known) != suiteSize {
		t.Errorf("%d scenarios run, %d excluded; the suite has %d", len(official), len(elsewhere), suiteSize)
	}
}

// TestSuite runs each scenario of the suite on each transport of its eras.
func TestSuite(t *testing.T) {
	for _, l := range lines {
		t.Run(l.name+" "+string(l.era), func(t *testing.T) {
			t.Parallel()
			site := serveFixtures(t)
			for _, s := range slices.Concat(official, ours) {
				if slices.Contains(s.eras, l.era) {
					t.Run(s.name, func(t *testing.T) { s.run(arrive(t, site, l)) })
				}
			}
		})
	}
}

// visit is one scenario on one line.
type visit struct {
	*testing.T
	line
	site *copies
	ctx  context.Context
}

func arrive(t *testing.T, s *copies, l line) *visit {
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	t.Cleanup(cancel)
	return &visit{T: t, line: l, site: s, ctx: ctx}
}

// session connects the client of the go-sdk.
func (v *visit) session(o *mcp.ClientOptions) *mcp.ClientSession {
	v.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1"}, o)
	client.AddRoots(&mcp.Root{URI: "file:///test/root", Name: "Test Root"})
	session, err := client.Connect(v.ctx, v.transport(v.T, v.site.site), &mcp.ClientSessionOptions{ProtocolVersion: string(v.era)})
	if err != nil {
		v.Fatal(err)
	}
	v.Cleanup(func() { session.Close() })
	if got := session.InitializeResult().ProtocolVersion; got != string(v.era) {
		v.Fatalf("protocol version %s", got)
	}
	return session
}

// connect connects a client that sees its wire, and opens a session in the
// legacy era.
func (v *visit) connect() *conn {
	v.Helper()
	c := v.bare()
	if v.era == legacy {
		c.initialize(string(legacy))
	}
	return c
}

// bare is connect without a session.
func (v *visit) bare() *conn {
	v.Helper()
	return connect(v.T, v.dial(v.T, v.site.site, v.era), v.era)
}

// same compares values as JSON. want is JSON.
func (v *visit) same(what string, got any, want string) {
	v.Helper()
	text, err := json.Marshal(got)
	if err != nil {
		v.Fatal(err)
	}
	if diff := cmp.Diff(decoded(v.T, want), decoded(v.T, string(text))); diff != "" {
		v.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func decoded(t *testing.T, text string) (value any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value
}

// one waits for a value from a handler of a client.
func one[T any](v *visit, notified <-chan T) (value T) {
	v.Helper()
	select {
	case value = <-notified:
	case <-v.ctx.Done():
		v.Fatal("no message for the client")
	}
	return value
}
