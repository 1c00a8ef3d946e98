//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// canaryServer is a directory of mcpd and the servers that it calls. Each canary is a secret
// with a different source or use.
type canaryServer struct {
	canaryCheck
	dir, state string
	env        []string
	config     strings.Builder
	tools      strings.Builder
	names      []string // of tools
	kinds      []kind

	api, secure, desk *httptest.Server
	database          net.Listener
	fifo              string

	// control is a canary that a script may return. held belongs to a program that runs
	// until the test writes to fifo. grants are the canaries granted to programs.
	control, held canary
	leaked        string
	grants        []canary
	// outgoing must reach the API or the token server.
	outgoing []canary

	mu   sync.Mutex
	came strings.Builder
}

// echo returns the request as a status, a page, a header and invalid data.
func (s *canaryServer) echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	said := fmt.Sprint(r.Header["Authorization"], string(body))
	if user, secret, ok := r.BasicAuth(); ok {
		plain, _ := url.QueryUnescape(secret)
		said += " " + user + " " + secret + " " + plain
	}
	s.mu.Lock()
	s.came.WriteString(said + "\n")
	s.mu.Unlock()
	w.Header().Set("X-Echo", strings.Map(func(r rune) rune { return max(r, ' ') }, said))
	switch r.URL.Path {
	case "/pad": // longer than the data that a client echoes
		_, _ = io.WriteString(w, strings.Repeat("nothing ", 2000))
	case "/401":
		w.WriteHeader(http.StatusUnauthorized)
	case "/500":
		w.WriteHeader(http.StatusInternalServerError)
	case "/redirect":
		w.Header().Set("Location", "/echo")
		w.WriteHeader(http.StatusFound)
	case "/elsewhere":
		w.Header().Set("Location", "http://elsewhere.invalid/?"+url.QueryEscape(said))
		w.WriteHeader(http.StatusFound)
	case "/slow":
		<-r.Context().Done()
	case "/garbage", "/after":
		conn, buffered, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		if r.URL.Path == "/after" {
			_, _ = buffered.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
		_, _ = buffered.WriteString("HTTP/9 " + said + "\r\n\r\n")
		_ = buffered.Flush()
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"said": said, "twice": []string{said, said}})
	_, _ = io.WriteString(w, said+url.QueryEscape(said))
}

// token is a token server, or one that repeats the request.
func (s *canaryServer) token(token canary) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/token" {
			s.echo(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{"access_token": token.value, "token_type": "bearer", "expires_in": 3600})
	}
}

// refuse is a PostgreSQL server that rejects logins and repeats the password.
func (s *canaryServer) refuse() {
	for {
		conn, err := s.database.Accept()
		if err != nil {
			return
		}
		read := func(head int) string {
			b := make([]byte, head+4)
			if _, err := io.ReadFull(conn, b); err != nil {
				return ""
			}
			rest := make([]byte, max(0, int(b[head])<<24|int(b[head+1])<<16|int(b[head+2])<<8|int(b[head+3])-4))
			_, _ = io.ReadFull(conn, rest)
			return string(rest)
		}
		first := read(0)
		if strings.HasPrefix(first, "\x04\xd2\x16\x2f") { // an SSLRequest
			_, _ = io.WriteString(conn, "N")
			read(0)
		}
		_, _ = io.WriteString(conn, "R\x00\x00\x00\x08\x00\x00\x00\x03")
		password := strings.TrimRight(read(1), "\x00")
		s.mu.Lock()
		s.came.WriteString(password + "\n")
		s.mu.Unlock()
		fields := "SFATAL\x00C28P01\x00Mthe password " + password + " is wrong\x00\x00"
		_, _ = io.WriteString(conn, fmt.Sprintf("E\x00\x00%c%c%s", (len(fields)+4)>>8, (len(fields)+4)&0xff, fields))
		_ = conn.Close()
	}
}

