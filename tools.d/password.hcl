# sensitive redacts a value in the log, hooks, audit records and error messages.
# The script has the value, so the script must not return it.

tool "rate_password" {
  title       = "Rate a password"
  description = "Estimates how hard a password is to guess. Returns {bits, verdict, advice}. The password is neither stored nor logged."
  read_only   = true
  open_world  = false

  input "password" {
    type        = string
    description = "The password to rate"
    sensitive   = true
    min_length  = 1
    max_length  = 256
  }

  output "bits" {
    type        = number
    description = "Estimated entropy"
    min         = 0
  }
  output "verdict" {
    type = string
    enum = ["hopeless", "weak", "fair", "strong"]
  }
  output "advice" { type = list(string) }

  run = <<JS
    const common = ["password", "qwerty", "letmein", "welcome", "admin", "iloveyou", "dragon", "monkey", "abc123", "123456"];
    const runs = ["abcdefghijklmnopqrstuvwxyz", "zyxwvutsrqponmlkjihgfedcba", "0123456789", "9876543210", "qwertyuiop", "asdfghjkl", "zxcvbnm"];
    const plain = input.password.toLowerCase().replaceAll("0", "o").replaceAll("@", "a").replaceAll("$", "s").replaceAll("!", "i");
    const characters = [...input.password];
    const advice = [];

    const alphabets = [[/[a-z]/, 26], [/[A-Z]/, 26], [/[0-9]/, 10], [/[^A-Za-z0-9]/, 33]];
    const size = alphabets.reduce((sum, [letters, n]) => sum + (letters.test(input.password) ? n : 0), 0);

    // A character that continues a sequence of the two before it counts little.
    let telling = 0;
    characters.forEach((c, i) => {
      const three = characters.slice(i - 2, i + 1).join("").toLowerCase();
      const foreseen = i > 1 && (three === c.toLowerCase().repeat(3) || runs.some((run) => run.includes(three)));
      telling += foreseen ? 0.25 : 1;
    });
    if (telling < characters.length) advice.push("avoid repetitions and sequences");

    let bits = telling * Math.log2(size);
    if (common.some((word) => plain.includes(word) || input.password.toLowerCase().includes(word))) {
      advice.push("avoid words that everyone tries first");
      bits /= 3;
    }
    if (characters.length < 12) advice.push("use at least 12 characters; four random words are better still");

    bits = Math.round(bits * 10) / 10;
    const verdict = bits < 28 ? "hopeless" : bits < 50 ? "weak" : bits < 70 ? "fair" : "strong";
    return { bits, verdict, advice };
  JS
}

test "what everyone tries first is hopeless" {
  tool  = "rate_password"
  input = { password = "P@ssw0rd" }
  expect {
    output = {
      bits    = 17.5
      verdict = "hopeless"
      advice  = ["avoid words that everyone tries first", "use at least 12 characters; four random words are better still"]
    }
  }
}

test "sequences count for little" {
  tool  = "rate_password"
  input = { password = "abcdefgh2345AAAA" }
  expect {
    output = { bits = 50.6, verdict = "fair", advice = ["avoid repetitions and sequences"] }
  }
}

test "random words are strong" {
  tool  = "rate_password"
  input = { password = "tramp-velvet-onion-44" }
  expect {
    output = { bits = 128.3, verdict = "strong", advice = [] }
  }
}

test "there is no empty password" {
  tool  = "rate_password"
  input = { password = "" }
  expect {
    error           = "INVALID_INPUT"
    message_matches = "/password "
  }
}
