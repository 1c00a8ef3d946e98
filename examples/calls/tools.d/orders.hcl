# A call by a tool keeps its caller, and policies see the calling tool. Only total may
# call get_order, for any caller.

tool "get_order" {
  description = "Looks up an order."
  read_only   = true
  input "id" {
    type    = string
    pattern = "^O-[0-9]+$"
  }
  output "cents" { type = integer }
  run = <<JS
    if (input.id === "O-0") throw new ToolError("there is no order O-0");
    return { cents: 100 * Number(input.id.slice(2)) };
  JS
}

tool "total" {
  description = "Sums up orders and lists the missing ones."
  read_only   = true
  timeout     = "5s"

  input "orders" {
    type      = list(string)
    max_items = 20
  }
  output "cents" { type = integer }
  output "missing" { type = list(string) }

  allow {
    call { tools = ["get_order"] }
  }

  run = <<JS
    const missing = [];
    const amounts = await Promise.all(input.orders.map(async (id) => {
      try {
        return (await tools.get_order({ id })).cents;
      } catch (error) {
        if (!(error instanceof HostError) || error.code !== "EXECUTION_ERROR") throw error;
        missing.push(id);
        return 0;
      }
    }));
    return { cents: amounts.reduce((sum, cents) => sum + cents, 0), missing };
  JS
}

policy "orders_by_total_alone" {
  tools  = ["get_order"]
  deny   = "call.via == 'client' || call.via == 'tool' && call.parent != 'total'"
  reason = "Ask for the total"
}

test "an existing order and a second one" {
  tool  = "total"
  input = { orders = ["O-7", "O-7"] }
  mock "tools" "get_order" { json = { cents = 700 } }
  expect {
    output = { cents = 1400, missing = [] }
    calls  = ["tools get_order", "tools get_order"]
  }
}

test "a missing order" {
  tool  = "total"
  input = { orders = ["O-0"] }
  mock "tools" "get_order" { error = "EXECUTION_ERROR" }
  expect { output = { cents = 0, missing = ["O-0"] } }
}
