package lockfile_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcpd/mcpd/internal/federation/lockfile"
)

// nested returns an entry with a schema of deeply nested arrays.
func nested(items, depth int) string {
	return fmt.Sprintf(`{"name":"a","inputSchema":{"enum":%s%s1%s}}`, strings.Repeat("[", depth), strings.Repeat("0,", items), strings.Repeat("]", depth))
}

func TestPrettyPrinter_maxIndent(t *testing.T) {
	lock := new(lockfile.Lock).WithTools("github", of(t, "github", `{"name":"a","inputSchema":{"a":`+strings.Repeat("[", 15)+`{"b":"One. Two.","c":[[]]}`+strings.Repeat("]", 15)+`}}`))
	file := string(lock.Encode())
	_, got, _ := strings.Cut(file, strings.Repeat("  ", 15)+"[\n")
	got, _, _ = strings.Cut(got, "\n"+strings.Repeat("  ", 15)+"]")
	in := strings.Repeat("  ", 16)
	want := strings.Join([]string{"[", "{", `"b": "One."`, `    " Two.",`, `"c": [`, "[]", "]", "}", "]"}, "\n"+in)
	if diff := cmp.Diff(in+want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// Indentation does not matter.
	for name, file := range map[string]string{"as it is": file, "deeper": strings.ReplaceAll(file, in, in+in+in), "less deep": strings.ReplaceAll(file, in, " ")} {
		read, err := lockfile.Parse([]byte(file))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(contents(lock), contents(read)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
	}
}

func TestParseTool_tooLong(t *testing.T) {
	const want = "read definition: it would take more than 256 KiB of mcpd.lock"
	for _, entry := range []string{
		nested(48_900, 55), nested(40_000, 1),
		`{"name":"a","description":"` + strings.Repeat("! ", 30_000) + `"}`,
		`{"name":"a","inputSchema":{"minimum":0.` + strings.Repeat("1", 256<<10) + `}}`,
	} {
		if read, err := lockfile.ParseTool("github", []byte(entry)); err == nil || err.Error() != want {
			t.Errorf("size of %.60s is %d, %v", entry, read.EncodedSize(), err)
		}
	}
}

// The allocations are the entry and one block of the maximum size.
func TestParseTool_tooLongAllocations(t *testing.T) {
	entry := []byte(nested(48_900, 55))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := lockfile.ParseTool("github", entry)
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; err == nil || allocated > 8<<20 {
		t.Errorf("%d bytes are allocated for an entry of %d, %v", allocated, len(entry), err)
	}
}

// Tools accepted before the limit existed stay accepted.
func TestParse_longTool(t *testing.T) {
	file := string(new(lockfile.Lock).WithTools("github", tool(t, `{"name":"a"}`)).Encode())
	// printf '{"inputSchema":{"minimum":0.%s},"name":"a"}' $(head -c 300000 /dev/zero | tr '\0' 1) | sha256sum
	file = strings.Replace(file, tool(t, `{"name":"a"}`).Hash(), "b9b4485fbf330875bfcc2114bf0bf7cbbf62e880442c0e2a4cf6b590ae871f56", 1)
	file = strings.Replace(file, "{\n", "{\n"+`  "inputSchema": {"minimum": 0.`+strings.Repeat("1", 300_000)+"},\n", 1)
	read, err := lockfile.Parse([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	if held := read.Tools("github"); len(held) != 1 || read.EncodedSize() != len(read.Encode()) {
		t.Errorf("it holds %d tools in %d bytes", len(held), read.EncodedSize())
	}
}
