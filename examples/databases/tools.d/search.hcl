tool "search_database" {
  description = "Search customer database with filters"
  timeout     = "5s"
  read_only   = true
  idempotent  = true

  input "query" {
    type        = string
    description = "Search query"
    max_length  = 100
  }
  input "filters" {
    required = false
    field "status" {
      type     = string
      enum     = ["active", "inactive", "pending"]
      required = false
    }
    field "created_after" {
      type     = string
      format   = "date"
      required = false
    }
  }
  input "limit" {
    type    = integer
    min     = 1
    max     = 100
    default = 10
  }

  allow {
    sql "shop" {
      driver   = "sqlite"
      dsn      = "../data/shop.db"
      max_rows = 100
      statement "search" {
        query = <<SQL
          SELECT id, name, status
          FROM customers
          WHERE instr(lower(name), lower(:query)) > 0
            AND (:status IS NULL OR status = :status)
            AND (:created_after IS NULL OR created > :created_after)
          ORDER BY name, id
          LIMIT :limit
        SQL
      }
    }
  }

  run = <<JS
    const { status, created_after } = input.filters ?? {};
    const rows = await sql.shop.query("search", { query: input.query, status, created_after, limit: input.limit });
    return { customers: rows };
  JS
}

test "omitted filters are null" {
  tool  = "search_database"
  input = { query = "ann" }
  mock "sql.shop" "search" {
    json = [{ id = 1, name = "Ann Archer", status = "active" }]
  }
  expect {
    output = {
      customers = [{ id = 1, name = "Ann Archer", status = "active" }]
    }
    calls = ["sql.shop search"]
  }
}

test "an invalid status" {
  tool = "search_database"
  input = {
    query   = "ann"
    filters = { status = "' OR 1=1 --" }
  }
  expect {
    error = "INVALID_INPUT"
    calls = []
  }
}
