# The operator's file under the real clients: so few calls at once that a call
# which does not stop when it is cancelled is missed.

server {
  name         = "mcpd-clients"
  version      = "1.2.3"
  instructions = "Ask for anything."
}

limits {
  concurrency = 4
}
