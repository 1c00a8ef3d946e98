package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
)

const recordConfig = `
secret "token" { env = "TOKEN" }
secret "key" {
  env    = "KEY"
  reveal = true
}
policy "small" {
  tools  = ["order"]
  deny   = "args.count > 100"
  reason = "Too many."
}
`

// recordTools use every kind of grant.
const recordTools = `
tool "rate" {
  timeout = "30s"
  input "kind" { type = string }
  allow {
    http "rates" {
      hosts            = ["%[1]s"]
      private_networks = true
    }
  }
  run = <<JS
    return (await http.rates.get("http://%[1]s/rate")).json();
  JS
}

tool "order" {
  timeout = "30s"
  input "name" { type = string }
  input "count" { type = integer }
  input "pin" {
    type      = string
    sensitive = true
    default   = "none"
  }
  allow {
    http "shop" {
      hosts            = ["%[1]s"]
      private_networks = true
      methods          = ["GET", "POST"]
      header "Authorization" { value = "Bearer ${secret.token}" }
    }
    fs "notes" {
      root = "../notes"
      mode = "rw"
    }
    kv "seen" { scope = "server" }
    sql "shop" {
      driver = "sqlite"
      dsn    = "../shop.db"
      statement "price" { query = "SELECT 2.5 AS price, :name AS name, NULL AS note" }
      statement "none" { query = "SELECT 1 AS one WHERE false" }
    }
    exec "say" {
      path = "/bin/echo"
      argv = ["{text}"]
      param "text" { pattern = "[a-z ]+" }
    }
    env { names = ["REGION"] }
    secrets { names = ["key"] }
    call { tools = ["rate"] }
    ask { elicit = true }
  }
  run = <<JS
    const { name, count } = input;
    const stock = (await http.shop.get("http://%[1]s/stock?name=" + encodeURIComponent(name))).json();
    const made = await http.shop.post("http://%[1]s/orders", { json: { name, count } });
    const none = await sql.shop.query("none");
    const [row] = await sql.shop.query("price", { name });
    const before = await kv.seen.get(name);
    await kv.seen.put(name, { count });
    const total = await kv.seen.incr("total", count);
    let lines = [];
    try {
      lines = await fs.notes.lines("log.txt");
    } catch (error) {
      if (error.code !== "NOT_FOUND") throw error;
    }
    await fs.notes.writeText("log.txt", [...lines, name].join("\n") + "\n");
    const said = await exec.say({ text: "two words" });
    const { factor } = await tools.rate({ kind: "std" });
    const answer = await elicit({ message: "Sure?", schema: { type: "object", properties: { why: { type: "string" } } } });
    return {
      stock, status: made.status, price: row, none, before: before ?? null, total, lines, said: said.stdout, factor,
      region: env.REGION.length > 0, why: answer.content.why, key: secrets.key.length > 0, "odd key": "${a} %%{b} \u202e\"",
    };
  JS
}

tool "now" {
  timeout = "30s"
  run     = "return { at: Date.now(), name: 'x' };"
}

tool "fails" {
  timeout = "30s"
  allow {
    secrets { names = ["key"] }
  }
  run = <<JS
    throw new ToolError("no " + secrets.key);
  JS
}
`

