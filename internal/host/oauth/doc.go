// Package oauth gets access tokens: for this server itself, by the grant of
// client credentials (RFC 6749 section 4.4), and for users who let it have theirs,
// by authorization codes (section 4.1).
//
// A [Client] is what an oauth block says. An [Issuer] makes a [Source] of each,
// which asks for a token when one is first needed, keeps it until shortly
// before it ends, and then asks for the next while the old one still serves.
// Whoever comes meanwhile waits for the same answer; after a failure nobody asks
// for a while, and calls are told at once.
//
// [Users] are those of one client: who has given no token is to be asked, by the
// page that an error names, and comes back to a port of this machine, or to a page
// of the front. There nobody knows who has opened the page, which may have come by
// a link that somebody else was sent: so the token is joined to nobody until the
// user who was asked for it has typed the code that the page shows. Tokens are kept
// in a [Vault].
//
// Requests go out by the transport that the Issuer is given, so that the rules
// of egress hold for them. Answers pass the JSON gate, and no error holds
// anything of them but the codes of RFC 6749 section 5.2. The package follows
// no redirect, and sends nobody anywhere but to the authorization server.
package oauth