// secret declares a secret from one of three sources.
func (s *canaryServer) secret(t *testing.T, name, source, value, more string) {
	t.Helper()
	path := filepath.Join(s.dir, "secrets", name)
	if err := os.WriteFile(path, []byte(value), 0o600); err != nil {
		t.Fatal(err)
	}
	where := map[string]string{
		"env": fmt.Sprintf("env = %q", "CANARY_"+strings.ToUpper(name)), "file": fmt.Sprintf("file = %q", path),
		"command": fmt.Sprintf("command = [%q, %q]", "/bin/cat", path),
	}[source]
	if source == "env" {
		s.env = append(s.env, "CANARY_"+strings.ToUpper(name)+"="+value)
	}
	fmt.Fprintf(&s.config, "secret %q {\n  %s\n  %s\n}\n", name, where, more)
}

// tool defines a tool that uses a secret and returns the result in every way.
func (s *canaryServer) tool(name, allow, act string) {
	s.names = append(s.names, name)
	fmt.Fprintf(&s.tools, `
tool %q {
  timeout = "20s"
  allow {
%s
  }
  run = <<JS
    try {
      const got = await (async () => { %s })();
      const text = JSON.stringify(got);
      console.log(text, got);
      log.debug(text, { got, text });
      progress(1, 2, text);
      if (text.includes("40") || text.includes("50")) throw new ToolError(text, { details: { got } });
      return { got, text, coded: btoa(encodeURIComponent(text)) };
    } catch (error) {
      console.error(error, String(error), error.stack);
      log.error(String(error), { message: error.message, stack: String(error.stack) });
      throw error;
    }
  JS
}
`, name, allow, act)
}

// request defines a tool that sends a secret in a header.
func (s *canaryServer) request(name, base, path, value, more string) {
	host := strings.TrimPrefix(strings.TrimPrefix(base, "http://"), "https://")
	s.tool(name, fmt.Sprintf(`    http "x" {
      hosts = [%q]
      private_networks = true
      %s
      header "Authorization" { value = %s }
    }`, host, more, value),
		fmt.Sprintf(`const r = await http.x.get(%q); return { status: r.status, headers: r.headers, body: r.text(), url: r.url };`, base+path))
}

