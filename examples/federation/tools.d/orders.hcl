tool "list_orders" {
  description = "Lists the orders of a customer."
  read_only   = true
  input "customer" {
    type    = string
    pattern = "^C-[0-9]+$"
  }
  output "orders" { type = list(object({ number = string, cents = integer })) }
  run = <<JS
    const orders = { "C-1": [{ number: "O-7", cents: 700 }, { number: "O-12", cents: 1200 }] };
    return { orders: orders[input.customer] ?? [] };
  JS
}

tool "remind" {
  description = "Sends a customer a reminder."
  input "customer" { type = string }
  run     = "return 'reminded ' + input.customer;"
  dry_run = "return 'would remind ' + input.customer;"
}

test "the orders of a customer" {
  tool  = "list_orders"
  input = { customer = "C-2" }
  expect { output = { orders = [] } }
}

test "code calls mocked tools" {
  tool  = "run_code"
  input = { code = "const { orders } = await list_orders({ customer: 'C-1' }); orders.length" }
  mock "tools" "list_orders" {
    json = { orders = [{ number = "O-1", cents = 1 }] }
  }
  expect {
    output = { result = 1, stdout = "", calls = [{ tool = "list_orders", outcome = "ok" }] }
  }
}
