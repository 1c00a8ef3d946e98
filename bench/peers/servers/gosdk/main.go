// Gosdk serves the tools with github.com/modelcontextprotocol/go-sdk, as its quick start
// and docs/protocol.md show. It is tuned for speed: JSON responses instead of event
// streams, stateless HTTP where the client needs no session, and no log.
package main

import (
	"context"
	"log"
	"net/http"

	"github.com/mcpd/mcpd/bench/peers/servers/workload"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	o := workload.Parse()
	s := newServer(o.Tools)
	switch o.Transport {
	case "stdio":
		if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
			log.Fatal(err)
		}
	case "sse":
		log.Fatal(workload.Serve(mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil)))
	default:
		log.Fatal(workload.Serve(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s },
			&mcp.StreamableHTTPOptions{Stateless: !o.Sessions, JSONResponse: true})))
	}
}

func newServer(count int) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "gosdk", Version: "1"}, &mcp.ServerOptions{PageSize: max(count, 1)})
	add := func(_ context.Context, _ *mcp.CallToolRequest, in workload.AddIn) (*mcp.CallToolResult, workload.AddOut, error) {
		return nil, workload.Add(in), nil
	}
	mcp.AddTool(s, &mcp.Tool{Name: "add", Description: workload.AddDescription}, add)
	mcp.AddTool(s, &mcp.Tool{Name: "blob", Description: workload.BlobDescription},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: workload.Blob()}}}, nil, nil
		})
	for _, name := range workload.Fillers(count) {
		mcp.AddTool(s, &mcp.Tool{Name: name, Description: workload.FillerDescription}, add)
	}
	return s
}
