# The configuration file. Its limits apply to every call, whatever tool files say.

server {
  name = "reports"
}

# Over HTTP all callers are anonymous here and told apart by address. Other transports
# know the caller.
limit "per_caller" {
  key   = "principal.id + ' ' + source.ip"
  rate  = "60/m"
  burst = 5
}
