// Package authn proves who calls. An [Authenticator] turns a request into an
// [identity.Principal]; nothing else in the server makes one for a client. The
// HTTP transports share it as part of a [Door], which says what to answer when
// there is no proof.
//
// A [Roster] is the Authenticator of a server with credentials: API keys, tokens
// of identity providers, client certificates and the peers of a Unix socket, any
// of them at once. [Roster.Apply] replaces its methods as one; what they have
// read, such as the keys of a provider, lives on where nothing about it changed.
//
// A request carries one credential at most, in one header, and never in its URL.
// A connection may prove somebody too: by the certificate of its client, or by
// its user on a Unix socket. Then
//
//   - a credential of the request is the principal, and the connection only binds
//     it to an agent; both bound, they must name the same one;
//   - a request without a credential is who the connection proves;
//   - a request without either is anonymous where the options say so.
//
// A credential that proves nothing is refused, and is never anonymous; so is a
// certificate that no method takes. A user of a Unix socket whom no method names
// has merely proved nothing, as nobody can choose not to be one.
//
// What a connection was let in by may be gone before the connection is: a [Pass] is who has
// entered, judged again while a stream or a body lasts, and [TLS] has requests held to the
// authorities of client certificates that there are by then. Files of keys are looked at
// while they are used, and [RosterOptions].Keys is told of each [KeyEvent].
//
// Without a Roster a caller on HTTP is anonymous ([Anonymous]); the process on the
// other end of stdio is the operating-system user ([Local]). What a caller claims
// about itself, in headers or in a message, is never read here, but for the id of its
// request, which the log has: that is [identity.Agent]. Whether the claim fits the
// credential is [identity.Principal.Bind]; whether that of the connection does, is a
// [Conflict].
//
// The package decides nothing about a call, and tells a caller nothing of why it
// was refused beyond RFC 6750: the reason is the operator's, and holds no credential.
//
// Key sets are fetched by hand, beside go-oidc which verifies tokens: its own set keeps
// no keys while a provider is down, and bounds neither documents nor the rate of
// requests.
package authn
