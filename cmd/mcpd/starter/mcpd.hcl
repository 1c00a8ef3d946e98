# The configuration file. Tool files cannot change these settings. The server reloads
# it when you save it.

server {
  name        = "my-tools"
  version     = "0.1.0"
  description = "Tools for my agents"
}

listen {
  address = "127.0.0.1:8080"
}

# Policies and scripts read this variable as vars.stage.
# Set it with --var stage=prod or MCPD_VAR_stage=prod.
variable "stage" {
  type    = string
  default = "dev"
}

# Policies in this file run first, and tool files cannot remove them.
policy "prod_is_read_only" {
  when   = "vars.stage == 'prod'"
  allow  = "tool.read_only"
  reason = "Only tools that change nothing may run in prod"
}

# A caller above the limit gets an error with the time to wait.
limit "per_caller" {
  key   = "principal.id + ' ' + source.ip"
  rate  = "600/m"
  burst = 100
}
