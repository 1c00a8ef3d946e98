# A long call reports its progress. Clients that request progress get it while
# the call runs; `mcpd call` prints it. Other clients get no progress.
#
#   mcpd call factor_number number=999999000001

tool "factor_number" {
  title       = "Factor a number"
  description = "Splits a whole number into its prime factors. Returns {factors, prime}: 12 is 2, 2 and 3."
  timeout     = "10s"
  read_only   = true
  open_world  = false

  input "number" {
    type        = integer
    description = "From 2 to 1,000,000,000,000"
    min         = 2
    max         = 1000000000000
  }

  output "factors" { type = list(integer) }
  output "prime" { type = bool }

  run = <<JS
    const factors = [];
    let rest = input.number;
    const last = Math.floor(Math.sqrt(rest));
    const tenth = Math.max(Math.floor(last / 10), 1000);
    let next = tenth;
    for (let divisor = 2; divisor * divisor <= rest; divisor += divisor === 2 ? 1 : 2) {
      while (rest % divisor === 0) {
        factors.push(divisor);
        rest /= divisor;
      }
      if (divisor >= next) {
        progress(divisor, last, "dividing");
        next += tenth;
      }
    }
    if (rest > 1) factors.push(rest);
    return { factors, prime: factors.length === 1 };
  JS
}

test "factors repeat" {
  tool  = "factor_number"
  input = { number = 360 }
  expect {
    output = { factors = [2, 2, 2, 3, 3, 5], prime = false }
  }
}

test "the smallest prime is two" {
  tool  = "factor_number"
  input = { number = 2 }
  expect {
    output = { factors = [2], prime = true }
  }
}

test "a large prime is found within the timeout" {
  tool  = "factor_number"
  input = { number = 9999999967 }
  expect {
    output = { factors = [9999999967], prime = true }
  }
}

test "one has no prime factors" {
  tool  = "factor_number"
  input = { number = 1 }
  expect {
    error           = "INVALID_INPUT"
    message_matches = "/number "
  }
}

test "half a number neither" {
  tool  = "factor_number"
  input = { number = 2.5 }
  expect {
    error           = "INVALID_INPUT"
    message_matches = "/number "
  }
}
