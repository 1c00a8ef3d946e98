# The operator's file of the conformance fixtures. Started by ./serve.

server {
  name         = "mcpd-conformance"
  title        = "mcpd conformance fixtures"
  description  = "What the official MCP conformance suite asks of a server"
  instructions = "Every tool here answers a scenario of the conformance suite."
}
