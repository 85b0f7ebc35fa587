"""Broken agent files: each is told with its place and its fix, all that is wrong at once, and nothing is started."""

from textwrap import dedent

import pytest

from tests.app.filing import Folder

HEAD = 'id = "shop"\nmodel = "openai:gpt-5"\n'

BROKEN = {
    "a value without quotes": (
        'id = "shop"\nmodel = gpt-5',
        "shop.toml:2: this is not TOML (Invalid value); a value is text in quotes, a number, true or false, a list or "
        'a table, as in: id = "shop"',
    ),
    "a key without a value": (
        f"{HEAD}asks",
        "shop.toml:3: this is not TOML (Expected '=' after a key in a key/value pair); a key, an equals sign and a "
        'value, as in: id = "shop"',
    ),
    "a key twice": (
        f'{HEAD}id = "other"',
        "shop.toml:3: this is not TOML (Cannot overwrite a value); this key stands there twice; keep one",
    ),
    "a table twice": (
        f"{HEAD}[budget]\nturns_max = 5\n[budget]\ntokens_max = 5",
        "shop.toml:5: this is not TOML (Cannot declare ('budget',) twice); this table stands there twice; put its keys "
        "together",
    ),
    "a list without an end": (
        f'{HEAD}tools = ["TOOLS:refund"',
        'shop.toml:3: this is not TOML (Unclosed array); a list ends with ], as in: tools = ["shop_tools:refund"]',
    ),
    "no model": (
        'id = "shop"',
        'shop.toml:1: model: is missing; write it (as in: model = "openai:gpt-5")',
    ),
    "a mistyped key": (
        f'{HEAD}instructons = "Help."',
        "shop.toml:3: instructons: there is no such key; did you mean 'instructions'? (as in: instructions = "
        '"Help customers with their orders.")',
    ),
    "a mistyped key of a table": (
        f'{HEAD}[mcp.orders]\ncomand = ["x"]',
        "shop.toml:4: mcp.orders.comand: there is no such key; did you mean 'command'? (as in: command = "
        '["python", "orders_server.py"])',
    ),
    "a key of another table": (
        f"{HEAD}turns_max = 5",
        "shop.toml:3: turns_max: there is no such key here, it belongs to [budget]",
    ),
    "a key of the top below a table": (
        f'{HEAD}[budget]\nturns_max = 5\ndescription = "Helps."',
        "shop.toml:5: budget.description: there is no such key here, it belongs to the top of the file; keys of the "
        "top stand before the first [table]",
    ),
    "a key that nobody has": (
        f'{HEAD}[model_retry]\nattempts_max = 3\nzebra = "x"',
        "shop.toml:5: model_retry.zebra: there is no such key; there are attempts_max, first_ms, factor, delay_max_ms",
    ),
    "text for yes or no": (
        f'{HEAD}asks = "yes"',
        'shop.toml:3: asks: "yes" is text; give true or false (as in: asks = true)',
    ),
    "text for a number": (
        f'{HEAD}model_timeout_s = "60 s"',
        'shop.toml:3: model_timeout_s: "60 s" is text; give a number (as in: model_timeout_s = 600)',
    ),
    "a fraction for a count": (
        f"{HEAD}[budget]\ntokens_max = 1.5",
        "shop.toml:4: budget.tokens_max: 1.5 is a number; give a whole number (as in: tokens_max = 200_000)",
    ),
    "a text for a list": (
        f'{HEAD}fallbacks = "anthropic:claude-sonnet-4-5"',
        'shop.toml:3: fallbacks: "anthropic:claude-sonnet-4-5" is text; give a list of texts (as in: fallbacks = '
        '["anthropic:claude-sonnet-4-5"])',
    ),
    "a table for a list": (
        f"{HEAD}[tools]\nget_order = true",
        "shop.toml:3: tools: what stands there is a table; give a list of texts (as in: tools = "
        '["shop_tools:get_order", "shop_tools:refund"])',
    ),
    "a list of tables for a table": (
        f'{HEAD}[[mcp]]\nname = "orders"',
        'shop.toml:3: mcp: [{"name": "orders"}] is a list; give a table (as in: [mcp.orders] with command = '
        '["python", "orders_server.py"])',
    ),
    "a server as a text": (
        f'{HEAD}[mcp]\norders = "orders-server"',
        'shop.toml:4: mcp.orders: "orders-server" is text; give a table (as in: [mcp.orders] with command = '
        '["python", "orders_server.py"])',
    ),
    "retries as a number": (
        f'{HEAD}[http.stock]\ndocument = "orders.json"\n[http.stock.rules."*"]\nretry = 3',
        'shop.toml:6: http.stock.rules."*".retry: 3 is a number; give a table (as in: retry = { attempts_max = 3 })',
    ),
    "a value for a table": (
        f"{HEAD}budget = 5",
        "shop.toml:3: budget: 5 is a number; give a table (as in: [budget] with turns_max = 50)",
    ),
    "a number in an environment": (
        f'{HEAD}[mcp.orders]\ncommand = ["x"]\nenv = {{ PORT = 80 }}',
        "shop.toml:5: mcp.orders.env.PORT: what stands there is a number; give text in quotes (as in: env = "
        '{ ORDERS_TOKEN = "${ORDERS_TOKEN}" })',
    ),
    "an unknown effect class": (
        f'{HEAD}[mcp.orders]\ncommand = ["x"]\n[mcp.orders.rules."get_*"]\neffect = "readonly"',
        'shop.toml:6: mcp.orders.rules."get_*".effect: "readonly" is not one of "read", "idempotent", "once"; did you '
        "mean 'read'? (as in: effect = \"read\")",
    ),
    "an unknown choice": (
        f'{HEAD}on_unanswered = "ask"',
        'shop.toml:3: on_unanswered: "ask" is not one of "input_required", "fail" (as in: on_unanswered = '
        '"input_required")',
    ),
    "a negative timeout": (
        f"{HEAD}model_timeout_s = -1",
        "shop.toml:3: model_timeout_s: -1 is too small; give a number greater than 0 (as in: model_timeout_s = 600)",
    ),
    "no end in time": (
        f"{HEAD}model_timeout_s = inf",
        "shop.toml:3: model_timeout_s: inf and nan are no numbers to work with; give one (as in: model_timeout_s = "
        "600)",
    ),
    "no attempts": (
        f"{HEAD}[model_retry]\nattempts_max = 0",
        "shop.toml:4: model_retry.attempts_max: 0 is too small; give a number of at least 1 (as in: attempts_max = 3)",
    ),
    "no budget at all": (
        f"{HEAD}[budget]\nturns_max = 0",
        "shop.toml:4: budget.turns_max: 0 is too small; give a number of at least 1 (as in: turns_max = 50)",
    ),
    "an id that names no queue": (
        'id = "my shop"\nmodel = "openai:gpt-5"',
        "shop.toml:1: id: 'my shop': use letters, digits, - and _, 64 characters at most",
    ),
    "a model without a provider": (
        'id = "shop"\nmodel = "gpt-5"',
        "shop.toml:2: model: 'gpt-5' names no provider; write provider:model (as in: model = \"openai:gpt-5\")",
    ),
    "a model in Python that is not named so": (
        'id = "shop"\nmodel = "TOOLS:model"',
        "shop.toml:2: model: 'TOOLS:model' is in Python; write python:TOOLS:model",
    ),
    "a model that is none": (
        'id = "shop"\nmodel = "python:TOOLS:plain"',
        "shop.toml:2: model: TOOLS:plain is a function, no model; name a pydantic-ai Model or a ModelPort",
    ),
    "a model that falls back to itself": (
        f'{HEAD}fallbacks = [\n  "openai:gpt-5",\n]',
        "shop.toml:4: fallbacks[1]: 'openai:gpt-5' is named before; name another model, or take it out",
    ),
    "more models than a turn may ask": (
        f'{HEAD}fallbacks = ["test:a", "test:b", "test:c", "test:d", "test:e"]',
        "shop.toml:3: fallbacks: there are 5; name 4 at most",
    ),
    "instructions twice": (
        f'{HEAD}instructions = "Help."\ninstructions_file = "shop.md"',
        "shop.toml:4: instructions_file: instructions are there too; keep one of the two",
    ),
    "a missing instructions file": (
        f'{HEAD}instructions_file = "shopp.md"',
        "shop.toml:3: instructions_file: there is no file shopp.md; did you mean 'shop.md'?",
    ),
    "a module that is not there": (
        f'{HEAD}tools = [\n  "no_such_tools:refund",\n]',
        "shop.toml:4: tools[1]: there is no module 'no_such_tools' here or on the path",
    ),
    "a mistyped module": (
        f'{HEAD}tools = ["TOOLSS:refund"]',
        "shop.toml:3: tools[1]: there is no module 'TOOLSS' here or on the path; did you mean 'TOOLS'?",
    ),
    "a function that is not there": (
        f'{HEAD}tools = [\n  "TOOLS:get_order",\n  "TOOLS:refnd",\n]',
        "shop.toml:5: tools[2]: module 'TOOLS' has no 'refnd'; did you mean 'refund'?",
    ),
    "a module without a function": (
        f'{HEAD}tools = ["TOOLS"]',
        "shop.toml:3: tools[1]: 'TOOLS' names nothing in Python; write module:name, as in shop_tools:get_order",
    ),
    "a function that is no tool": (
        f'{HEAD}tools = ["TOOLS:plain"]',
        "shop.toml:3: tools[1]: TOOLS:plain is a function without @perdure.tool; decorate it",
    ),
    "two tools of one name": (
        f'{HEAD}tools = ["TOOLS:refund", "TOOLS:refund_too"]',
        "shop.toml:3: tools[2]: TOOLS:refund_too is a tool 'refund', as TOOLS:refund is; take one out, or rename it",
    ),
    "rules for nobody": (
        f'{HEAD}tools = ["TOOLS:refund"]\n[rules.refnd]\ntimeout_s = 5',
        "shop.toml:4: rules.refnd: no function of tools is named so; did you mean 'refund'?",
    ),
    "rules that cannot hold together": (
        f'{HEAD}tools = ["TOOLS:get_order"]\n[rules.get_order]\nin_doubt = "ask"',
        "shop.toml:5: rules.get_order.in_doubt: a tool that only reads leaves nothing in doubt; leave it out",
    ),
    "a check of a function": (
        f'{HEAD}tools = ["TOOLS:refund"]\n[rules.refund]\ncheck = "find_refund"',
        "shop.toml:5: rules.refund.check: a function's check is named where it is declared",
    ),
    "both a command and a url": (
        f'{HEAD}[mcp.orders]\ncommand = ["x"]\nurl = "https://mcp.example.com"',
        "shop.toml:3: mcp.orders: MCP server 'orders': give command, the program to run, or url, where it is; one of "
        "the two",
    ),
    "neither of them": (
        f'{HEAD}[mcp.orders]\ntools = ["*"]',
        "shop.toml:3: mcp.orders: MCP server 'orders': give command, the program to run, or url, where it is; one of "
        "the two",
    ),
    "headers for a command": (
        f'{HEAD}[mcp.orders]\ncommand = ["x"]\nheaders = {{ A = "b" }}',
        "shop.toml:5: mcp.orders.headers: is for a server with a URL; leave it out",
    ),
    "a server's name that no tool can have": (
        f'{HEAD}[mcp."my orders"]\ncommand = ["x"]',
        "shop.toml:3: mcp.\"my orders\": McpServer.name: 'my orders': use 1 to 64 of a-z, A-Z, 0-9, _ and -, a letter "
        "first",
    ),
    "a service without a document": (
        f'{HEAD}[http.stock]\nbase_url = "https://stock.example.com"',
        'shop.toml:3: http.stock.document: is missing; write it (as in: document = "orders.json")',
    ),
    "a missing document": (
        f'{HEAD}[http.stock]\ndocument = "order.json"',
        "shop.toml:4: http.stock.document: there is no file order.json; did you mean 'orders.json'?",
    ),
    "two sources of one name": (
        f'{HEAD}[mcp.orders]\ncommand = ["x"]\n[http.orders]\ndocument = "orders.json"',
        "shop.toml:5: http.orders: an MCP server has this name too, and so would their tools, orders.…; rename one",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_told_with_place_and_fix(folder: Folder, name: str) -> None:
    text, told = BROKEN[name]
    assert folder.refused(text) == [told]


def test_all_that_is_wrong_is_told_at_once_in_the_files_order(folder: Folder) -> None:
    told = folder.refused(
        """
        id = "shop"
        asks = 1
        [budget]
        turns_max = 0
        [mcp.orders]
        comand = "x"
        """
    )
    assert [line.partition(": ")[0] for line in told] == ["shop.toml:1", "shop.toml:2", "shop.toml:4", "shop.toml:6"]


def test_so_is_all_that_is_wrong_beside_the_file(folder: Folder) -> None:
    told = folder.refused(
        """
        id = "my shop"
        model = "gpt-5"
        fallbacks = ["gpt-5"]
        tools = ["TOOLS:refnd", "TOOLS:plain"]
        instructions_file = "none.md"
        [mcp.orders]
        """
    )
    keys = [line.split(": ")[1] for line in told]
    assert keys == ["id", "model", "fallbacks[1]", "tools[1]", "tools[2]", "instructions_file", "mcp.orders"]


def test_a_secret_in_the_wrong_place_is_not_repeated(folder: Folder) -> None:
    text = f'{HEAD}[mcp.orders]\ncommand = ["x"]\nenv = {{ TOKEN = ["hunter2-hunter2"] }}'
    assert "hunter2" not in "".join(folder.refused(text))


def test_a_module_that_fails_is_told_with_its_reason(folder: Folder) -> None:
    (folder.path / f"{folder.tools}.py").write_text("raise ValueError('the moon is wrong')\n")
    (told,) = folder.refused(f'{HEAD}tools = ["TOOLS:refund"]')
    assert told == ("shop.toml:3: tools[1]: importing module 'TOOLS' failed: ValueError: the moon is wrong")


def test_nested_lists_without_end_are_refused(folder: Folder) -> None:
    depth = 20_000
    (told,) = folder.refused(dedent(f"{HEAD}tools = {'[' * depth}{']' * depth}"))
    assert "nested" in told
