# A tool that queries a system over HTTP. Without the allow block the script would have
# no http object.

tool "get_customer" {
  title       = "Look up a customer in the CRM"
  description = "Returns {customer_id, status} of one customer."
  timeout     = "5s"
  read_only   = true
  open_world  = true

  input "customer_id" {
    type    = string
    pattern = "^C-[0-9]{4}$"
  }

  output "customer_id" { type = string }
  output "status" { type = string }

  allow {
    http "crm" {
      hosts   = ["crm.example.com:443"]
      methods = ["GET"]
      paths   = ["/customers/*"]
      timeout = "3s"
      header "Authorization" { # set when the request is sent; the script never sees it
        value = "Bearer ${secret.crm_token}"
      }
    }
  }

  run = <<JS
    const r = await http.crm.get(`https://crm.example.com/customers/${input.customer_id}`);
    if (r.status === 404) throw new ToolError(`no customer ${input.customer_id}`);
    if (r.status !== 200) throw new ToolError("the CRM does not answer; try again later");
    const { id, status } = r.json();
    return { customer_id: id, status };
  JS
}

# Tests do not touch the network: mocks answer. A request without a mock fails the
# test, which prints the mock to add.

test "an active customer" {
  tool  = "get_customer"
  input = { customer_id = "C-1042" }
  mock "http.crm" "GET /customers/C-1042" {
    json = { id = "C-1042", status = "active" }
  }
  expect {
    output = { customer_id = "C-1042", status = "active" }
    calls  = ["http.crm GET /customers/C-1042"]
  }
}

test "an unknown customer" {
  tool  = "get_customer"
  input = { customer_id = "C-9999" }
  mock "http.crm" "GET /customers/C-9999" {
    status = 404
    text   = "not found"
  }
  expect {
    error           = "EXECUTION_ERROR"
    message_matches = "^no customer C-9999$"
  }
}

test "the CRM is down" {
  tool  = "get_customer"
  input = { customer_id = "C-1042" }
  mock "http.crm" "GET /customers/C-1042" { status = 503 }
  expect {
    error           = "EXECUTION_ERROR"
    message_matches = "try again later$"
  }
}

test "a response that breaks the output schema" {
  tool  = "get_customer"
  input = { customer_id = "C-1042" }
  mock "http.crm" "GET /customers/C-1042" {
    json = { id = "C-1042" }
  }
  expect {
    error           = "EXECUTION_ERROR"
    message_matches = "does not fit its output schema"
  }
}

test "invalid ids send no request" {
  tool  = "get_customer"
  input = { customer_id = "../admin" }
  expect {
    error = "INVALID_INPUT"
    calls = []
  }
}
