// Package authn proves who calls. An [Authenticator] turns a request into an
// [identity.Principal]; nothing else in the server makes one for a client. The
// HTTP transports share it as part of a [Door].
//
// Without credentials a caller on HTTP is anonymous ([Anonymous]); the process
// on the other end of stdio is the operating-system user ([Local]). What a
// caller claims about itself, in headers or in a message, is never read here:
// that is [identity.Agent].
package authn
