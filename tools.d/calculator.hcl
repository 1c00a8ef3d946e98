# The smallest complete tools: typed arguments in, a typed result out.
#
#   mcpd call add a=2 b=3

tool "add" {
  title       = "Add two numbers"
  description = "Adds two numbers. Returns {sum}. Use it instead of adding in your head."
  read_only   = true
  open_world  = false

  input "a" {
    type        = number
    description = "First number"
  }
  input "b" {
    type        = number
    description = "Second number"
  }

  # A tool with outputs returns an object. mcpd validates it against them, and
  # MCP clients receive it as structuredContent.
  output "sum" { type = number }

  run = <<JS
    return { sum: input.a + input.b };
  JS
}

tool "multiply" {
  title       = "Multiply two numbers"
  description = "Multiplies two numbers. Returns {product}. Use it instead of multiplying in your head."
  read_only   = true
  open_world  = false

  input "a" {
    type        = number
    description = "First number"
  }
  input "b" {
    type        = number
    description = "Second number"
  }

  output "product" { type = number }

  run = <<JS
    const product = input.a * input.b;
    // JSON has no infinity, so the result would violate the output schema. A
    // ToolError is clearer: its text is the error message for the caller.
    if (!Number.isFinite(product)) throw new ToolError("the product is too large for a number");
    return { product };
  JS
}

# Tests are next to the tools: `mcpd test` runs them, and with
# reload { require_tests = true }, mcpd rejects a change that breaks one.

test "two numbers are added" {
  tool  = "add"
  input = { a = 2, b = 3 }
  expect {
    output = { sum = 5 }
  }
}

test "numbers are 64-bit floats, with their rounding" {
  tool  = "add"
  input = { a = 0.1, b = 0.2 }
  expect {
    output = { sum = 0.30000000000000004 }
  }
}

test "text is not a number" {
  tool  = "add"
  input = { a = "two", b = 3 }
  expect {
    error           = "INVALID_INPUT"
    message_matches = "/a "
  }
}

test "two numbers are multiplied" {
  tool  = "multiply"
  input = { a = -6, b = 7 }
  expect {
    output = { product = -42 }
  }
}

test "a product beyond every number is an error" {
  tool  = "multiply"
  input = { a = 1e200, b = 1e200 }
  expect {
    error           = "EXECUTION_ERROR"
    message_matches = "^the product is too large for a number$"
  }
}
