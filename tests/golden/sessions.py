"""Five made-up sessions of five made-up projects, each in another style of work."""

from collections.abc import Callable

from tests.transcripts import Chat, image, text


def _chat(project: str) -> Chat:
    return Chat(f"session-of-{project}", cwd=f"/home/dev/{project}")


def bug_fix() -> Chat:
    """A failing test, its cause, the fix and a commit."""
    chat = _chat("tidewatch")
    at = chat.cwd
    chat.prompt("The low tide of 29 October is an hour off in the table. Find out why and fix it.")
    chat.read_file(f"{at}/tidewatch/table.py", "when = start + timedelta(hours=12.42)\n")
    chat.agent("`low_tides` adds hours to local times, so I suspect the end of summer time.")
    chat.write_file(
        f"{at}/tests/test_table.py",
        "def test_low_tide_on_the_day_that_summer_time_ends():\n"
        "    assert low_tides('2023-10-29')[1].hour == 14\n",
    )
    chat.failing(
        "pytest tests/test_table.py",
        "Exit code 1\ntests/test_table.py:2: AssertionError: assert 15 == 14\n1 failed in 0.12s",
    )
    chat.agent(
        "The test shows it: `low_tides` adds 12.42 hours to a local time, and on the day that"
        " summer time ends the sum is an hour late."
    )
    chat.edit(
        f"{at}/tidewatch/table.py",
        "when = start + timedelta(hours=12.42)",
        "when = (start.astimezone(UTC) + timedelta(hours=12.42)).astimezone(zone)",
    )
    chat.bash("pytest", "41 passed in 1.80s")
    chat.bash(
        'git commit -am "Compute tides in UTC: summer time shifted low tides by an hour"',
        "[main 7c1d20e] Compute tides in UTC: summer time shifted low tides by an hour\n"
        " 2 files changed, 4 insertions(+), 1 deletion(-)",
    )
    chat.agent(
        "The low tides are right on the day that summer time ends. `low_tides` in"
        " `tidewatch/table.py` added 12.42 hours to a local time; it now adds them in UTC and"
        " converts the result to the zone of the harbour.\n\n"
        "- `tests/test_table.py` has a test for 29 October, which failed before.\n"
        "- The high tides use the same function and are right too.\n\n"
        "Next: `moon.py` still adds days to local times, which should be checked as well."
    )
    chat.prompt("Does the printed calendar read the same table?")
    chat.read_file(f"{at}/tidewatch/calendar.py", "rows = low_tides(day)\n")
    return chat.agent(
        "Yes: `calendar.py` calls `low_tides` for each day, so the printed calendar is corrected"
        " by the same fix. It caches its pages in `build/pages`, which must be deleted once,"
        " because a cached page keeps the wrong hour."
    )


def refactoring() -> Chat:
    """A plan that the user approved, and subagents that did a part each."""
    chat = _chat("inkwell")
    at = chat.cwd
    chat.prompt("Split the renderer: parsing and drawing should not be in one class any more.")
    plan = (
        "# Split `PageRenderer` into a parser and a painter\n\n"
        "1. Move `parseBlocks` and `parseSpans` to `src/parser.ts`; they return a tree.\n"
        "2. Leave drawing in `src/painter.ts`, which reads the tree only.\n"
        "3. Keep the name `PageRenderer` as a function that calls both, for the plugins.\n"
    )
    chat.tool("ExitPlanMode", {"plan": plan}, {"plan": plan, "isAgent": False})
    _subagent(
        chat,
        "Find callers of PageRenderer",
        "List every caller of PageRenderer and what it uses.",
        "Seven callers use PageRenderer. Six call `render()` only; `src/plugins/footnotes.ts` also"
        " reads its private field `blocks`.",
    )
    chat.agent("The footnotes plugin reads `blocks`, so the parser has to return them by number.")
    _subagent(
        chat,
        "Move the parser",
        "Move parseBlocks and parseSpans to src/parser.ts.",
        "Moved both functions to src/parser.ts and adapted 12 imports. `npm test` passes.",
    )
    chat.write_file(f"{at}/src/painter.ts", "export function paint(tree: Tree): void {}\n")
    chat.edit(f"{at}/src/plugins/footnotes.ts", "renderer.blocks", "tree.blocks")
    chat.failing(
        "npm test",
        "Exit code 1\nFAIL test/footnotes.test.ts\n"
        "TypeError: Cannot read properties of undefined (reading 'blocks')",
    )
    chat.edit(f"{at}/src/renderer.ts", "paint(page)", "paint(parse(page))")
    chat.bash("npm test", "Tests: 88 passed, 88 total")
    chat.bash(
        'git commit -qam "Split PageRenderer into parser and painter" && git log --oneline -1',
        "e93ab40 Split PageRenderer into parser and painter",
    )
    chat.agent(
        "`PageRenderer` is split: `src/parser.ts` returns a tree and `src/painter.ts` draws it."
        " `PageRenderer` remains as a function that calls both, because plugins outside of this"
        " repository import it. The footnotes plugin read the private field `blocks` of the"
        " class; it reads `tree.blocks` now. All 88 tests pass.\n\n"
        "Not done: the painter still measures text by itself, so a line is measured twice."
    )
    chat.prompt("ok, commit is fine. Measure once, then.")
    chat.edit(f"{at}/src/painter.ts", "measure(line)", "line.width")
    chat.bash("npm test", "Tests: 88 passed, 88 total")
    chat.bash("npm run bench", "draw 1000 pages: 412 ms (before: 655 ms)")
    return chat.agent(
        "The parser stores the width of each line in the tree and the painter reads it: drawing"
        " 1,000 pages takes 412 ms instead of 655 ms."
    )