// Records calls with answers of every kind of host. The tests pass at once, are formatted, and
// have no value of a secret or of a sensitive input.
func TestCall_record(t *testing.T) {
	t.Parallel()
	const token, key, pin = "tok-4f1c2b9a7d", "key-93ab51cc02", "pin-771204"
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/rate" {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"factor": 1.25}`)
			return
		}
		if r.Header.Get("Authorization") != "Bearer "+token {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Header().Set("Set-Cookie", "session="+token)
		w.Header().Set("X-Debug", "Bearer "+token)
		body, _ := io.ReadAll(r.Body)
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusCreated)
		}
		fmt.Fprintf(w, `{"name": %q, "left": 12345678901, "echo": %q, "auth": %q}`, r.URL.Query().Get("name"), body, r.Header.Get("Authorization"))
	}))
	defer shop.Close()
	dir := t.TempDir()
	for _, folder := range []string{"tools.d", "notes"} {
		if err := os.Mkdir(filepath.Join(dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range map[string]string{"mcpd.hcl": recordConfig, "shop.db": "", "tools.d/order.hcl": fmt.Sprintf(recordTools, strings.TrimPrefix(shop.URL, "http://"))} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"TOKEN=" + token, "KEY=" + key, "REGION=eu", "HOME=" + dir, "XDG_STATE_HOME=" + filepath.Join(dir, ".state"), "PATH=" + os.Getenv("PATH")}
	file := filepath.Join(dir, "tools.d", "recorded.hcl")
	record := func(code int, said string, args ...string) string {
		t.Helper()
		got, stdout, stderr := inProcess(t, dir, env, append([]string{"call", "--record", "tools.d/recorded.hcl"}, args...)...)
		if got != code || !strings.Contains(stderr, said) {
			t.Errorf("mcpd call %v exited with %d, want %d and %q\n%s%s", args, got, code, said, stdout, stderr)
		}
		return stderr
	}
	order := []string{"order", "name=blue lamp", "count=3", "pin=" + pin, "--answer", `elicit={"why":"a gift"}`}
	if said := record(exitOK, `recorded test "recorded call of order" in tools.d/recorded.hcl`, order...); strings.Contains(said, "note:") {
		t.Errorf("the result is not part of the test:\n%s", said)
	}
	record(exitOK, `recorded test "recorded call of order 2"`, order...)
	record(exitFindings, `recorded test "recorded call of order 3"`, "order", "name=lamp", "count=101")
	record(exitOK, "the test accepts every result", "now")
	record(exitFindings, `recorded test "recorded call of fails"`, "fails")
	said := record(exitFindings, `recorded test "recorded call of order 4"`, "order", "name=lamp", "count=three")
	if !strings.Contains(said, "note: the call failed, so the test expects the error INVALID_INPUT") {
		t.Errorf("no note that the test expects an error:\n%s", said)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{token, key, pin, "Set-Cookie", "set-cookie", "X-Debug", "x-debug", "Authorization"} {
		if strings.Contains(string(text), value) {
			t.Errorf("the file contains %s", value)
		}
	}
	for _, part := range []string{
		`mock "http.shop" "GET /stock?name=blue%20lamp"`, `mock "http.shop" "POST /orders"`, `status = 201`, `mock "sql.shop" "price"`,
		`mock "fs.notes" "lines log.txt"`, `error = "NOT_FOUND"`, `mock "exec.say" "\"two words\""`, `mock "tools" "rate"`, `mock "env" "REGION"`, `mock "elicit" "elicit"`,
		`mock "secrets" "key"`, `"odd key" = "$${a} %%{b} \u202e\""`, `denied_by = "small"`, `error = "INVALID_INPUT"`, `pin = "[sensitive]"`,
	} {
		if !strings.Contains(string(text), part) {
			t.Errorf("the file lacks %s", part)
		}
	}
	if code, stdout, stderr := inProcess(t, dir, []string{"HOME=" + dir}, "test"); code != exitOK || !strings.Contains(stdout, "6 passed, 0 failed") || strings.Contains(stdout, "note:") {
		t.Errorf("mcpd test exited with %d\n%s%s", code, stdout, stderr)
	}
	if code, stdout, stderr := inProcess(t, dir, nil, "fmt", "--check"); strings.Contains(stdout, "recorded.hcl") {
		t.Errorf("mcpd fmt --check exited with %d\n%s%s", code, stdout, stderr)
	}
	if t.Failed() {
		t.Logf("the file:\n%s", text)
	}
}

// A call whose test cannot pass leaves the file as it was. Files that mcpd test would not read
// are refused.
func TestCall_recordRefused(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, calls.Add(1))
	}))
	defer site.Close()
	s := newSandbox(t)
	const before = "# Recorded tests.\n"
	s.write(t, "tools.d/recorded.hcl", before)
	s.write(t, "tools.d/poll.hcl", fmt.Sprintf(`tool "poll" {
  timeout = "30s"
  allow {
    http "site" {
      hosts            = ["%[1]s"]
      private_networks = true
    }
  }
  run = <<JS
    const get = async () => (await http.site.get("http://%[1]s/")).text();
    const first = await get();
    if (first === await get()) throw new ToolError("it does not count");
    return first;
  JS
}
`, strings.TrimPrefix(site.URL, "http://")))
	code, stdout, stderr := s.run(t, nil, "call", "poll", "--record", "tools.d/recorded.hcl")
	if stdout != "1\n" {
		t.Errorf("the result of the call is %q", stdout)
	}
	for _, want := range []string{"the call was not recorded: its test would fail", "it does not count", "http.site GET / was answered differently each time"} {
		if code != exitFindings || !strings.Contains(stderr, want) {
			t.Errorf("exit code %d without %q:\n%s", code, want, stderr)
		}
	}
	if text, err := os.ReadFile(filepath.Join(s.dir, "tools.d", "recorded.hcl")); err != nil || string(text) != before {
		t.Errorf("the file contains %q, %v", text, err)
	}
	if code, _, stderr := s.run(t, nil, "call", "pol", "--record", "tools.d/recorded.hcl"); code != exitFindings || !strings.Contains(stderr, "the call was not recorded: there is no such tool") {
		t.Errorf("an unknown tool: exit code %d\n%s", code, stderr)
	}
	if text, err := os.ReadFile(filepath.Join(s.dir, "tools.d", "recorded.hcl")); err != nil || string(text) != before {
		t.Errorf("after a call of an unknown tool the file contains %q, %v", text, err)
	}
	for _, file := range []string{"recorded.hcl", "tools.d/recorded.txt", "tools.d/../x.hcl"} {
		if code, _, stderr := s.run(t, nil, "call", "poll", "--record", file); code != exitUsage || !strings.Contains(stderr, "--record: name a .hcl file in the tools directory ./tools.d") {
			t.Errorf("--record %s: exit code %d\n%s", file, code, stderr)
		}
	}
	links := map[string]string{"tools.d/link.hcl": "poll.hcl", "tools.d/far": "."}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(s.dir, filepath.FromSlash(name))); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(s.dir, "tools.d", "dir.hcl"), 0o755); err != nil {
		t.Fatal(err)
	}
	for file, said := range map[string]string{
		"tools.d/.hid.hcl": "no hidden file", "tools.d/.git/a.hcl": "no hidden file", "tools.d/#a.hcl": "no hidden file", "tools.d/dir.hcl": "not a regular file",
		"tools.d/link.hcl": "tools.d/link.hcl is a link", "tools.d/far/a.hcl": "tools.d/far is a link",
	} {
		if code, _, stderr := s.run(t, nil, "call", "poll", "--record", file); code != exitUsage || !strings.Contains(filepath.ToSlash(stderr), said) {
			t.Errorf("--record %s: exit code %d without %q\n%s", file, code, said, stderr)
		}
	}
	if text, err := os.Readlink(filepath.Join(s.dir, "tools.d", "link.hcl")); err != nil || text != "poll.hcl" {
		t.Errorf("the link leads to %q, %v", text, err)
	}
}

