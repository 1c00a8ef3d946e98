# The operator's file of an mcpd before the one that serves testdata/clients/tour.d.
# Started by .ci/federation.

server {
  name = "mcpd-proxy"
}

variable "mcpd" {
  type        = string
  description = "The program of the other"
}

variable "clients" {
  type        = string
  description = "The folder of its operator's file"
}

variable "tools" {
  type        = string
  description = "The folder of its tools"
}

limits {
  concurrency = 4
}

upstream "tour" {
  command = [
    var.mcpd, "serve", "--stdio", "--config", "${var.clients}/mcpd.hcl", "--tools", var.tools,
    "--state", "memory", "--control", "off", "--log-level", "info", "--grace", "1s",
  ]
  prefix  = ""
  pin     = "off" # the tour changes its tools
  ask     = ["elicit"]
  timeout = "5m"
}

# What a policy of the other refuses has failed, as far as this one knows.
policy "sums_stay_small" {
  tools  = ["add"]
  deny   = "args.a > 1000 || args.b > 1000"
  reason = "Sums stay small"
}
