server {
  name    = "crm-mcp"
  version = "1.0.0"
}

# mcpd reads the value from CRM_TOKEN when it needs it. The value is in no revision,
# and scripts never see it.
secret "crm_token" { env = "CRM_TOKEN" }

# No grant of a tool file may exceed this.
ceiling {
  http_hosts = ["*.example.com:443"]
}
