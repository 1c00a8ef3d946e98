// Packaging writes the files of a release that GoReleaser does not write.
//
//	packaging sbom BINARY FILE    the SPDX document of a binary
//	packaging bundle BINARY DIR   the MCP bundle of a binary, if desktop clients run on its platform
//	packaging publish DIST DIR    server.json for MCP's registry, and the Homebrew formula
//
// The same input always gives the same bytes: times and versions come from the build
// information of the binary.
package main

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"
)

const (
	repository  = "https://github.com/mcpd/mcpd"
	description = "Serves tools to AI agents over MCP, with policies and isolated scripts"
	license     = "Apache-2.0"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "packaging:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 3 {
		return errors.New("usage: packaging sbom BINARY FILE | bundle BINARY DIR | publish DIST DIR")
	}
	verb, from, to := args[0], args[1], args[2]
	switch verb {
	case "sbom":
		return writeSBOM(from, to)
	case "bundle":
		return writeBundle(from, to)
	case "publish":
		return publish(from, to)
	}
	return fmt.Errorf("unknown verb %q", verb)
}

// binary is a program that go build wrote.
type binary struct {
	path     string
	content  []byte
	info     *debug.BuildInfo
	settings map[string]string
}

func readBinary(path string) (*binary, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	info, err := buildinfo.Read(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	b := &binary{path, content, info, map[string]string{}}
	for _, setting := range info.Settings {
		b.settings[setting.Key] = setting.Value
	}
	return b, nil
}

// version returns the version of the main module, or 0.0.0 without version control.
func (b *binary) version() string {
	if version, ok := strings.CutPrefix(b.info.Main.Version, "v"); ok {
		return version
	}
	return "0.0.0"
}

// committed returns the time of the commit, or the start of 1980, the first time that a
// ZIP file can store.
func (b *binary) committed() time.Time {
	if at, err := time.Parse(time.RFC3339, b.settings["vcs.time"]); err == nil {
		return at.UTC()
	}
	return time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)
}

// encode returns v as indented JSON with a newline at its end.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(v)
	return out.Bytes(), err
}
