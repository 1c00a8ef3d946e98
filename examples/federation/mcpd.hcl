# An upstream server, whose tools are served next to our own, and agent code that
# combines both.

variable "crm_url" {
  type        = string
  default     = "http://127.0.0.1:8081/mcp"
  description = "URL of the server of customers"
}

upstream "crm" {
  url     = var.crm_url
  exclude = ["merge_*"]
  timeout = "5s"

  override "delete_customer" { description = "Deletes a customer permanently. Ask first." }
}

codeact {
  max_calls = 20
}

# A policy applies to a tool whoever defines it and however it is called.
policy "code_deletes_nothing" {
  tools  = ["crm_delete_*"]
  deny   = "call.via == 'code'"
  reason = "Customers are deleted one at a time, and not by code"
}
