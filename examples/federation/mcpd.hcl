# Another server, whose tools are served here beside our own, and code of agents that
# joins what both know.

variable "crm_url" {
  type        = string
  default     = "http://127.0.0.1:8081/mcp"
  description = "Where the server of customers is"
}

upstream "crm" {
  url     = var.crm_url
  exclude = ["merge_*"]
  timeout = "5s"

  override "delete_customer" { description = "Deletes a customer for good. Ask before." }
}

codeact {
  max_calls = 20
}

# A rule on a tool holds whoever defines it, and however it is called.
policy "code_deletes_nothing" {
  tools  = ["crm_delete_*"]
  deny   = "call.via == 'code'"
  reason = "Customers are deleted one at a time, and not by code"
}
