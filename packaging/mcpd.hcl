# The configuration file. Tool files cannot change these settings. mcpd reloads this file
# when you save it.

server {
  name = "mcpd"
}

# Only programs on this machine can connect. Another address requires auth and tls blocks.
listen {
  address = "127.0.0.1:8080"
}
