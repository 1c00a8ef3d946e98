# A tool file compiled into the binary, next to the Go tool in main.go.

tool "price_order" {
  description = "Adds up the prices of an order in cents. Returns {total}."
  read_only   = true
  timeout     = "10s"

  input "prices" {
    type      = list(integer)
    min_items = 1
  }

  output "total" { type = integer }

  run = <<JS
    return { total: input.prices.reduce((sum, price) => sum + price, 0) };
  JS
}

test "prices are added" {
  tool  = "price_order"
  input = { prices = [100, 250] }
  agent = { agent_id = "shop" }
  expect {
    output = { total = 350 }
  }
}
