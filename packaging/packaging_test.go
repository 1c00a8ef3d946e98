package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdxlib"
)

// built returns a binary with module dependencies: this test.
func built(t *testing.T) *binary {
	t.Helper()
	b, err := readBinary(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSBOM_valid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mcpd.spdx.json")
	if err := run([]string{"sbom", os.Args[0], path}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := spdxjson.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := spdxlib.ValidateDocument(doc); err != nil {
		t.Error(err)
	}
	var names []string
	seen := map[string]bool{}
	for _, p := range doc.Packages {
		names = append(names, p.PackageName)
		if id := string(p.PackageSPDXIdentifier); seen[id] {
			t.Errorf("two packages have the identifier %s", id)
		} else {
			seen[id] = true
		}
	}
	for _, want := range []string{"github.com/mcpd/mcpd/packaging", "stdlib", "github.com/spdx/tools-golang"} {
		if !strings.Contains(strings.Join(names, " ")+" ", want+" ") {
			t.Errorf("packages %v, without %s", names, want)
		}
	}
}

func TestBundle_contents(t *testing.T) {
	b := built(t)
	var first, second bytes.Buffer
	for _, out := range []*bytes.Buffer{&first, &second} {
		if err := b.bundle(out); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two bundles of one binary differ")
	}
	files, err := zip.NewReader(bytes.NewReader(first.Bytes()), int64(first.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var described manifest
	for name, mode := range map[string]os.FileMode{"manifest.json": 0o644, "mcpd.hcl": 0o644, "server/" + b.programName(): 0o755} {
		file, err := files.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if info, err := file.Stat(); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
		if name == "manifest.json" {
			if err := json.NewDecoder(file).Decode(&described); err != nil {
				t.Error(err)
			}
		}
	}
	if got := described.Server.EntryPoint; got != "server/"+b.programName() {
		t.Errorf("entry point %s", got)
	}
}

// The schema is part of the module of the registry. MCPD_DIST is the folder of a release,
// to test with it.
func TestServer_schema(t *testing.T) {
	dir := t.TempDir()
	dist, bundles := os.Getenv("MCPD_DIST"), 5
	if dist == "" {
		dist, bundles = writeDist(t, "darwin_amd64", "darwin_arm64", "linux_amd64", "linux_arm64"), 1
	}
	if err := run([]string{"publish", dist, dir}); err != nil {
		t.Fatal(err)
	}
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/modelcontextprotocol/registry").Output()
	if err != nil {
		t.Fatal(err)
	}
	schemas := filepath.Join(strings.TrimSpace(string(module)), "internal/validators/schemas")
	text, err := os.ReadFile(filepath.Join(dir, "server.json"))
	if err != nil {
		t.Fatal(err)
	}
	version := strings.Split(string(text), "/")[4] // of https://HOST/schemas/VERSION/server.schema.json
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join(schemas, version+".json"))
	if err != nil {
		t.Fatal(err)
	}
	server, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(server); err != nil {
		t.Error(err)
	}
	if n := len(server.(map[string]any)["packages"].([]any)); n != bundles+1 {
		t.Errorf("%d packages, not %d bundles and an image", n, bundles)
	}
}

// The registry accepts an image only with this label.
func TestDockerfile_registryName(t *testing.T) {
	text, err := os.ReadFile("Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	if label := `LABEL io.modelcontextprotocol.server.name="` + registryName + `"`; !bytes.Contains(text, []byte(label)) {
		t.Errorf("the Dockerfile has no %s", label)
	}
}

func TestFormula(t *testing.T) {
	t.Run("urls and checksums", func(t *testing.T) {
		dir := t.TempDir()
		if err := run([]string{"publish", writeDist(t, "darwin_amd64", "darwin_arm64", "linux_amd64", "linux_arm64"), dir}); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "mcpd.rb"))
		if err != nil {
			t.Fatal(err)
		}
		want := `url "https://github.com/mcpd/mcpd/releases/download/v1.2.3/mcpd_1.2.3_linux_arm64.tar.gz"
      sha256 "` + sum("d")
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("without %s:\n%s", want, text)
		}
	})
	t.Run("missing archive", func(t *testing.T) {
		err := run([]string{"publish", writeDist(t, "linux_amd64"), t.TempDir()})
		if err == nil || !strings.Contains(err.Error(), "mcpd_1.2.3_darwin_arm64.tar.gz") {
			t.Errorf("error %v", err)
		}
	})
}

func sum(digit string) string { return strings.Repeat(digit, 64) }

// writeDist writes the files of GoReleaser that publish reads, for archives of these
// platforms and one bundle.
func writeDist(t *testing.T, platforms ...string) string {
	t.Helper()
	dist := t.TempDir()
	sums := sum("0") + "  mcpd_linux_amd64.mcpb\n"
	for i, platform := range platforms {
		sums += sum(string(rune('a'+i))) + "  mcpd_1.2.3_" + platform + ".tar.gz\n"
	}
	for name, text := range map[string]string{"metadata.json": `{"project_name": "mcpd", "version": "1.2.3"}`, "checksums.txt": sums} {
		if err := os.WriteFile(filepath.Join(dist, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dist
}

func TestReadBinary_otherFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(path, []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{"sbom", path, filepath.Join(t.TempDir(), "out")}); err == nil {
		t.Error("a text file has an SBOM")
	}
}
