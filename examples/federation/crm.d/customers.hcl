# The tools of the upstream server.

tool "list_customers" {
  description = "Lists all customers."
  read_only   = true
  output "customers" { type = list(object({ id = string, name = string })) }
  run = <<JS
    return { customers: [{ id: "C-1", name: "Ada" }, { id: "C-2", name: "Grace" }] };
  JS
}

tool "delete_customer" {
  description = "Deletes a customer."
  destructive = true
  input "id" {
    type    = string
    pattern = "^C-[0-9]+$"
  }
  run = "return input.id + ' is deleted';"
}

tool "merge_customers" {
  description = "Merges two customers."
  input "ids" { type = list(string) }
  run = "return 'merged';"
}
