// Package idptest is a small identity provider for tests: an OpenID Connect
// provider on loopback that signs whatever it is asked to, wrongly too.
//
// A [Provider] publishes the keys that it has now. [Provider.Rotate] replaces
// them; [Provider.Answer] has it be down, slow, or answer garbage. [Sign] makes a
// token of any header, claims and [Key], with nothing but the standard library, so
// that no mistake of the library under test is repeated here.
package idptest