// newCanaryServer creates the scene for an executor and starts the servers.
func newCanaryServer(t *testing.T, executor string) *canaryServer {
	t.Helper()
	s := &canaryServer{dir: t.TempDir(), state: t.TempDir()}
	for _, folder := range []string{"secrets", "tools.d"} {
		if err := os.Mkdir(filepath.Join(s.dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s.fifo = filepath.Join(s.dir, "fifo")
	if err := syscall.Mkfifo(s.fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	s.api, s.secure = httptest.NewServer(http.HandlerFunc(s.echo)), httptest.NewUnstartedServer(http.HandlerFunc(s.echo))
	s.secure.Config.ErrorLog = log.New(io.Discard, "", 0) // its certificate is not trusted
	s.secure.StartTLS()
	var err error
	if s.database, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	go s.refuse()
	t.Cleanup(func() { s.api.Close(); s.secure.Close(); _ = s.database.Close() })
	for _, source := range []string{"env", "file", "command"} {
		s.requests(t, source)
		s.others(t, source)
	}
	s.clients(t)
	s.read(t)
	s.addPaths(t)
	s.addAudit(t)
	if executor == executorWorker {
		s.addCrash(t)
	}
	s.write(t, "mcpd.hcl", s.config.String())
	s.write(t, "tools.d/all.hcl", s.tools.String())
	return s
}

func (s *canaryServer) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// requests adds the possible outcomes of a request.
func (s *canaryServer) requests(t *testing.T, source string) {
	t.Helper()
	for _, use := range []struct{ name, base, path, form, more string }{
		{"echo", s.api.URL, "/echo", `"Bearer ${secret.%s}"`, ""},
		{"basic", s.api.URL, "/echo", `"Basic ${base64encode("user:${secret.%s}")}"`, ""},
		{"denied", s.api.URL, "/401", "secret.%s", ""},
		{"broken", s.api.URL, "/500", "secret.%s", ""},
		{"redirect", s.api.URL, "/redirect", "secret.%s", "redirects = 1"},
		{"elsewhere", s.api.URL, "/elsewhere", "secret.%s", "redirects = 1"},
		{"refused", "http://127.0.0.1:1", "/", "secret.%s", ""},
		{"tls", s.secure.URL, "/", "secret.%s", ""},
		{"dns", "https://canary.invalid:443", "/", "secret.%s", ""},
		{"slow", s.api.URL, "/slow", "secret.%s", `timeout = "100ms"`},
		{"garbage", s.api.URL, "/garbage", "secret.%s", ""},
		{"after", s.api.URL, "/after", "secret.%s", ""},
		{"large", s.api.URL, "/echo", "secret.%s", "max_response = \"10B\""},
	} {
		name := use.name + "_" + source
		c := s.newSecret(name)
		s.secret(t, name, source, c.value+"\n", "")
		s.request(name, use.base, use.path, fmt.Sprintf(use.form, name), use.more)
		if use.base == s.api.URL {
			s.outgoing = append(s.outgoing, c)
		}
	}
}

// others adds programs and databases.
func (s *canaryServer) others(t *testing.T, source string) {
	t.Helper()
	program, address, password := s.newSecret("exec_"+source), s.newSecret("dsn_"+source), s.newSecret("password_"+source)
	s.grants = append(s.grants, program)
	s.secret(t, program.name, source, program.value, "")
	s.tool(program.name, fmt.Sprintf("    exec \"x\" {\n      path = \"/usr/bin/env\"\n      env = { TOKEN = secret.%s, CODED = base64encode(secret.%s) }\n    }", program.name, program.name),
		`const r = await exec.x(); return { out: r.stdout, error: r.stderr, code: r.code };`)
	form := map[string]string{"env": "postgres://u:%s@127.0.0.1:1/db", "file": "no dsn: %s", "command": "postgres://u:%s@[::1:bad/db"}[source]
	s.secret(t, address.name, source, fmt.Sprintf(form, address.value), "")
	const query = "      statement \"one\" { query = \"SELECT 1 AS one\" }\n    }"
	s.tool(address.name, fmt.Sprintf("    sql \"x\" {\n      driver = \"postgres\"\n      dsn = secret.%s\n%s", address.name, query), `return sql.x.query("one");`)
	s.secret(t, password.name, source, password.value, "")
	s.outgoing = append(s.outgoing, password)
	s.tool(password.name, fmt.Sprintf("    sql \"x\" {\n      driver = \"postgres\"\n      dsn = \"postgres://mcpd:${secret.%s}@%s/shop\"\n%s", password.name, s.database.Addr(), query), `return sql.x.query("one");`)
}

// clients adds the secrets of token servers, and tokens.
func (s *canaryServer) clients(t *testing.T) {
	t.Helper()
	good, bad, token := s.newSecret("client_good"), s.newSecret("client_bad"), s.newSecret("token")
	token.value = token.core // tokens have no spaces or quotes
	s.desk = httptest.NewServer(s.token(token))
	t.Cleanup(s.desk.Close)
	s.secret(t, good.name, "env", good.value, "")
	s.secret(t, bad.name, "file", bad.value, "")
	for _, client := range []struct{ name, secret, path, style string }{
		{"token", good.name, "/token", "header"}, {"no_token", bad.name, "/401", "body"}, {"no_desk", bad.name, "/garbage", "header"},
	} {
		fmt.Fprintf(&s.config, "secret %q {\n  oauth {\n    token_url = %q\n    client_id = \"mcpd\"\n    client_secret = secret.%s\n    auth_style = %q\n    private_networks = true\n  }\n}\n",
			client.name, s.desk.URL+client.path, client.secret, client.style)
		s.request(client.name, s.api.URL, "/echo", fmt.Sprintf(`"Bearer ${secret.%s}"`, client.name), "")
	}
	s.outgoing = append(s.outgoing, bad, token)
}

// read adds secrets that scripts and programs read.
func (s *canaryServer) read(t *testing.T) {
	t.Helper()
	shown, hook, control, broken, long, held, sensitive := s.newSecret("shown"), s.newSecret("hook"), s.newSecret("control"), s.newSecret("broken"), s.newSecret("long"), s.newSecret("held"), s.newSecret("sensitive")
	s.control, s.held = control, held
	s.grants = append(s.grants, held)
	s.secret(t, "shown", "file", shown.value, "reveal = true")
	for _, way := range []string{
		`throw new Error(secrets.shown)`, `throw new ToolError("no: " + secrets.shown, { details: { [secrets.shown]: [secrets.shown, btoa(secrets.shown.replace(/[^ -~]/g, ""))] } })`,
		`log.info(secrets.shown, { a: secrets.shown }); console.log([secrets.shown], encodeURIComponent(secrets.shown)); progress(1, 2, secrets.shown); return secrets`,
		`throw new RpcError(-32000, secrets.shown, { a: secrets.shown })`, `return await elicit({ message: secrets.shown, schema: { type: "object", properties: { a: { type: "string" } } } })`,
	} {
		s.tool(fmt.Sprintf("shown_%d", len(s.names)), "    secrets { names = [\"shown\"] }\n    ask { elicit = true }", way)
	}
	s.tool("asks", fmt.Sprintf("    secrets { names = [\"shown\"] }\n    ask { elicit = true }\n    http \"x\" {\n      hosts = [%q]\n      private_networks = true\n    }", strings.TrimPrefix(s.api.URL, "http://")),
		fmt.Sprintf(`const key = secrets.shown; await http.x.get(%q); await elicit({ message: "Go on?", schema: { type: "object", properties: { a: { type: "string" } } } }); return key.length;`, s.api.URL+"/pad"))
	s.secret(t, "control", "file", control.value, "reveal = true")
	fmt.Fprintf(&s.tools, "tool \"control\" {\n  allow {\n    secrets { names = [\"control\"] }\n  }\n  run = \"return secrets.control;\"\n}\n")
	s.secret(t, "broken", "file", broken.value+"\nX: "+broken.value, "")
	s.request("broken", s.api.URL, "/echo", "secret.broken", "")
	s.secret(t, "long", "command", strings.Repeat(long.value, 4000), "")
	s.request("long", s.api.URL, "/echo", "secret.long", "")
	s.secret(t, "held", "env", held.value, "")
	fmt.Fprintf(&s.tools, "tool \"held\" {\n  timeout = \"30s\"\n  allow {\n    exec \"x\" {\n      path = \"/bin/cat\"\n      argv = [%q]\n      env = { TOKEN = secret.held }\n    }\n  }\n  run = \"return (await exec.x()).stdout;\"\n}\n", s.fifo)
	s.secret(t, "hook", "env", hook.value, "")
	fmt.Fprintf(&s.config, "hook \"h\" {\n  on = [\"error\"]\n  allow {\n    http \"x\" {\n      hosts = [%q]\n      private_networks = true\n      header \"Authorization\" { value = secret.hook }\n    }\n  }\n  run = <<JS\n    const r = await http.x.get(%q);\n    console.log(r.text(), event.error);\n    throw new Error(r.text() + JSON.stringify(event));\n  JS\n}\n",
		strings.TrimPrefix(s.api.URL, "http://"), s.api.URL+"/echo")
	s.outgoing = append(s.outgoing, hook)
	s.env = append(s.env, "MCPD_VAR_pin="+sensitive.core)
	fmt.Fprintf(&s.config, "variable \"pin\" {\n  type = string\n  sensitive = true\n}\n")
	s.tool("sensitive", fmt.Sprintf("    http \"x\" {\n      hosts = [%q]\n      private_networks = true\n      header \"X-Pin\" { value = var.pin }\n    }", strings.TrimPrefix(s.api.URL, "http://")),
		fmt.Sprintf(`log.warn(vars.pin, { pin: vars.pin }); const r = await http.x.get(%q); throw new ToolError(vars.pin + r.status, { details: { pin: vars.pin } });`, s.api.URL+"/echo"))
	s.tool("held_back", "", `return 1;`)
	s.tools.WriteString("policy \"pins\" {\n  tools = [\"held_back\"]\n  requires_approval = \"vars.pin != ''\"\n  reason = <<CEL\n    \"It is \" + vars.pin\n  CEL\n}\n")
}
