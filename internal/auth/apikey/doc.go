// Package apikey makes, keeps and checks API keys.
//
// A [Key] is what a caller holds: an id, by which it is found, and a secret of
// 160 random bits with a checksum. A [Record] is what the server keeps of it: no
// secret, but its hash. A [Ring] are the records of one file, and tells whose a
// key is. [Add] and [Revoke] change a file.
//
// The hash is one SHA-256 over a salt and the secret. A slow hash makes guesses
// dear where secrets are chosen by people; 160 random bits are beyond guessing at
// any speed, and a slow hash would let strangers keep the server busy.
//
// A file holds one record a line, as JSON. It is readable by its owner alone, is
// replaced whole and never written in place. A file with a mistake is refused;
// what its readable lines revoke is revoked all the same.
//
// The package knows no request, reads no clock and watches nothing.
package apikey
