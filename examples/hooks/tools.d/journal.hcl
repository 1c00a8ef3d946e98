# A hook is told of every call of the tools it covers: `start` once, and then
# exactly one of `end` and `error`, whatever becomes of the call. It gets a copy,
# cannot change the outcome, and runs beside the call: when it fails or is slow,
# the operator's log says so and the caller notices nothing.

hook "journal" {
  on    = ["start", "end", "error"]
  tools = ["*"]
  run   = file("journal.js")
}