// A new file follows the umask, because a test has answers of hosts. An existing file keeps its mode.
func TestCall_recordFileMode(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("there is no umask")
	}
	program, s := buildDaemon(t), newSandbox(t)
	s.write(t, "tools.d/one.hcl", "tool \"one\" { run = \"return 1;\" }\n")
	file := filepath.Join(s.dir, "tools.d", "recorded.hcl")
	for _, umask := range []string{"027", "022"} {
		cmd := exec.Command("sh", "-c", "umask "+umask+` && exec "$0" "$@"`, program, "call", "one", "--record", "tools.d/recorded.hcl")
		cmd.Dir, cmd.Env = s.dir, []string{"HOME=" + s.dir, "XDG_STATE_HOME=" + filepath.Join(s.dir, "state")}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if info, err := os.Stat(file); err != nil || info.Mode() != 0o640 {
			t.Errorf("umask %s: mode %v, %v", umask, info.Mode(), err)
		}
	}
}

// Sensitive values are hidden in URLs, template syntax and results of called tools, and granted
// variables are not recorded.
func TestCall_recordHides(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.URL.Query().Get("email")+" "+r.URL.Query().Get("word")+" "+r.URL.Query().Get("zone"))
	}))
	defer site.Close()
	s := newSandbox(t)
	s.write(t, "tools.d/crm.hcl", fmt.Sprintf(`tool "card" {
  timeout = "30s"
  output "number" {
    type      = string
    sensitive = true
  }
  run = "return { number: '4111-2222' };"
}
tool "find" {
  timeout = "30s"
  input "email" {
    type      = string
    sensitive = true
  }
  input "word" {
    type      = string
    sensitive = true
  }
  allow {
    http "crm" {
      hosts            = ["%[1]s"]
      private_networks = true
    }
    call { tools = ["card"] }
    env { names = ["ZONE"] }
  }
  run = <<JS
    const escape = encodeURIComponent;
    const { number } = await tools.card({});
    const text = (await http.crm.get("http://%[1]s/c?email=" + escape(input.email) + "&word=" + escape(input.word))).text();
    return { text, number, zone: env.ZONE };
  JS
}
`, strings.TrimPrefix(site.URL, "http://")))
	code, stdout, stderr := s.run(t, []string{"ZONE=zone-51"}, "call", "find", "email=ann@example.org", "word=pa${x\\", "--record", "tools.d/recorded.hcl")
	text, err := os.ReadFile(filepath.Join(s.dir, "tools.d", "recorded.hcl"))
	if err != nil || code != exitOK {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, stdout, stderr)
	}
	for _, value := range []string{"ann@", "ann%40", "pa$", "pa%24", "4111", "zone-51"} {
		if strings.Contains(string(text), value) {
			t.Errorf("the file contains %s\n%s", value, text)
		}
	}
	if !strings.Contains(string(text), `text = "recorded ZONE"`) {
		t.Errorf("the file lacks the variable\n%s", text)
	}
	before := string(text)
	if code, _, stderr := s.run(t, []string{"ZONE=zone-51"}, "call", "find", "email=abc", "word=longer", "--record", "tools.d/recorded.hcl"); code != exitFindings || !strings.Contains(stderr, "shorter than four bytes") {
		t.Errorf("a short value: exit code %d\n%s", code, stderr)
	}
	if text, err := os.ReadFile(filepath.Join(s.dir, "tools.d", "recorded.hcl")); err != nil || string(text) != before {
		t.Errorf("the file contains %s, %v", text, err)
	}
}

