# The configuration file. Its policies run first. Nothing in tools.d can remove, shadow
# or weaken them.

server {
  name         = "customer-mcp"
  version      = "1.0.0"
  description  = "Customer tools"
  instructions = "Look a customer up before you change one."
}

# mcpd serve --var stage=prod, or MCPD_VAR_stage=prod in the environment.
variable "stage" {
  type        = string
  default     = "dev"
  description = "Stage of this server"
}

# vars.stage is typed: vars.stgae would be an error at load.
policy "blocked_in_prod" {
  deny   = "vars.stage == 'prod' && !tool.read_only && !principal.scopes.exists(s, s == 'admin')"
  reason = "Blocked in prod"
}

# Lists omit what a caller certainly may not call. With "hide" a call fails as if the
# tool did not exist.
policy "admin_tools_are_for_admins" {
  tools    = ["admin_*"]
  allow    = "principal.scopes.exists(s, s == 'admin')"
  reason   = "Only admins may use this"
  disclose = "hide"
}
