# The tools of .ci/types. check.ts has the correct script of the tool check.
tool "check" {
  description = "Looks a customer up, and stores when."
  read_only   = true

  input "id" { type = string }
  input "limit" {
    type    = integer
    default = 10
  }

  output "name" { type = string }
  output "total" { type = number }

  allow {
    http "crm" {
      hosts = ["crm.internal:443"]
    }
    call {
      tools = ["s*m"]
    }
  }

  run = file("check.ts")
}

tool "sum" {
  description = "Adds up amounts."
  read_only   = true

  input "amounts" { type = list(number) }

  output "total" { type = number }

  run = <<JS
    return { total: input.amounts.reduce((sum, amount) => sum + amount, 0) };
  JS
}

resource "stage" {
  uri       = "crm://stage"
  mime_type = "text/plain"
  run       = file("stage.js")
}

resource_template "customer" {
  uri_template = "crm://customers/{team}/{id}"
  mime_type    = "application/json"

  complete "id" {
    run = file("ids.ts")
  }

  run = file("customer.ts")
}

prompt "greet" {
  argument "name" {
    required = true
    complete {
      run = file("names.ts")
    }
  }

  run = file("greet.ts")
}

hook "seen" {
  on  = ["end"]
  run = file("seen.ts")
}