// A response in JSON is text in a test only if the script depends on its spaces. A sensitive value stays
// hidden, however the JSON writes it.
func TestCall_recordTextOfJSON(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		name := `"` + strings.NewReplacer("ü", `\u00fc`, "-", `\u002d`).Replace(r.URL.Query().Get("name")) + `"`
		if name == `"123456"` {
			name = "1.23456e5"
		}
		fmt.Fprintf(w, `{"path": %q, "name": %s, "at": "here"}`, r.URL.Path, name)
	}))
	defer site.Close()
	s := newSandbox(t)
	s.write(t, "tools.d/fetch.hcl", strings.ReplaceAll(`tool "fetch" {
  timeout = "30s"
  input "as" { type = string }
  input "name" {
    type      = string
    sensitive = true
    required  = false
  }
  allow {
    http "site" {
      hosts            = ["HOST"]
      private_networks = true
    }
  }
  run = <<JS
    const { as, name } = input;
    const answer = await http.site.get("http://HOST/" + as + "?name=" + encodeURIComponent(name ?? ""));
    return { members: answer.json().path, names: Object.keys(answer.json()).join(" "), text: answer.text() }[as];
  JS
}
`, "HOST", strings.TrimPrefix(site.URL, "http://")))
	file := filepath.Join(s.dir, "tools.d", "recorded.hcl")
	for _, row := range []struct{ as, name, want, said string }{
		{"members", "", "json = {", ""},
		{"names", "", "json = {", ""},
		{"text", "", `text = "{\"path\": \"/text\", \"name\": \"\", \"at\": \"here\"}"`, ""},
		{"text", "Güntersblüm-Ost", `\"name\": \"[sensitive]\"`, ""},
		{"text", "123456", "json = {", "the test accepts every result"},
	} {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		args := []string{"call", "fetch", "as=" + row.as, "--record", "tools.d/recorded.hcl"}
		if row.name != "" {
			args = append(args, "name="+row.name)
		}
		code, stdout, stderr := s.run(t, nil, args...)
		if code != exitOK || !strings.Contains(stderr, row.said) || strings.Contains(stderr, "note:") != (row.said != "") {
			t.Errorf("%s: exit code %d\n%s%s", row.as, code, stdout, stderr)
		}
		text, err := os.ReadFile(file)
		if err != nil || !strings.Contains(string(text), row.want) || !strings.Contains(string(text), `"content-type" = "application/json"`) || strings.Contains(string(text), "ntersbl") || strings.Contains(string(text), "23456") {
			t.Errorf("%s: %v, the file contains\n%s", row.as, err, text)
		}
		if code, stdout, stderr := s.run(t, nil, "test"); code != exitOK || !strings.Contains(stdout, "1 passed, 0 failed") {
			t.Errorf("%s: mcpd test: exit code %d\n%s%s", row.as, code, stdout, stderr)
		}
	}
}

