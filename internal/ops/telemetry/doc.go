// Package telemetry tells operators what a server does: traces, metrics, and the
// ids that join lines of the log to either.
//
// A [Telemetry] is made of [Options] and ended by [Telemetry.Close]. Its [Tracer]
// makes a [Span] of each call and of its parts, and sends them where the OTEL_*
// variables say; without any of those the tracer is nil, and nothing of it costs
// anything. Its [Metrics] count what they are told, fetch the rest as [Stats] when
// somebody looks, and are served by [Telemetry.Handler]. [LogHandler] adds the ids of the
// span and of the [Request] in a context to the records of a log. What may go on when its
// span is over, such as the run of a hook, keeps an [Origin] of it.
//
// What a caller or a script chooses becomes no label of a metric and no name of a
// span. Of a call nothing is told but what the operator's files name and which of
// the known outcomes it had: no arguments, no results, no messages, no claims.
//
// No call waits for telemetry. Spans go through a bounded queue, the batch processor of
// OpenTelemetry, and those that find it full are counted and lost. The package keeps no
// state outside of its values, and reads the environment through [Options].LookupEnv
// alone.
//
// Two parts are done by hand. The client of OTLP is ours, since that of OpenTelemetry
// links gRPC. So are the readers of OTEL_*: those of the SDK read the environment of the
// process, and drop what they do not understand.
package telemetry
