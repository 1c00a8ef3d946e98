# Two policies on one tool: all must allow the call, and the first denial wins.
# A reason may be a CEL expression, like the rule.

tool "draft_refund" {
  title       = "Draft a refund"
  description = <<-TEXT
    Drafts a refund for a person to release. Nothing is paid by this tool.
    Returns {text}, ready to be sent to the finance team. Refunds above 50.00
    can only be drafted for callers in the group "leads".
  TEXT
  read_only   = true
  open_world  = false
  labels      = { team = "finance" }

  input "customer_id" {
    type        = string
    description = "Customer id, like C-1042"
    pattern     = "^C-[0-9]{4}$"
  }
  input "amount_cents" {
    type        = integer
    description = "Amount in cents: 1250 is 12.50"
    min         = 1
    max         = 1000000
  }
  input "because" {
    type        = string
    description = "Why the customer gets the money back, in one sentence"
    min_length  = 10
    max_length  = 300
  }

  output "text" { type = string }

  run = <<JS
    const amount = (input.amount_cents / 100).toFixed(2);
    return { text: `Refund ${amount} to customer ${input.customer_id}.\nReason: ${input.because}` };
  JS
}

policy "small_refunds_only" {
  tools  = ["draft_refund"]
  allow  = "args.amount_cents <= 5000 || principal.groups.exists(g, g == 'leads')"
  reason = <<CEL
    "Refunds above 50.00 need a lead; this one is " + string(args.amount_cents - 5000) + " cents above"
  CEL
}

# tools are names or patterns, and `when` selects the calls that the policy
# covers. This policy covers every draft tool of the finance team, also tools
# that are added later.
policy "reasons_are_for_people" {
  tools  = ["draft_*"]
  when   = "'team' in tool.labels && tool.labels.team == 'finance'"
  deny   = "args.because.contains('http://') || args.because.contains('https://')"
  reason = "Reasons are for people: no links"
}

test "a small refund is drafted for anyone" {
  tool  = "draft_refund"
  input = { customer_id = "C-1042", amount_cents = 1250, because = "The parcel never arrived." }
  expect {
    output = { text = "Refund 12.50 to customer C-1042.\nReason: The parcel never arrived." }
  }
}

test "the limit itself is still small" {
  tool  = "draft_refund"
  input = { customer_id = "C-1042", amount_cents = 5000, because = "The parcel never arrived." }
  expect {
    output = { text = "Refund 50.00 to customer C-1042.\nReason: The parcel never arrived." }
  }
}

test "a large refund needs a lead" {
  tool  = "draft_refund"
  input = { customer_id = "C-1042", amount_cents = 5001, because = "The parcel never arrived." }
  expect {
    error           = "POLICY_DENIED"
    denied_by       = "small_refunds_only"
    message_matches = "^Refunds above 50.00 need a lead; this one is 1 cents above$"
  }
}

test "a lead may draft a large one" {
  tool      = "draft_refund"
  input     = { customer_id = "C-1042", amount_cents = 99900, because = "The whole order was lost." }
  principal = { id = "dana", groups = ["leads"] }
  expect {
    output = { text = "Refund 999.00 to customer C-1042.\nReason: The whole order was lost." }
  }
}

test "all policies must allow" {
  tool  = "draft_refund"
  input = { customer_id = "C-1042", amount_cents = 100, because = "See https://example.com/why" }
  expect {
    error           = "POLICY_DENIED"
    denied_by       = "reasons_are_for_people"
    message_matches = "^Reasons are for people: no links$"
  }
}
