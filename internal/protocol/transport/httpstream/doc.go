// Package httpstream is what the transports over HTTP have in common: one request
// that brings a text, or opens a stream, and its response.
//
// [Enter], [Judge], [AcceptOf] and [Read] hold a request to what any of them
// may carry; an [Answer] is its response, JSON or a stream of server-sent
// events, each write within its time. [Refuse] answers what does not reach the
// protocol.
//
// The package knows no route and no session, and decides nothing about a message.
package httpstream
