package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/identity"
)

type addIn struct {
	A float64 `json:"a"`
	B float64 `json:"b"`
}

type addOut struct {
	Sum float64 `json:"sum"`
}

// native returns a server with one Go tool.
func native(tb testing.TB) *engine.Server {
	tb.Helper()
	s, err := adding(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// adding returns a loaded server with a tool that adds.
func adding(ctx context.Context) (*engine.Server, error) {
	s, err := engine.New(engine.Options{Name: "bench"})
	if err != nil {
		return nil, err
	}
	if err := engine.AddTool(s, engine.ToolOptions{Name: "add"}, addNumbers); err != nil {
		return nil, err
	}
	_, err = s.Load(ctx)
	return s, err
}

func addNumbers(_ context.Context, _ identity.Agent, in addIn) (addOut, error) {
	return addOut{in.A + in.B}, nil
}

// bareRequest holds the fields that the bare handler decodes.
type bareRequest struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  struct {
		Name      string         `json:"name"`
		Arguments addIn          `json:"arguments"`
		Meta      map[string]any `json:"_meta"`
	} `json:"params"`
}

// bareAnswer is the baseline: the same call with encoding/json only. It validates
// nothing.
func bareAnswer(request *bareRequest, out io.Writer) error {
	sum := addOut{request.Params.Arguments.A + request.Params.Arguments.B}
	text, err := json.Marshal(sum)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(map[string]any{"jsonrpc": "2.0", "id": request.ID, "result": map[string]any{
		"resultType":        "complete",
		"content":           []map[string]any{{"type": "text", "text": string(text)}},
		"structuredContent": sum,
		"_meta":             map[string]any{"io.modelcontextprotocol/serverInfo": map[string]string{"name": "bench", "version": ""}},
	}})
}

// bareHTTP is the baseline over net/http.
func bareHTTP(w http.ResponseWriter, r *http.Request) {
	var request bareRequest
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = bareAnswer(&request, w)
}

// bareStdio is the baseline over a pair of streams, until in ends.
func bareStdio(in io.Reader, out io.Writer) error {
	lines, written := bufio.NewReader(in), bufio.NewWriter(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return nil
		}
		var request bareRequest
		if err := json.Unmarshal(line, &request); err != nil {
			return err
		}
		if err := bareAnswer(&request, written); err != nil {
			return err
		}
		if err := written.Flush(); err != nil {
			return err
		}
	}
}
