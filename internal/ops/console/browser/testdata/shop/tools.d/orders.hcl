tool "price" {
  title       = "Price of an order"
  description = "Adds up the price of an order. Returns {total, currency}."
  read_only   = true

  input "customer" {
    type        = string
    description = "The name on the invoice"
    min_length  = 1
  }
  input "items" {
    type        = list(object({ sku = string, count = number }))
    description = "What is ordered"
  }
  input "currency" {
    type    = string
    enum    = ["EUR", "USD"]
    default = "EUR"
  }
  input "express" {
    type    = bool
    default = false
  }

  output "total" { type = number }
  output "currency" { type = string }

  run = <<JS
    log.info("adds up an order", { lines: input.items.length });
    let total = input.express ? 5 : 0;
    for (const item of input.items) total += item.count * 10;
    return { total, currency: input.currency };
  JS
}

tool "greet" {
  description = "Greets somebody."
  read_only   = true

  input "name" { type = string }

  run = "return `Hello, $${input.name}!`;"
}

resource "hours" {
  uri         = "shop://hours"
  description = "The opening hours."
  mime_type   = "text/plain"

  run = "return 'Monday to Friday, 9 to 17';"
}

prompt "complaint" {
  description = "Answers a complaint."

  argument "text" {}

  run = "return `Answer this complaint politely: $${input.text}`;"
}
