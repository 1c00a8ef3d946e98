# Input schemas that have to arrive at the client as they are written.

tool "json_schema_2020_12_tool" {
  description  = "Takes a contact whose schema uses most of JSON Schema 2020-12."
  read_only    = true
  input_schema = file("contact.json")
  run          = <<JS
    return `contact of ${input.name ?? "nobody"}`;
  JS
}

# Clients repeat the region in the header Mcp-Param-Region.
tool "test_x_mcp_header" {
  description = "Returns the region that it is given."
  read_only   = true

  input "region" {
    type     = string
    required = false
    header   = "Region"
  }
  input "level" {
    type     = integer
    required = false
  }

  run = <<JS
    return input.region ?? "no region";
  JS
}

test "a contact by phone" {
  tool  = "json_schema_2020_12_tool"
  input = { name = "Ada", contactMethod = "phone", phone = "+44 20 7946 0000" }
  expect { text = "contact of Ada" }
}

test "whoever is called needs a phone" {
  tool  = "json_schema_2020_12_tool"
  input = { name = "Ada", contactMethod = "phone", email = "ada@example.com" }
  expect { error = "INVALID_INPUT" }
}
