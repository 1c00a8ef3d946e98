ceiling {
  sql_drivers = ["sqlite"]
  sql_roots   = ["data"]
}
