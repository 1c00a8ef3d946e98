// Mcpgo serves the tools with github.com/mark3labs/mcp-go, as its documentation shows.
// It is tuned for speed: HTTP is stateless where the client needs no session, stdio has
// its default pool of workers, and the log is off. The library validates neither
// arguments nor results by their schemas unless a program turns it on. Here it is off,
// although the other libraries validate both.
package main

import (
	"context"
	"io"
	"log"
	"log/slog"
	"net/http"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpd/mcpd/bench/peers/servers/workload"
)

func main() {
	o := workload.Parse()
	s := newServer(o.Tools)
	switch o.Transport {
	case "stdio":
		if err := server.ServeStdio(s, server.WithErrorLogger(log.New(io.Discard, "", 0))); err != nil {
			log.Fatal(err)
		}
	case "sse":
		log.Fatal(workload.Serve(server.NewSSEServer(s, server.WithUseFullURLForMessageEndpoint(false), server.WithMessageEndpoint("/messages"))))
	default:
		mux := http.NewServeMux()
		mux.Handle("/mcp", server.NewStreamableHTTPServer(s,
			server.WithStateLess(!o.Sessions), server.WithStateful(o.Sessions),
			server.WithStreamableHTTPLogger(slog.New(slog.DiscardHandler))))
		log.Fatal(workload.Serve(mux))
	}
}

func newServer(count int) *server.MCPServer {
	s := server.NewMCPServer("mcpgo", "1", server.WithToolCapabilities(false))
	add := mcp.NewStructuredToolHandler(func(_ context.Context, _ mcp.CallToolRequest, in workload.AddIn) (workload.AddOut, error) {
		return workload.Add(in), nil
	})
	adding := func(name, description string) server.ServerTool {
		return server.ServerTool{
			Tool: mcp.NewTool(name, mcp.WithDescription(description),
				mcp.WithNumber("a", mcp.Required()), mcp.WithNumber("b", mcp.Required()), mcp.WithOutputSchema[workload.AddOut]()),
			Handler: add,
		}
	}
	tools := []server.ServerTool{
		adding("add", workload.AddDescription),
		{
			Tool: mcp.NewTool("blob", mcp.WithDescription(workload.BlobDescription)),
			Handler: func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return mcp.NewToolResultText(workload.Blob()), nil
			},
		},
	}
	for _, name := range workload.Fillers(count) {
		tools = append(tools, adding(name, workload.FillerDescription))
	}
	s.AddTools(tools...)
	return s
}
