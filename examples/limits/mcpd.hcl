# The operator's file. Its limits are counted for every call, whatever tool
# files say.

server {
  name = "reports"
}

# Over HTTP all callers are anonymous in this version, and told apart by where
# they are; other transports tell who calls.
limit "per_caller" {
  key   = "principal.id + ' ' + source.ip"
  rate  = "60/m"
  burst = 5
}
