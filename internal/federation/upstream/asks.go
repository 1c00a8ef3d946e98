package upstream

import "github.com/modelcontextprotocol/go-sdk/mcp"

// Asks is what may be asked of a client.
type Asks struct{ Elicit, Sample, Roots bool }

// capabilities are those that the server is told once, where its revision has sessions.
func (a Asks) capabilities() *mcp.ClientCapabilities {
	c := &mcp.ClientCapabilities{}
	if a.Elicit {
		c.Elicitation = &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}, URL: &mcp.URLElicitationCapabilities{}}
	}
	if a.Sample {
		//lint:ignore SA1019 servers of earlier revisions than 2026-07-28 ask for it
		c.Sampling = &mcp.SamplingCapabilities{}
	}
	if a.Roots {
		//lint:ignore SA1019 as above
		c.RootsV2 = &mcp.RootCapabilities{}
	}
	return c
}

// allows reports whether the server may ask this.
func (a Asks) allows(method string) bool {
	switch method {
	case methodElicit:
		return a.Elicit
	case methodSample:
		return a.Sample
	}
	return a.Roots
}
