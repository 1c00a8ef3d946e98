// Package host does for scripts what they may not do themselves. A [Call] is
// the scripting.Host of one run of one body: it holds the grants of that body's
// definition and nothing else, checks every operation against them, and hands
// it to the broker that does it. [Mocks] answer instead when the run is a test.
package host
