# mcpd validates format, so a date that reaches a script is a valid date.
# Scripts have a clock, Date. These tools take all dates as arguments, so they
# return the same result every day, and their tests keep passing.

tool "add_to_date" {
  title       = "Add to a date"
  description = <<-TEXT
    Adds years, months, weeks and days (negative to subtract) to a calendar
    date. Returns {date, weekday}. Months are added first and end on the last
    day of a shorter month: one month after 2024-01-31 is 2024-02-29.
  TEXT
  read_only   = true
  open_world  = false

  input "date" {
    type        = string
    format      = "date"
    description = "Like 2024-01-31"
  }
  input "years" {
    type    = integer
    default = 0
    min     = -9999
    max     = 9999
  }
  input "months" {
    type    = integer
    default = 0
    min     = -120000
    max     = 120000
  }
  input "weeks" {
    type    = integer
    default = 0
    min     = -600000
    max     = 600000
  }
  input "days" {
    type    = integer
    default = 0
    min     = -4000000
    max     = 4000000
  }

  output "date" {
    type   = string
    format = "date"
  }
  output "weekday" { type = string }

  run = <<JS
    const [year, month, day] = input.date.split("-").map(Number);

    // In UTC there is no daylight saving time: every day has 24 hours.
    const utc = (y, m, d) => {
      const date = new Date(0);
      date.setUTCFullYear(y, m, d); // unlike Date.UTC, it takes the year 50 for the year 50
      return date;
    };
    const months = month - 1 + input.months + 12 * input.years;
    const lastOfMonth = utc(year, months + 1, 0).getUTCDate();
    const date = utc(year, months, Math.min(day, lastOfMonth) + input.days + 7 * input.weeks);

    const y = date.getUTCFullYear();
    if (!(y >= 1 && y <= 9999)) throw new ToolError("the result is outside of the years 0001 to 9999");
    const two = (n) => String(n).padStart(2, "0");
    return {
      date: `${String(y).padStart(4, "0")}-${two(date.getUTCMonth() + 1)}-${two(date.getUTCDate())}`,
      weekday: ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"][date.getUTCDay()],
    };
  JS
}

tool "days_between" {
  title       = "Count the days between two dates"
  description = "Counts from start to end. Returns {days, weekdays}: all days, and those from Monday to Friday, without the end itself. Both are negative when end is before start."
  read_only   = true
  open_world  = false

  input "start" {
    type        = string
    format      = "date"
    description = "Like 2024-01-31"
  }
  input "end" {
    type        = string
    format      = "date"
    description = "Like 2024-02-29"
  }

  output "days" { type = integer }
  output "weekdays" { type = integer }

  run = <<JS
    const dayOf = (date) => {
      const [y, m, d] = date.split("-").map(Number);
      return new Date(0).setUTCFullYear(y, m - 1, d) / 86_400_000; // days since 1970-01-01
    };
    // weekdaysBefore counts the days from Monday to Friday before a day, from a
    // Monday before every valid date, without a loop over the years.
    const monday = dayOf("0001-01-01");
    const weekdaysBefore = (day) => {
      const n = day - monday;
      return Math.floor(n / 7) * 5 + Math.min(n % 7, 5);
    };
    const start = dayOf(input.start), end = dayOf(input.end);
    return { days: end - start, weekdays: weekdaysBefore(end) - weekdaysBefore(start) };
  JS
}

test "a month ends on its last day" {
  tool  = "add_to_date"
  input = { date = "2024-01-31", months = 1 }
  expect {
    output = { date = "2024-02-29", weekday = "Thursday" }
  }
}

test "everything is added, backwards too" {
  tool  = "add_to_date"
  input = { date = "2024-02-29", years = -1, weeks = 1, days = -8 }
  expect {
    output = { date = "2023-02-27", weekday = "Monday" }
  }
}

test "early years are years" {
  tool  = "add_to_date"
  input = { date = "0050-12-31", days = 1 }
  expect {
    output = { date = "0051-01-01", weekday = "Sunday" }
  }
}

test "the calendar has an end" {
  tool  = "add_to_date"
  input = { date = "9999-12-31", days = 1 }
  expect {
    error           = "EXECUTION_ERROR"
    message_matches = "outside of the years"
  }
}

test "there is no thirtieth of February" {
  tool  = "add_to_date"
  input = { date = "2024-02-30" }
  expect {
    error           = "INVALID_INPUT"
    message_matches = "/date "
  }
}

test "a leap year has 366 days" {
  tool  = "days_between"
  input = { start = "2024-01-01", end = "2025-01-01" }
  expect {
    output = { days = 366, weekdays = 262 }
  }
}

test "weekends are no weekdays" {
  tool  = "days_between"
  input = { start = "2024-06-07", end = "2024-06-10" }
  expect {
    output = { days = 3, weekdays = 1 }
  }
}

test "backwards is negative" {
  tool  = "days_between"
  input = { start = "2024-06-10", end = "2024-06-03" }
  expect {
    output = { days = -7, weekdays = -5 }
  }
}

test "dates are needed, not times" {
  tool  = "days_between"
  input = { start = "2024-06-10T12:00:00Z", end = "yesterday" }
  expect {
    error           = "INVALID_INPUT"
    message_matches = "/end .*/start "
  }
}
