// Bare is the baseline: a handler with net/http and encoding/json that decodes a
// request, does what it asks, and encodes the response. It validates nothing, and has
// no protocol library. Over HTTP it does not distinguish the revisions of MCP.
//
// With --isolated it passes each message to another process, which answers it: the least
// that a tool outside of the server's process costs.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"

	"github.com/mcpd/mcpd/bench/peers/servers/workload"
)

type request struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		ProtocolVersion string          `json:"protocolVersion"`
		Name            string          `json:"name"`
		Arguments       json.RawMessage `json:"arguments"`
		Meta            map[string]any  `json:"_meta"`
	} `json:"params"`
}

type tool struct {
	Name         string          `json:"name"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
}

type text struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// server holds the tools that it lists.
type server struct{ tools []tool }

func newServer(count int) *server {
	in := json.RawMessage(`{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]}`)
	out := json.RawMessage(`{"type":"object","properties":{"sum":{"type":"number"}},"required":["sum"]}`)
	s := &server{tools: []tool{
		{"add", workload.AddDescription, in, out},
		{"blob", workload.BlobDescription, json.RawMessage(`{"type":"object"}`), nil},
	}}
	for _, name := range workload.Fillers(count) {
		s.tools = append(s.tools, tool{name, workload.FillerDescription, in, out})
	}
	return s
}

// answer writes the response to a request. It writes nothing for a notification.
func (s *server) answer(message *request, out io.Writer) error {
	if message.ID == nil {
		return nil
	}
	result := map[string]any{
		"resultType": "complete",
		"_meta":      map[string]any{"io.modelcontextprotocol/serverInfo": map[string]string{"name": "bare", "version": "1"}},
	}
	switch message.Method {
	case "initialize":
		result["protocolVersion"] = message.Params.ProtocolVersion
		result["capabilities"] = map[string]any{"tools": map[string]any{}}
		result["serverInfo"] = map[string]string{"name": "bare", "version": "1"}
	case "tools/list":
		result["tools"] = s.tools
	case "tools/call":
		if message.Params.Name == "blob" {
			result["content"] = []text{{"text", workload.Blob()}}
			break
		}
		var in workload.AddIn
		if err := json.Unmarshal(message.Params.Arguments, &in); err != nil {
			return err
		}
		sum := workload.Add(in)
		encoded, err := json.Marshal(sum)
		if err != nil {
			return err
		}
		result["content"] = []text{{"text", string(encoded)}}
		result["structuredContent"] = sum
	default:
		return fmt.Errorf("unknown method %q", message.Method)
	}
	return json.NewEncoder(out).Encode(map[string]any{"jsonrpc": "2.0", "id": message.ID, "result": result})
}

// ServeHTTP answers one message.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var message request
	if err := json.NewDecoder(r.Body).Decode(&message); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if message.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := s.answer(&message, w); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

// stdio answers lines until in ends.
func (s *server) stdio(in io.Reader, out io.Writer) error {
	lines, written := bufio.NewReader(in), bufio.NewWriter(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return nil
		}
		var message request
		if err := json.Unmarshal(line, &message); err != nil {
			return err
		}
		if err := s.answer(&message, written); err != nil {
			return err
		}
		if err := written.Flush(); err != nil {
			return err
		}
	}
}

// isolated passes messages to child processes, one for each processor. A child has one message at
// a time.
type isolated chan *child

type child struct {
	in  io.Writer
	out *bufio.Reader
}

func isolate(tools int) (isolated, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	children := make(isolated, runtime.GOMAXPROCS(0))
	for range cap(children) {
		cmd := exec.Command(path, "--transport", "stdio", "--tools", strconv.Itoa(tools))
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			return nil, err
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			return nil, err
		}
		if err := cmd.Start(); err != nil {
			return nil, err
		}
		children <- &child{in, bufio.NewReader(out)}
	}
	return children, nil
}

// answer passes a line to a child, and its response to out.
func (i isolated) answer(line []byte, out io.Writer) error {
	c := <-i
	defer func() { i <- c }()
	if _, err := c.in.Write(line); err != nil {
		return err
	}
	response, err := c.out.ReadSlice('\n')
	if err == bufio.ErrBufferFull {
		var rest []byte
		response = bytes.Clone(response)
		rest, err = c.out.ReadBytes('\n')
		response = append(response, rest...)
	}
	if err != nil {
		return err
	}
	_, err = out.Write(response)
	return err
}

// ServeHTTP answers one request.
func (i isolated) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	line, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := i.answer(append(line, '\n'), w); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

// stdio answers lines until in ends. It expects a response to every line.
func (i isolated) stdio(in io.Reader, out io.Writer) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return nil
		}
		if err := i.answer(line, out); err != nil {
			return err
		}
	}
}

// handler serves both transports.
type handler interface {
	http.Handler
	stdio(in io.Reader, out io.Writer) error
}

func main() {
	o := workload.Parse()
	var s handler = newServer(o.Tools)
	if o.Isolated {
		children, err := isolate(o.Tools)
		if err != nil {
			log.Fatal(err)
		}
		s = children
	}
	if o.Transport == "stdio" {
		if err := s.stdio(os.Stdin, os.Stdout); err != nil {
			log.Fatal(err)
		}
		return
	}
	log.Fatal(workload.Serve(s))
}
