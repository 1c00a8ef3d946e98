server {
  name  = "shop"
  title = "The shop"
}

auth "api_key" "clients" { file = "keys.json" }

auth "anonymous" "guests" {}

audit { path = "audit/mcpd.jsonl" }

upstream "crm" {
  command = ["mcpd", "serve", "--stdio", "--config", "crm/mcpd.hcl", "--tools", "crm/tools.d", "--state", "memory", "--control", "off"]
}
