tool "divide" {
  description = "Divides one number by another. Returns {quotient}."
  read_only   = true

  input "dividend" { type = number }
  input "divisor" { type = number }
  input "comment" {
    type      = string
    default   = ""
    sensitive = true # hooks see that it exists, not its value
  }

  output "quotient" { type = number }

  run = <<JS
    if (input.divisor === 0) throw new ToolError("nothing can be divided by zero");
    return { quotient: input.dividend / input.divisor };
  JS
}

test "six by four" {
  tool  = "divide"
  input = { dividend = 6, divisor = 4 }
  expect {
    output = { quotient = 1.5 }
  }
}

test "division by zero" {
  tool  = "divide"
  input = { dividend = 1, divisor = 0 }
  expect { error = "EXECUTION_ERROR" }
}
