//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
)

// addPaths adds the paths of a secret through stores and nested calls. Each returns what
// came back.
func (s *canaryServer) addPaths(t *testing.T) {
	t.Helper()
	host := strings.TrimPrefix(s.api.URL, "http://")
	for _, way := range []struct{ name, allow, act string }{
		{"keeps", "    kv \"own\" {}", `await kv.own.put("said", said); return await kv.own.get("said");`},
		{"queries", "    sql \"x\" {\n      driver = \"sqlite\"\n      dsn = \"../shelf/some.db\"\n      statement \"one\" { query = \"SELECT :said AS said\" }\n    }",
			`return await sql.x.query("one", { said });`},
		{"calls", "    call { tools = [\"echo_env\", \"shown_*\", \"broken\"] }", `
			const outcomes = [said];
			for (const name of ["echo_env", "broken"]) outcomes.push(await tools[name]({}).catch((e) => [e.message, e.code, String(e.stack)]));
			return outcomes;`},
		{"parses", "", `JSON.parse(said);`},
		{"fails", "", `null[said];`},
		{"refuses", "    kv \"small\" { max_value = \"4B\" }", `await kv.small.put(said, said);`},
	} {
		c := s.newSecret(way.name)
		s.secret(t, way.name, "env", c.value, "")
		s.outgoing = append(s.outgoing, c)
		s.tool(way.name, fmt.Sprintf("%s\n    http \"x\" {\n      hosts = [%q]\n      private_networks = true\n      header \"Authorization\" { value = secret.%s }\n    }", way.allow, host, way.name),
			fmt.Sprintf("const said = (await http.x.get(%q)).text(); %s", s.api.URL+"/echo", way.act))
	}
	s.addSecretFiles(t)
	s.addItems(t, host)
}

// addSecretFiles adds files with secrets that a script may read without a grant for the secret.
func (s *canaryServer) addSecretFiles(t *testing.T) {
	t.Helper()
	note, name := s.newSecret("note"), s.newSecret("name")
	shelf := filepath.Join(s.dir, "shelf")
	for _, folder := range []string{shelf, filepath.Join(shelf, name.core)} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s.write(t, "shelf/note", "It is "+note.value+".")
	s.write(t, "shelf/some.db", "")
	s.secret(t, "note", "file", note.value, "")
	s.secret(t, "name", "env", name.core, "")
	s.tool("reads", "    fs \"x\" { root = \"../shelf\" }", `return [await fs.x.readText("note"), await fs.x.list("."), await fs.x.readText("nothing").catch(String)];`)
}

// addItems adds a resource, a template, a prompt, their completions, a cached result and a
// task. Their scripts return the response of a host, or throw it.
func (s *canaryServer) addItems(t *testing.T, host string) {
	t.Helper()
	allow := func(name string) string {
		c := s.newSecret(name)
		s.secret(t, name, "file", c.value, "")
		s.outgoing = append(s.outgoing, c)
		return fmt.Sprintf("allow {\n    http \"x\" {\n      hosts = [%q]\n      private_networks = true\n      header \"Authorization\" { value = secret.%s }\n    }\n  }", host, name)
	}
	body := fmt.Sprintf(`const said = (await http.x.get(%q)).text(); console.log(said); log.warn(said, { said });`, s.api.URL+"/echo")
	fmt.Fprintf(&s.tools, "resource \"fine\" {\n  uri = \"canary://fine\"\n  %s\n  run = <<JS\n    %s return said;\n  JS\n}\n", allow("resource"), body)
	fmt.Fprintf(&s.tools, "resource_template \"bad\" {\n  uri_template = \"canary://bad/{id}\"\n  %s\n  complete \"id\" {\n    run = <<JS\n      %s return [said.slice(0, 90)];\n    JS\n  }\n  run = <<JS\n    %s throw new RpcError(-32002, said, { said });\n  JS\n}\n", allow("template"), body, body)
	fmt.Fprintf(&s.tools, "prompt \"fine\" {\n  %s\n  argument \"a\" {\n    complete {\n      run = <<JS\n        %s throw new Error(said);\n      JS\n    }\n  }\n  run = <<JS\n    %s return said;\n  JS\n}\n", allow("prompt"), body, body)
	fmt.Fprintf(&s.tools, "tool \"cached\" {\n  %s\n  read_only = true\n  cache { ttl = \"1h\" }\n  run = <<JS\n    %s return { said };\n  JS\n}\n", allow("cached"), body)
	fmt.Fprintf(&s.tools, "tool \"later\" {\n  task = \"required\"\n  %s\n  run = <<JS\n    %s progress(1, 2, said); return { said };\n  JS\n}\n", allow("later"), body)
	s.kinds = []kind{
		{"resources/read", `{"uri":"canary://fine"}`}, {"resources/read", `{"uri":"canary://bad/1"}`}, {"prompts/get", `{"name":"fine"}`},
		{"completion/complete", `{"ref":{"type":"ref/resource","uri":"canary://bad/{id}"},"argument":{"name":"id","value":"x"}}`},
		{"completion/complete", `{"ref":{"type":"ref/prompt","name":"fine"},"argument":{"name":"a","value":"x"}}`},
		{"tools/call", `{"name":"cached","arguments":{}}`}, {"tools/call", `{"name":"cached","arguments":{}}`},
		{"resources/list", `{}`}, {"tools/list", `{}`}, {"prompts/list", `{}`}, {"server/discover", `{}`},
	}
}

// kind is a request other than a tool call.
type kind struct{ method, params string }

// callOverOtherTransports sends the requests of other kinds, and all calls over the other transports.
func (s *canaryServer) callOverOtherTransports(t *testing.T, d *daemon) {
	t.Helper()
	for _, k := range s.kinds {
		_, answer, err := d.modern(k.method, k.params)
		if err != nil || strings.Contains(string(answer), `"code":-32601`) {
			t.Errorf("%s %s: %s, %v", k.method, k.params, answer, err)
		}
		s.addOutput(k.method+" "+k.params, string(answer))
	}
	s.pollTask(t, d)
	s.overWebSocket(t, d)
}

// pollTask starts a task and polls it until it ends.
func (s *canaryServer) pollTask(t *testing.T, d *daemon) {
	t.Helper()
	_, answer, err := d.modern("tools/call", `{"name":"later","arguments":{}}`)
	id := taskID.FindSubmatch(answer)
	if err != nil || id == nil {
		t.Fatalf("no task: %s, %v", answer, err)
	}
	s.addOutput("the task", string(answer))
	told, err := d.until(string(id[1]), "completed")
	if err != nil {
		t.Error(err)
	}
	s.addOutput("the task", string(told))
}

// overWebSocket calls every tool over a WebSocket of an older revision.
func (s *canaryServer) overWebSocket(t *testing.T, d *daemon) {
	t.Helper()
	socket := d.socket(t)
	defer socket.Close()
	for id, request := range append([]string{
		`"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"canary","version":"1"},"capabilities":{}}`, `"logging/setLevel","params":{"level":"debug"}`,
	}, s.calls()...) {
		if err := socket.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%s}`, id+1, request)); err != nil {
			t.Fatal(err)
		}
		for {
			_, text, err := socket.ReadMessage()
			if err != nil {
				t.Fatal(err)
			}
			s.addOutput("the WebSocket", string(text))
			if strings.Contains(string(text), fmt.Sprintf(`"id":%d,`, id+1)) {
				break
			}
		}
		if id == 0 {
			if err := socket.WriteMessage(websocket.TextMessage, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)); err != nil {
				t.Fatal(err)
			}
		}
	}
}
