// Package telemetry sends traces and serves metrics: it implements the interfaces of
// package observe by OpenTelemetry and Prometheus.
//
// A [Telemetry] is made of [Options] and ended by [Telemetry.Close]. It sends spans where the
// OTEL_* variables say; without any of those nothing is traced. [Telemetry.Handler] serves
// its metrics.
//
// No call waits for telemetry. Spans go through a bounded queue, the batch processor of
// OpenTelemetry, which counts and drops spans when it is full. The package keeps no
// state outside of its values, and reads the environment through [Options].LookupEnv
// alone.
//
// Two parts are done by hand. The client of OTLP is ours, since that of OpenTelemetry
// links gRPC. So are the readers of OTEL_*: those of the SDK read the environment of the
// process, and drop what they do not understand.
package telemetry
