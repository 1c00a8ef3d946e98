-- A session of Neovim with the settings that docs/how-to/use-an-editor.md prints. Run it before the
-- settings are read, in an empty directory, with the page in the variable PAGE and mcpd in PATH:
--
--     nvim --headless -n -i NONE --cmd 'luafile session.lua'
--
-- It writes the settings to the configuration directory of Neovim. Neovim older than 0.11 lacks a few
-- functions that the settings use, and gets stand-ins for them.

local api = vim.api

--- Fails the session if a value is not as expected.
local function expect(what, got, want)
  if not vim.deep_equal(got, want) then
    error(("%s: got %s, want %s"):format(what, vim.inspect(got), vim.inspect(want)), 2)
  end
end

--- Waits until a function returns a true value, and returns the value.
local function wait(what, condition)
  local value
  local ok = vim.wait(20000, function()
    value = condition()
    return value
  end, 5)
  if not ok then error("no " .. what, 2) end
  return value
end

local function write(name, text)
  vim.fn.mkdir(vim.fn.fnamemodify(name, ":h"), "p")
  local file = assert(io.open(name, "w"))
  file:write(text)
  file:close()
end

-- The settings ------------------------------------------------------------------------------------

local page = assert(io.open(os.getenv("PAGE"))):read("*a")
local section = assert(page:match("\n## Neovim\n(.-)\n## "), "the page has no section for Neovim")
local blocks = {}
for block in section:gmatch("```lua\n(.-)```") do table.insert(blocks, block) end
expect("blocks of the section", #blocks, 2)
local enable = assert(section:match('`(vim%.lsp%.enable%b())`'), "the section enables no server")
expect("name of the first file", blocks[1]:match("^%-%- (%S+)"), "~/.config/nvim/lsp/mcpd.lua")
local settings = vim.fn.stdpath("config")
write(settings .. "/lsp/mcpd.lua", blocks[1])
write(settings .. "/init.lua", enable .. "\n" .. blocks[2])

if not vim.lsp.enable then
  vim.cmd("filetype on")

  --- The nearest directory above a file with the first of the names that there is.
  local function root_of(file, markers)
    for _, marker in ipairs(markers) do
      local directory = vim.fn.fnamemodify(file, ":h")
      while directory ~= "/" do
        local found = directory .. "/" .. marker
        if vim.fn.filereadable(found) == 1 or vim.fn.isdirectory(found) == 1 then return directory end
        directory = vim.fn.fnamemodify(directory, ":h")
      end
    end
  end

  local added = {} -- settings by the name of a server
  function vim.lsp.config(name, config) added[name] = config end

  function vim.lsp.enable(name)
    local config = dofile(("%s/lsp/%s.lua"):format(settings, name))
    local keys = vim.tbl_keys(config)
    table.sort(keys)
    expect("settings of the server", keys, { "cmd", "filetypes", "root_markers", "workspace_required" })
    local clients = {}
    api.nvim_create_autocmd("FileType", {
      pattern = config.filetypes,
      callback = function(event)
        local root = root_of(api.nvim_buf_get_name(event.buf), config.root_markers)
        if not root then return end
        local start = vim.tbl_extend("error", { name = name, cmd = config.cmd, root_dir = root }, added[name])
        clients[root] = clients[root] or vim.lsp.start_client(start)
        vim.lsp.buf_attach_client(event.buf, clients[root])
      end,
    })
  end

  vim.cmd = setmetatable({ new = function() vim.api.nvim_command("new") end }, {
    __call = function(_, command) api.nvim_exec(command, false) end,
  })
  local jobstart = vim.fn.jobstart
  vim.fn.jobstart = function(args, options)
    return options and options.term and vim.fn.termopen(args) or jobstart(args, options)
  end
end

-- The files. Characters beyond the basic plane show a wrong unit of positions. -----------------------

local root = vim.loop.fs_realpath(".") .. "/a project @ ü"
local orders, labels = root .. "/tools.d/orders.hcl", root .. "/tools.d/labels.hcl"
write(root .. "/mcpd.hcl", "")
write(orders, [[
tool "order" {
  description = "Returns an order."
  read_only   = true

  input "id" { type = string }

  run = <<JS
    return { label: "😀😀 order " + inptu.id };
  JS
}

test "the label" {
  tool  = "order"
  input = { id = "7" }
  expect { output = { label = "😀😀 order 7" } }
}
]])
write(labels, [[
tool "label" {
  description = "Returns the label of an order."
    read_only = true

  input "id" { type = string }

  allow {
    call { tools = ["order"] }
  }

  run = <<JS
    /* 😀 */ const order = await tools.order({ id: input.id });
    return order.label;
  JS
}
]])

-- The session -------------------------------------------------------------------------------------

--- The texts of the lines of a file that is open.
local function lines(file) return api.nvim_buf_get_lines(vim.fn.bufnr(file), 0, -1, true) end

--- Puts the cursor at the end of a text in the current file.
local function cursor_after(text)
  api.nvim_win_set_cursor(0, { 1, 0 })
  if vim.fn.search("\\V" .. text, "ceW") == 0 then error("the file has no " .. text, 2) end
end

--- The diagnostics of a file, once the check of its last version found as many.
local function diagnostics(file, count)
  return wait(("%d diagnostics in %s"):format(count, file), function()
    local found = vim.diagnostic.get(vim.fn.bufnr(file))
    return #found == count and found
  end)
end

local function clients() return (vim.lsp.get_clients or vim.lsp.get_active_clients)() end

--- Sends a request about the cursor, and returns the answer of the server.
local function ask(method, more)
  local params = vim.tbl_extend("force", vim.lsp.util.make_position_params(0, clients()[1].offset_encoding), more or {})
  for _, answer in pairs(assert(vim.lsp.buf_request_sync(0, method, params, 20000))) do
    assert(not answer.err and not answer.error, vim.inspect(answer))
    return answer.result
  end
  error("no answer to " .. method)
end

local function session()
  -- A broken tool in one file. The other file is checked with it.
  vim.cmd("edit " .. vim.fn.fnameescape(labels))
  vim.cmd("edit " .. vim.fn.fnameescape(orders))
  expect("filetype", vim.bo.filetype, "hcl")
  local problem = diagnostics(orders, 1)[1]
  expect("line of the diagnostic", problem.lnum, 7)
  expect("text of the diagnostic", lines(orders)[8]:sub(problem.col + 1, problem.end_col), "inptu")
  expect("source of the diagnostic", problem.source, "mcpd")
  expect("diagnostics of the other file", vim.diagnostic.get(vim.fn.bufnr(labels)), {})

  -- The fix changes the word after the wide characters. It exists once the open document is checked.
  cursor_after("inptu")
  local more = { range = vim.lsp.util.make_range_params(0, clients()[1].offset_encoding).range, context = { diagnostics = {} } }
  local actions = wait("code action", function()
    local found = ask("textDocument/codeAction", more)
    return #found > 0 and found
  end)
  expect("title of the code action", actions[1].title, "Replace inptu by input")
  vim.lsp.util.apply_workspace_edit(actions[1].edit, clients()[1].offset_encoding)
  expect("fixed line", lines(orders)[8], '    return { label: "😀😀 order " + input.id };')
  diagnostics(orders, 0)

  -- Completion of an input behind them, while the user types.
  cursor_after("input.")
  api.nvim_win_set_cursor(0, { 8, api.nvim_win_get_cursor(0)[2] + 1 })
  local completed = ask("textDocument/completion")
  local labels_of = vim.tbl_map(function(item) return item.label end, completed.items)
  expect("completion of input.", labels_of, { "id" })

  -- Hover and definition across files.
  vim.cmd("edit " .. vim.fn.fnameescape(labels))
  cursor_after("tools.ord")
  local hover = ask("textDocument/hover")
  assert(hover.contents.value:find("Returns an order.", 1, true), vim.inspect(hover))
  vim.lsp.buf.definition()
  wait("jump to the definition", function() return api.nvim_buf_get_name(0) == orders end)
  expect("line of the definition", api.nvim_win_get_cursor(0)[1], 1)

  -- Rename changes both files, also behind wide characters.
  vim.cmd("edit " .. vim.fn.fnameescape(labels))
  cursor_after("tools.ord")
  vim.lsp.buf.rename("find_order")
  wait("rename in two files", function()
    return lines(orders)[1] == 'tool "find_order" {' and vim.tbl_contains(lines(orders), '  tool  = "find_order"')
      and vim.tbl_contains(lines(labels), '    call { tools = ["find_order"] }')
      and vim.tbl_contains(lines(labels), "    /* 😀 */ const order = await tools.find_order({ id: input.id });")
  end)
  diagnostics(orders, 0)
  diagnostics(labels, 0)

  -- Formatting.
  expect("line before formatting", lines(labels)[3], "    read_only = true")
  if vim.lsp.buf.format then
    vim.lsp.buf.format({ timeout_ms = 20000 })
  else
    vim.lsp.buf.formatting_sync(nil, 20000)
  end
  expect("formatted line", lines(labels)[3], "  read_only   = true")
  vim.cmd("silent wall")

  -- The lens of the test runs mcpd test in a terminal.
  vim.cmd("cd " .. vim.fn.fnameescape(root))
  vim.cmd("edit " .. vim.fn.fnameescape(orders))
  cursor_after('test "the label')
  wait("lenses", function()
    local buffer = api.nvim_get_current_buf()
    return #vim.lsp.codelens.get(vim.lsp.codelens.enable and { bufnr = buffer } or buffer) == 3
  end)
  vim.lsp.codelens.run()
  local terminal = wait("terminal", function() return vim.bo.buftype == "terminal" and api.nvim_get_current_buf() end)
  wait("passed test in the terminal", function()
    return table.concat(api.nvim_buf_get_lines(terminal, 0, -1, false), "\n"):find("1 passed", 1, true)
  end)

  -- The server ends when its client does. A file outside of a project starts none.
  expect("clients", #clients(), 1)
  expect("directory of the client", clients()[1].config.root_dir, root)
  if vim.lsp.get_clients then
    clients()[1]:stop()
  else
    clients()[1].stop()
  end
  wait("end of the server", function() return #clients() == 0 end)
  local outside = vim.fn.fnamemodify(root, ":h") .. "/outside.hcl"
  vim.cmd("edit " .. vim.fn.fnameescape(outside))
  expect("filetype outside of the project", vim.bo.filetype, "hcl")
  expect("clients outside of the project", #clients(), 0)
end

local function run()
  local ok, failed = xpcall(session, debug.traceback)
  if not ok then
    io.stderr:write(failed .. "\n")
    vim.cmd("cquit 1")
  end
  local version = vim.version()
  io.stdout:write(("neovim %d.%d.%d: ok\n"):format(version.major, version.minor, version.patch))
  vim.cmd("qall!")
end
api.nvim_create_autocmd("VimEnter", { callback = vim.schedule_wrap(run) })