// Candidates are tried in memory, so that a server that watches the files loads only the final test.
// Headers with URLs are written only if the test fails without them.
func TestCall_recordWritesOnce(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "https://files.example/1?signature=5f81c0")
		w.Header().Set("Etag", `"v7"`)
		w.WriteHeader(http.StatusCreated)
	}))
	defer site.Close()
	s := newSandbox(t)
	s.write(t, "tools.d/store.hcl", strings.ReplaceAll(`tool "store" {
  timeout = "30s"
  input "show" { type = bool }
  allow {
    http "site" {
      hosts            = ["HOST"]
      private_networks = true
    }
  }
  run = <<JS
    const { status, headers } = await http.site.get("http://HOST/");
    return { status, etag: headers.etag, location: input.show ? headers.location : null };
  JS
}

tool "now" {
  timeout = "30s"
  run     = "return { at: Date.now() };"
}
`, "HOST", strings.TrimPrefix(site.URL, "http://")))
	file := filepath.Join(s.dir, "tools.d", "recorded.hcl")
	record := func(args ...string) (stderr string) {
		t.Helper()
		e, err := scenarioEnv(s.dir, []string{"HOME=" + s.dir, "XDG_STATE_HOME=" + filepath.Join(s.dir, "state")})
		if err != nil {
			t.Fatal(err)
		}
		var out, errs lockedBuffer
		e.stdout, e.stderr = &out, &errs
		replace, writes := e.disk.replaceFile, 0
		e.disk.replaceFile = func(name string, content []byte) error {
			writes++
			return replace(name, content)
		}
		if code := run(e, append([]string{"call", "--record", "tools.d/recorded.hcl"}, args...)); code != exitOK || writes != 1 {
			t.Errorf("mcpd call %v: exit code %d, %d writes\n%s%s", args, code, writes, &out, &errs)
		}
		return errs.String()
	}
	const note = "note: the test has the headers link and location"
	stderr := record("store", "show=false")
	if text, err := os.ReadFile(file); err != nil || strings.Contains(string(text), "location = \"") || !strings.Contains(string(text), `etag = "\"v7\""`) || strings.Contains(stderr, note) {
		t.Errorf("%v, the file contains\n%s\n%s", err, text, stderr)
	}
	record("now")
	stderr = record("store", "show=true")
	if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), `location = "https://files.example/1?signature=5f81c0"`) || !strings.Contains(stderr, note) {
		t.Errorf("%v, the file contains\n%s\n%s", err, text, stderr)
	}
	if code, stdout, stderr := s.run(t, nil, "test"); code != exitOK || !strings.Contains(stdout, "3 passed, 0 failed") {
		t.Errorf("mcpd test: exit code %d\n%s%s", code, stdout, stderr)
	}
	if code, _, stderr := s.run(t, nil, "call", "now", "--record", "tools.d/none/recorded.hcl"); code != exitUsage || !strings.Contains(stderr, "directory tools.d/none not found") {
		t.Errorf("a missing directory: exit code %d\n%s", code, stderr)
	}
}

