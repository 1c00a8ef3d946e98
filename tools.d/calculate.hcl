# A script may define functions. This one evaluates an untrusted expression, so
# it uses a parser that accepts only numbers, operators and a short list of
# functions. It never evaluates text as code.

tool "calculate" {
  title       = "Evaluate an arithmetic expression"
  description = <<-TEXT
    Evaluates an arithmetic expression exactly as written. Returns {value}.
    Knows + - * / % ^, parentheses, the constants pi and e, and the functions
    abs, ceil, cos, exp, floor, ln, log10, max, min, round, sin, sqrt, tan
    (angles in radians). Use it for any sum with more than one step.
  TEXT
  read_only   = true
  open_world  = false

  input "expression" {
    type        = string
    description = "For example: (1 + 2) * sqrt(16) / 3"
    min_length  = 1
    max_length  = 500
    examples    = ["2 * (3 + 4)", "max(1, 5) ^ 2"]
  }

  output "value" { type = number }

  run = <<JS
    const constants = { __proto__: null, pi: Math.PI, e: Math.E };
    const functions = {
      __proto__: null, // so that "constructor" is no function of ours
      abs: Math.abs, ceil: Math.ceil, cos: Math.cos, exp: Math.exp, floor: Math.floor, ln: Math.log, log10: Math.log10,
      max: Math.max, min: Math.min, round: Math.round, sin: Math.sin, sqrt: Math.sqrt, tan: Math.tan,
    };
    const operators = {
      __proto__: null,
      "+": { level: 1, of: (a, b) => a + b },
      "-": { level: 1, of: (a, b) => a - b },
      "*": { level: 2, of: (a, b) => a * b },
      "/": { level: 2, of: (a, b) => a / b },
      "%": { level: 2, of: (a, b) => a % b },
      "^": { level: 3, of: (a, b) => a ** b, fromRight: true },
    };

    const tokens = [...input.expression.matchAll(/[A-Za-z_]\w*|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|\S/g)];
    let at = 0;

    const peek = () => tokens[at]?.[0];
    function fail(what) {
      const place = tokens[at] ? `at character ${tokens[at].index + 1}` : "at the end";
      throw new ToolError(`${what} ${place}`);
    }
    function expect(sign) {
      if (peek() !== sign) fail(`"${sign}" is missing`);
      at++;
    }

    // Precedence climbing: operators of at least this level belong to the
    // expression. Recursion is bounded here, so that text cannot exhaust the stack.
    function expression(level, depth) {
      if (depth > 50) fail("the expression nests too deep");
      let left = operand(depth);
      for (;;) {
        const operator = operators[peek()];
        if (!operator || operator.level < level) return left;
        at++;
        left = operator.of(left, expression(operator.fromRight ? operator.level : operator.level + 1, depth + 1));
      }
    }

    function operand(depth) {
      const token = peek();
      if (token === undefined) fail("a number is missing");
      if (token === "-" || token === "+") {
        at++;
        const value = expression(operators["^"].level, depth + 1); // -2^2 is -(2^2)
        return token === "-" ? -value : value;
      }
      if (token === "(") {
        at++;
        const value = expression(1, depth + 1);
        expect(")");
        return value;
      }
      if (token in functions) return call(functions[token], depth);
      if (token in constants) {
        at++;
        return constants[token];
      }
      const value = Number(token);
      if (Number.isNaN(value)) fail(`"${token}" is not known`);
      at++;
      return value;
    }

    function call(of, depth) {
      at++;
      expect("(");
      const args = [expression(1, depth + 1)];
      while (peek() === ",") {
        at++;
        args.push(expression(1, depth + 1));
      }
      expect(")");
      return of(...args);
    }

    const value = expression(1, 0);
    if (at < tokens.length) fail(`"${peek()}" is not expected`);
    if (!Number.isFinite(value)) throw new ToolError("the result is not a finite number");
    return { value };
  JS
}

test "operators bind as in mathematics" {
  tool  = "calculate"
  input = { expression = "1 + 2 * 3 - -2^2 ^ 1 / 4" }
  expect {
    output = { value = 8 }
  }
}

test "functions take several arguments" {
  tool  = "calculate"
  input = { expression = "max(1, sqrt(16), 3) * round(2.4) + 0 * pi" }
  expect {
    output = { value = 8 }
  }
}

test "a mistake is told with its place" {
  tool  = "calculate"
  input = { expression = "2 * (3 + " }
  expect {
    error           = "EXECUTION_ERROR"
    message_matches = "^a number is missing at the end$"
  }
}

test "the expression reaches nothing but arithmetic" {
  tool  = "calculate"
  input = { expression = "constructor(1)" }
  expect {
    error           = "EXECUTION_ERROR"
    message_matches = "^\"constructor\" is not known at character 1$"
  }
}

test "division by zero has no value" {
  tool  = "calculate"
  input = { expression = "1 / (2 - 2)" }
  expect {
    error           = "EXECUTION_ERROR"
    message_matches = "finite"
  }
}

test "brackets nest fifty deep at most" {
  tool  = "calculate"
  input = { expression = "((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((1" }
  expect {
    error           = "EXECUTION_ERROR"
    message_matches = "nests too deep"
  }
}
