hook "visits" {
  on = ["end"]

  allow {
    kv "visits" {
      scope = "server"
      ttl   = "24h"
    }
  }

  run = <<JS
    await kv.visits.incr(event.tool);
  JS
}

tool "visits" {
  description = "Returns the number of calls of each tool in about the last day."
  read_only   = true

  allow {
    kv "visits" {
      scope = "server"
      ttl   = "24h"
    }
  }

  run = <<JS
    const visits = {};
    for (const tool of await kv.visits.list()) visits[tool] = await kv.visits.get(tool);
    return visits;
  JS
}

test "visits" {
  tool = "visits"
  mock "kv.visits" "add_note" { json = 3 }
  expect { output = { add_note = 3 } }
}