// A recorded test is also tried at another time: a result that depends on the day is not part of it,
// and an author is told that a request with a date will not match later.
func TestCall_recordAtAnotherTime(t *testing.T) {
	t.Parallel()
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `"news"`) }))
	defer site.Close()
	s := newSandbox(t)
	s.write(t, "tools.d/news.hcl", strings.ReplaceAll(`tool "year" {
  timeout = "30s"
  run = "return { year: new Date().getUTCFullYear(), now: Date.now() > 1e12 };"
}

tool "news" {
  timeout = "30s"
  allow {
    http "site" {
      hosts            = ["HOST"]
      private_networks = true
    }
  }
  run = <<JS
    const { text } = await http.site.get("http://HOST/?year=" + new Date().getUTCFullYear());
    return text;
  JS
}

tool "clock" {
  timeout = "30s"
  allow {
    http "site" {
      hosts            = ["HOST"]
      private_networks = true
    }
  }
  run = "return (await http.site.get('http://HOST/?now=' + Date.now())).text;"
}

tool "random" {
  timeout = "30s"
  allow {
    http "site" {
      hosts            = ["HOST"]
      private_networks = true
    }
  }
  run = "return (await http.site.get('http://HOST/?id=' + crypto.randomUUID())).text;"
}

tool "region" {
  timeout = "30s"
  allow {
    http "site" {
      hosts            = ["HOST"]
      private_networks = true
    }
    env { names = ["REGION"] }
  }
  run = "return (await http.site.get('http://HOST/?in=' + env.REGION)).text;"
}

tool "fixed" {
  timeout = "30s"
  run = "return { later: Date.now() > 1e12 };"
}
`, "HOST", strings.TrimPrefix(site.URL, "http://")))
	for _, one := range []struct {
		tool, said string
		code       int
	}{
		{"year", "the test accepts every result", exitOK},
		{"news", "note: the test depends on the time, and fails later", exitOK},
		{"clock", "a host call depends on the time or on a random value", exitFindings},
		{"random", "a host call depends on the time or on a random value", exitFindings},
		{"region", "its test would fail", exitFindings},
		{"fixed", "recorded test", exitOK},
	} {
		code, stdout, stderr := s.run(t, []string{"REGION=europe"}, "call", one.tool, "--record", "tools.d/recorded.hcl")
		if code != one.code || !strings.Contains(stderr, one.said) || one.tool == "fixed" && strings.Contains(stderr, "note:") ||
			one.tool == "random" && !strings.Contains(stderr, `mock "http.site" "GET /?id=`) {
			t.Errorf("%s: exit code %d, want %d and %q\n%s%s", one.tool, code, one.code, one.said, stdout, stderr)
		}
	}
	if code, stdout, stderr := s.run(t, nil, "test"); code != exitOK || !strings.Contains(stdout, "3 passed, 0 failed") {
		t.Errorf("mcpd test: exit code %d\n%s%s", code, stdout, stderr)
	}
}

// A watching mcpd test runs the tests after each change, also after files with errors and
// failed tests, until it is interrupted.
func TestTest_watch(t *testing.T) {
	t.Parallel()
	program, dir := buildDaemon(t), t.TempDir()
	file := filepath.Join(dir, "tools.d", "a.hcl")
	if err := os.Mkdir(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	text := func(run string) string {
		return "tool \"a\" {\n  timeout = \"30s\"\n  run = \"" + run + "\"\n}\ntest \"a test\" {\n  tool = \"a\"\n  expect { output = 1 }\n}\n"
	}
	save(t, file, text("return (1;"))
	w := startStdio(t, program, dir, os.Environ(), "test", "--watch", "--coverage")
	save(t, file, text("return 2;"))
	w.hear(t, "0 passed, 1 failed")
	save(t, file, text("return 1;"))
	w.hear(t, "1 passed, 0 failed")
	w.hear(t, "1 of 1 statement")
	if err := w.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	w.end(t)
}

func TestTest_watchIgnoresReport(t *testing.T) {
	t.Parallel()
	e, err := scenarioEnv(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	f := testFlags{files: projectFlags{tools: "tools.d", config: "mcpd.hcl"}, junit: filepath.Join("tools.d", "report.xml")}
	skip := f.watched(e, nil).Skip
	if !skip("report.xml") || !skip(".git") || skip("a.hcl") {
		t.Error("a report starts the next run, or a change does not")
	}
}
