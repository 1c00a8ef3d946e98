tool "in_stock" {
  description = "Returns the stock of an article by warehouse."
  read_only   = true

  input "article" { type = string }
  output "counts" { type = map(integer) }

  allow {
    module "stock" { warehouses = ["north", "south"] }
  }

  run = <<JS
    const counts = {};
    for (const warehouse of ["north", "south"]) {
      counts[warehouse] = await modules.stock.count({ warehouse, article: input.article });
    }
    return { counts };
  JS
}

tool "peek" {
  description = "Shows that a script reaches only what its grant allows."
  read_only   = true

  input "warehouse" { type = string }

  allow {
    module "stock" { warehouses = ["north"] }
  }

  run = <<JS
    return modules.stock.count({ warehouse: input.warehouse, article: "crown" });
  JS
}

test "lamps" {
  tool  = "in_stock"
  input = { article = "lamp" }
  mock "modules.stock" "count" { json = 3 }
  expect {
    output = { counts = { north = 3, south = 3 } }
    calls  = ["modules.stock count", "modules.stock count"]
  }
}

test "a warehouse without a grant" {
  tool  = "peek"
  input = { warehouse = "vault" }
  mock "modules.stock" "count" { error = "DENIED" }
  expect { error = "EXECUTION_ERROR" }
}
