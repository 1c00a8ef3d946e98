# A server whose tools do all that a script can do to the machine, and some that do
# what tools ought to. cmd/mcpd/bombs_test.go starts it, and answers in the place
# of 127.0.0.1:9.
server {
  name    = "bombs"
  version = "1.0.0"
}
