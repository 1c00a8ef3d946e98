# The prompts that the conformance suite gets.

prompt "test_simple_prompt" {
  description = "A simple prompt"
  message "user" { text = "This is a simple prompt for testing." }
}

prompt "test_prompt_with_arguments" {
  description = "A prompt with arguments"
  argument "arg1" {
    description = "First argument"
    required    = true
    values      = ["testValue1", "another"]
  }
  argument "arg2" {
    description = "Second argument"
    required    = true
  }
  message "user" { text = "Prompt with arguments: arg1='{{arg1}}', arg2='{{arg2}}'" }
}

prompt "test_prompt_with_embedded_resource" {
  description = "A prompt with an embedded resource"
  argument "resourceUri" { required = true }
  message "user" {
    resource {
      uri       = "{{resourceUri}}"
      mime_type = "text/plain"
      text      = "Embedded resource content for testing."
    }
  }
  message "user" { text = "Please process the embedded resource above." }
}

prompt "test_prompt_with_image" {
  description = "A prompt with an image"
  icon {
    src   = "data:image/svg+xml,%3Csvg%20xmlns='http://www.w3.org/2000/svg'/%3E"
    sizes = ["any"]
  }
  message "user" {
    image {
      mime_type = "image/png"
      base64    = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
    }
  }
  message "user" { text = "Please analyze the image above." }
}

prompt "test_input_required_result_prompt" {
  description = "A prompt that asks first"
  ask_timeout = "1m"
  allow {
    ask { elicit = true }
  }
  run = <<JS
    const schema = { type: "object", properties: { context: { type: "string" } }, required: ["context"] };
    const answer = await elicit("user_context", { message: "What context should the prompt use?", schema });
    return [{ role: "user", content: { type: "text", text: `Use this context: ${answer.content.context}` } }];
  JS
}