def _subagent(chat: Chat, description: str, prompt: str, report: str) -> None:
    task = {"description": description, "prompt": prompt, "subagent_type": "general-purpose"}
    result = {"status": "completed", "content": [text(report)], "totalToolUseCount": 4}
    chat.tool("Agent", task, result, content=[text(report)])


def decisions() -> Chat:
    """Questions to the user, and rules that the user states."""
    chat = _chat("seedbank")
    at = chat.cwd
    chat.prompt(
        "We need to store how long each kind of seed stays viable. Ask me before you decide on"
        " the layout. Never add a dependency without asking, and always write dates as ISO 8601."
    )
    chat.read_file(f"{at}/store/seed.go", "type Seed struct { Name string }\n")
    _ask(chat, "Where should the viability be stored?", "A column of seeds", "A table of its own")
    chat.agent("A table of its own, then: a kind may have several tests with different results.")
    _ask(
        chat,
        "Which unit should the viability have?",
        "Months",
        "Days",
        answer="Days, and never floats: the label printer rounds them",
    )
    chat.write_file(f"{at}/store/viability.go", "type Viability struct { Days int }\n")
    chat.bash("go test ./...", "ok  \tseedbank/store\t0.31s")
    chat.agent(
        "The viability of seeds is in the new table `viability`, in whole days, with the date of"
        " the test as ISO 8601. I decided on one row per test instead of one per kind, because"
        " germination is tested again every spring."
    )
    chat.prompt("From now on run `go vet ./...` before each commit. Commit this.")
    chat.bash("go vet ./... && go test ./...", "ok  \tseedbank/store\t0.30s")
    chat.bash(
        'git commit -am "Store the viability of seeds per germination test"',
        "[main 51f0aa9] Store the viability of seeds per germination test\n 2 files changed",
    )
    chat.agent("Committed as 51f0aa9, after `go vet ./...` and the tests.")
    chat.prompt("Should we also warn when a seed is too old?")
    _ask(
        chat, "When should the warning come?", "At the sale", "At the import", answer="At the sale"
    )
    return chat.agent(
        "The warning belongs into `sale.go`, at the sale. I have not written it yet: it needs the"
        " date of the harvest, which `Seed` does not have."
    )


def _ask(chat: Chat, question: str, *options: str, answer: str = "") -> None:
    labels = [{"label": option, "description": option} for option in options]
    asked = {"question": question, "header": "Layout", "options": labels, "multiSelect": False}
    answers = {question: answer or options[-1]}
    chat.tool("AskUserQuestion", {"questions": [asked]},
              {"questions": [asked], "answers": answers})  # fmt: skip


