package telemetry

import "context"

// Request names what the server does something for, as the log does. The zero Request is
// for what nobody asked for, such as a reload.
type Request struct {
	// ID is the request_id, which callers choose or are told, and Call the call_id.
	ID, Call string
}

type requestKey struct{}

// In returns a context whose records in the log name the request, by [LogHandler].
func (r Request) In(ctx context.Context) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

// requestOf returns the request of a context.
func requestOf(ctx context.Context) Request {
	r, _ := ctx.Value(requestKey{}).(Request)
	return r
}
