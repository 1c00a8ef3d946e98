tool "report" {
  description = "Writes the report of a day. Waits for the warehouse."
  read_only   = true
  timeout     = "60s"

  allow {
    http "warehouse" {
      hosts            = ["127.0.0.1:8000"]
      private_networks = true
    }
  }

  run = <<JS
    progress(1, 2, "asks the warehouse");
    log.info("asks the warehouse");
    const answer = await http.warehouse.get("http://127.0.0.1:8000/stock");
    progress(2, 2, "has the stock");
    return `In stock: ${await answer.text()}`;
  JS
}
