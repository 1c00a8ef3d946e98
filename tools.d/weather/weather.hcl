# Locals are values that the files of one folder share. file() reads a file of
# this folder when the tools load. So the schema always matches the data: the
# enum has the cities of the table.

locals {
  units = ["celsius", "fahrenheit"]
}

tool "get_weather" {
  title       = "Typical weather of a city"
  description = "Returns the typical weather of a city in January or July, from an offline table of climate averages: not a forecast. Knows ${join(", ", keys(jsondecode(file("climate.json"))))}."
  read_only   = true
  open_world  = false

  input "location" {
    type        = string
    description = "City name"
    enum        = keys(jsondecode(file("climate.json")))
  }
  input "month" {
    type        = string
    description = "Which half of the year to ask for"
    enum        = ["january", "july"]
    default     = "july"
  }
  input "units" {
    type        = string
    description = "Unit of the temperatures"
    enum        = local.units
    default     = local.units[0]
  }

  output "location" { type = string }
  output "condition" { type = string }
  output "low" { type = number }
  output "high" { type = number }
  output "units" {
    type = string
    enum = local.units
  }

  # Scripts do not see locals, which belong to HCL, but they import the same file.
  run = <<JS
    import climate from "./climate.json";

    const convert = (celsius) => (input.units === "celsius" ? celsius : celsius * 9 / 5 + 32);
    const city = climate[input.location];
    const [low, high] = city[input.month].map(convert);
    return { location: input.location, condition: city.condition, low, high, units: input.units };
  JS
}

tool "convert_temperature" {
  title       = "Convert a temperature"
  description = "Converts a temperature from one unit to the other. Returns {value, units}."
  read_only   = true
  open_world  = false

  input "value" {
    type        = number
    description = "The temperature"
    min         = -1000000
    max         = 1000000
  }
  input "to" {
    type        = string
    description = "The unit wanted; the value is in the other one"
    enum        = local.units
  }

  output "value" { type = number }
  output "units" {
    type = string
    enum = local.units
  }

  run = <<JS
    const value = input.to === "celsius" ? (input.value - 32) * 5 / 9 : input.value * 9 / 5 + 32;
    const coldest = input.to === "celsius" ? -273.15 : -459.67;
    if (value < coldest - 1e-9) throw new ToolError("nothing is colder than absolute zero");
    return { value: Math.round(value * 100) / 100, units: input.to };
  JS
}

test "a city in summer" {
  tool  = "get_weather"
  input = { location = "Berlin" }
  expect {
    output = { location = "Berlin", condition = "partly cloudy", low = 14, high = 25, units = "celsius" }
  }
}

test "the arguments of the first conversation in the protocol's own guide" {
  tool  = "get_weather"
  input = { location = "Paris", units = "celsius" }
  expect {
    output = { location = "Paris", condition = "cloudy", low = 16, high = 26, units = "celsius" }
  }
}

test "another unit and half of the year" {
  tool  = "get_weather"
  input = { location = "Cape Town", month = "july", units = "fahrenheit" }
  expect {
    output = { location = "Cape Town", condition = "windy", low = 46.4, high = 64.4, units = "fahrenheit" }
  }
}

test "a city that the table lacks" {
  tool  = "get_weather"
  input = { location = "Atlantis" }
  expect {
    error           = "INVALID_INPUT"
    message_matches = "/location .*Reykjavik"
  }
}

test "freezing point" {
  tool  = "convert_temperature"
  input = { value = 32, to = "celsius" }
  expect {
    output = { value = 0, units = "celsius" }
  }
}

test "absolute zero itself can be reached" {
  tool  = "convert_temperature"
  input = { value = -273.15, to = "fahrenheit" }
  expect {
    output = { value = -459.67, units = "fahrenheit" }
  }
}

test "nothing is colder than absolute zero" {
  tool  = "convert_temperature"
  input = { value = -500, to = "celsius" }
  expect {
    error           = "EXECUTION_ERROR"
    message_matches = "absolute zero"
  }
}

# The table as a resource, for clients that read it instead of calling a tool.
resource "climate" {
  uri         = "weather://climate"
  title       = "Climate averages"
  description = "The table that get_weather reads: for each city its condition, and the low and the high of January and July in celsius"
  file        = "climate.json"
}

# A prompt is for people: clients offer it by its title, and complete the city
# from the same table.
prompt "pack_for_city" {
  title       = "Pack for a city"
  description = "Asks what to pack for a trip, by the typical weather"

  argument "city" {
    description = "City name"
    required    = true
    values      = keys(jsondecode(file("climate.json")))
  }
  argument "month" {
    description = "Which half of the year the trip is in"
    values      = ["january", "july"]
  }

  message "user" { text = "I travel to {{city}}. {{month}}\nLook up the typical weather with get_weather, and tell me what to pack." }
}

test "the table holds the city that the tool knows" {
  resource = "weather://climate"
  expect {
    text      = file("climate.json")
    mime_type = "application/json"
  }
}

test "a trip has a city" {
  prompt = "pack_for_city"
  input  = { month = "july" }
  expect { error = "INVALID_INPUT" }
}

test "what to pack" {
  prompt = "pack_for_city"
  input  = { city = "Lima", month = "In July." }
  expect {
    messages = [{
      role = "user"
      text = "I travel to Lima. In July.\nLook up the typical weather with get_weather, and tell me what to pack."
    }]
  }
}
