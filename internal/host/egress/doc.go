// Package egress sends the HTTP requests of scripts, and nothing that their
// grants do not name.
//
// [Pool.Do] takes a request as JSON and a [grant.HTTP], and works through the
// doors in this order: the URL must have one meaning only (address), the
// grant must name its host, port, method and path (permit), the script's
// headers must be harmless (header), and the network must be one that the
// grant reaches: that is asked of every address that is dialled, when it is
// dialled (network), so that no answer of a name server goes around it. A
// redirect goes through all doors again. Secrets are put in last, and are in
// no error, no log record and no answer of ours.
//
// The script gets a [scripting.HostError] for every refusal and every failure.
// Its message repeats nothing that the script does not know already.
//
// The package keeps no cookies, speaks to no proxy, unpacks no encoding, and
// does not try again.
package egress
