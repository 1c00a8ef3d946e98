// Package telemetry records traces and metrics of an engine with OpenTelemetry and Prometheus. A
// program that imports the package links both libraries.
//
//	engine.Options{Extensions: []engine.Extension{telemetry.New(telemetry.Options{ReadFile: os.ReadFile})}}
//
// The OTEL_* variables of OpenTelemetry configure which calls are traced, and where spans are sent.
// engine.Files.LookupEnv reads these variables. Server.Metrics of the engine returns the metrics for
// Prometheus, and package serve serves them at /metrics. No span and no label of a metric has an
// argument, a result or a message of a call.
package telemetry

import (
	"io"

	"github.com/mcpd/mcpd/engine"
	"github.com/mcpd/mcpd/internal/base/observe"
	"github.com/mcpd/mcpd/internal/ops/telemetry"
)

// Options are the parts of the program that telemetry uses. The zero Options suffice unless the
// OTEL_* variables name files or the console.
type Options struct {
	// ReadFile reads the certificates and keys that the variables name; nil means that no file can
	// be read.
	ReadFile func(name string) ([]byte, error)
	// Console receives the spans of OTEL_TRACES_EXPORTER=console, one JSON object per line; nil
	// drops them.
	Console io.Writer
}

// New returns the extension. Each engine has its own metrics and traces.
func New(o Options) engine.Extension { return &extension{o} }

type extension struct{ options Options }

// Name returns the package name.
func (*extension) Name() string { return "extensions/telemetry" }

// OpenTelemetry opens the telemetry of one engine.
func (e *extension) OpenTelemetry(o observe.Options) (observe.Telemetry, error) {
	return telemetry.New(telemetry.Options{
		Service: o.Service, Version: o.Version, LookupEnv: o.LookupEnv, Logger: o.Logger, Now: o.Now,
		ReadFile: e.options.ReadFile, Console: e.options.Console,
	})
}
