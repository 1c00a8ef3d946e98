# The operator's file: what no tool file can change. It reloads like the tools.

server {
  name        = "my-tools"
  version     = "0.1.0"
  description = "Tools for my agents"
}

listen {
  address = "127.0.0.1:8080"
}

# Variables are vars.stage in policies and scripts.
# Set one with --var stage=prod or MCPD_VAR_stage=prod.
variable "stage" {
  type    = string
  default = "dev"
}

# Policies here come first, and no tool file can remove them.
policy "prod_is_read_only" {
  when   = "vars.stage == 'prod'"
  allow  = "tool.read_only"
  reason = "Only tools that change nothing may run in prod"
}

# Who calls more often is told how long to wait.
limit "per_caller" {
  key   = "principal.id + ' ' + source.ip"
  rate  = "600/m"
  burst = 100
}
