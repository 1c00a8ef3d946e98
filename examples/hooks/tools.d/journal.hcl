# A hook runs for every call of the tools it covers: `start` once, then exactly one of
# `end` and `error`. It gets a copy and cannot change the result. It runs in parallel
# with the call: if it fails or is slow, only the log of the server shows it.

hook "journal" {
  on    = ["start", "end", "error"]
  tools = ["*"]
  run   = file("journal.js")
}
