server {
  name    = "crm-mcp"
  version = "1.0.0"
}

# The value is read when it is needed, from CRM_TOKEN. It is part of no revision,
# and scripts never see it.
secret "crm_token" { env = "CRM_TOKEN" }

# Nothing that a tool file grants may exceed this.
ceiling {
  http_hosts = ["*.example.com:443"]
}
