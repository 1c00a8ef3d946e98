# The operator's file. Its policies are asked first, and nothing in tools.d can
# remove, shadow or weaken them.

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
  description = "Where this server runs"
}

# vars.stage is typed: vars.stgae would be an error when the file is loaded.
policy "blocked_in_prod" {
  deny   = "vars.stage == 'prod' && !tool.read_only && !principal.scopes.exists(s, s == 'admin')"
  reason = "Blocked in prod"
}

# What a caller may surely not call is left out of its lists. With "hide" a call
# ends as if there were no such tool.
policy "admin_tools_are_for_admins" {
  tools    = ["admin_*"]
  allow    = "principal.scopes.exists(s, s == 'admin')"
  reason   = "Only admins may use this"
  disclose = "hide"
}
