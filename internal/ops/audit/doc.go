// Package audit writes down what was called, by whom, and what became of it.
//
// A [Log] is a file of lines, each a JSON object. [Log.Outcome] adds the line of
// a [Record] when a call has ended; in strict mode [Log.Intent] adds one before
// it does anything, and both return when the disk has confirmed the line.
// Callers that come together share one sync. [Log.Event] tells of what is no
// call. [Verify], [Tail] and [Export] read a log, also while it is written.
//
// # What is written
//
// Arguments are written as their structure and a keyed digest of their canonical
// form: equal arguments have equal digests, and nobody without the key can try
// values. Values are written only when the caller of the package hands them over.
// Members whose names look secret are masked, and what a veil hides is taken out
// of all that callers choose or are told. Every text is escaped, and cut at
// a bound, as is the number of members and items.
//
// An [Approval] says what became of the one that policies wanted, and [Unanswered] finds
// those that nobody has given or refused. Of the question there is a keyed digest.
//
// # The chain
//
// Each line holds its number, the authentication code of the line before, and
// its own, an HMAC with the key of the log. The chain goes on across files that
// were put aside and across restarts. The head, a small file that is replaced
// atomically, says how far the log is durable. A strict log writes it before it
// acknowledges a line, a relaxed one within a second of a line; it is durable itself within
// a second, when a file is put aside, and at the end. [Verify] so finds lines that
// were changed, taken out, added or moved, files that are missing, and a tail
// that was cut off before what the head knows. The mark, the
// second line of the key file, holds the number and the code of a record that was durable
// when the mark was written: at the start, within a second of a record, when a file is put
// aside, and at the end. So [Verify] and [Open] also find a log that was removed or rolled
// back together with its head, but for the last second. Who has the key can write any
// log, and who can put back older states of log, head and key file together cuts the
// time between: that takes a witness elsewhere, such as a copy of what verify
// prints. A key file that cannot be written has no mark. Nor is a cut found of lines that are younger than the head: the last second of a
// relaxed log that was killed, and of any log after a loss of power.
//
// A line that was cut off in the midst, by a kill or a loss of power, is taken
// out when the log is opened, and an event tells its length and digest. Any
// other line that is not authentic stays where it is.
//
// # When the disk fails
//
// After a failed write or sync nothing is known of what stands behind the last
// sync that succeeded: systems drop pages that they could not write and call
// them clean. All of that is in memory, so the file is opened anew, cut to its
// durable part and written again. A strict log refuses meanwhile, forgets the
// lines that it has refused, and tries again with each call. A relaxed log
// keeps lines, 4 MiB and a queue of them, and tries again by the clock; beyond
// that it gives records up, and an event tells how many. A relaxed log loses
// what a loss of power takes that is not synced yet, a second of it or 4 MiB;
// a kill takes what is in the queue.
//
// The package does not decide what is written down and when, knows no protocol,
// and sends nothing over a network.
//
// Canonical JSON is written by hand here: the walker masks secrets, sorts and digests
// arguments in one pass without allocating, and the digests in logs must stay what they
// are.
package audit