def notices() -> Chat:
    """Messages of the client in place of prompts, a pasted log and a prompt that is an image."""
    chat = _chat("kilnctl")
    at = chat.cwd
    log = "\n".join(
        f"2023-11-14T04:{minute:02d}:00Z kilnctl[812]: zone=2 target=1060 read={value}"
        for minute, value in enumerate((1051, 1049, 1046, 1042, 1037, 1031, 1024, 1016))
    )
    chat.prompt(f"zone 2 lost heat last night, this is the log:\n\n{log}\nfatal: zone 2 underheat")
    chat.read_file(f"{at}/src/zone.rs", "self.integral += error;\n")
    call = chat.name("toolu")
    task = {"description": "Replay the log", "prompt": "Replay the log of the night.",
            "run_in_background": True}  # fmt: skip
    chat.tool("Agent", task, {"status": "async_launched", "agentId": "a7"}, call=call)
    chat.agent("A replay of the log runs in the background.")
    chat.prompt(
        f"<task-notification>\n<task-id>a7</task-id>\n<tool-use-id>{call}</tool-use-id>\n"
        '<status>completed</status>\n<summary>Agent "Replay the log" finished</summary>\n'
        "<result>The integral term saturates at -50 after the door was opened at 03:40.</result>\n"
        "</task-notification>"
    )
    chat.edit(
        f"{at}/src/zone.rs",
        "self.integral += error;",
        "if !self.door_is_open { self.integral += error; }",
    )
    chat.bash("cargo test", "test result: ok. 33 passed; 0 failed")
    chat.agent(
        "Zone 2 lost heat because the integral term kept growing while the door was open and held"
        " the heater off for an hour. `Zone::step` in `src/zone.rs` now leaves it unchanged while"
        " the door is open."
    )
    chat.prompt([image()])
    chat.agent(
        "The photo shows the relay board of zone 3: the label of terminal 4 says 24 V, but"
        " `config/board.toml` has it as 12 V. I changed nothing yet."
    )
    chat.prompt("[Request interrupted by user]")
    chat.prompt("yes it is 24 V, correct the file")
    chat.edit(f"{at}/config/board.toml", "volts = 12", "volts = 24")
    chat.agent("Terminal 4 of zone 3 has 24 V in `config/board.toml` now.")
    chat.command("compact")
    return chat.line("system", subtype="compact_boundary", content="Conversation compacted")


def portuguese() -> Chat:
    """Another language, a push, and a command that fails again and again for the same reason."""
    chat = _chat("padaria")
    at = chat.cwd
    refused = (
        "Exit code 1\nerror: porta 5433 em uso\nError: listen EADDRINUSE: address already in use"
        " 127.0.0.1:5433"
    )
    chat.prompt("Os pedidos de domingo não aparecem no painel. Descubra a causa e corrija.")
    chat.failing("npm run test:pedidos", refused)
    chat.bash("docker stop padaria-db", "padaria-db")
    chat.failing("npm run test:pedidos", "Exit code 1\n1 failing\nesperado 7 dias, recebido 6")
    chat.edit(f"{at}/src/painel.js", "dia > 0", "dia >= 0")
    chat.bash("npm run test:pedidos", "12 passing (88ms)")
    chat.agent(
        "Os pedidos de domingo aparecem no painel. A causa: `filtrarSemana` em `src/painel.js`"
        " comparava `dia > 0`, e `getDay()` devolve 0 no domingo. Troquei por `dia >= 0`."
    )
    chat.prompt("Faça o commit e o push. Nunca faça push direto na main, sempre em um branch.")
    chat.bash("git switch -c domingo", "Switched to a new branch 'domingo'")
    chat.bash(
        'git commit -am "Mostra os pedidos de domingo no painel"',
        "[domingo 90ab3c1] Mostra os pedidos de domingo no painel\n 1 file changed",
    )
    chat.bash(
        "git push -u origin domingo",
        stderr="To github.com:dev/padaria.git\n * [new branch]      domingo -> domingo\n",
    )
    chat.agent("O commit 90ab3c1 está no branch `domingo`, enviado para o servidor.")
    chat.prompt("Agora o relatório mensal: some também as encomendas canceladas, em separado.")
    chat.failing("npm run test:pedidos", refused)
    chat.bash("docker stop padaria-db", "padaria-db")
    chat.edit(f"{at}/src/relatorio.js", "total(pagas)", "total(pagas), total(canceladas)")
    chat.bash("npm run test:pedidos", "14 passing (95ms)")
    return chat.agent(
        "O relatório mensal mostra as encomendas canceladas em uma linha separada. O teste usa a"
        " porta 5433, que o contêiner `padaria-db` ocupa: é preciso pará-lo antes dos testes.\n\n"
        "Falta: traduzir o cabeçalho do relatório para o inglês."
    )


SESSIONS: dict[str, Callable[[], Chat]] = {
    make.__name__: make for make in (bug_fix, refactoring, decisions, notices, portuguese)
}
