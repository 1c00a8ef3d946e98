tool "refund" {
  description = "Pays an order back. Returns the order and the amount."
  destructive = true

  input "order" { type = string }
  input "amount" {
    type = number
    min  = 0
  }

  run = "return `$${input.amount} for $${input.order} is paid back`;"
}

policy "large_refunds_need_approval" {
  tools             = ["refund"]
  requires_approval = "args.amount > 100.0"
  reason            = "A refund of more than 100 needs a person"
}

policy "guests_get_no_refunds" {
  tools  = ["refund"]
  deny   = "principal.kind == 'anonymous'"
  reason = "Guests cannot pay back"
}
