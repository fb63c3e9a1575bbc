"""What the local observer makes of turns as people have them: terse, foreign, pasted, long."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_mem.observer.local.content_words import content_words
from claude_mem.observer.local.evidence import collect_evidence, parse_request
from claude_mem.observer.local.markdown import LONGEST_PASSAGE, passages_in, sentences
from claude_mem.observer.local.observer import distil, join_passages
from claude_mem.observer.local.scoring import MAX_CHARS, budget_for, score_turn, select_passages
from claude_mem.types import (
    CommandRun,
    Distillate,
    EnvironmentFault,
    Observation,
    OpenStep,
    Turn,
)
from tests.growth import too_fast_growth
from tests.payloads import PROJECT_DIR, read
from tests.turns import check, edited, ran, session, statement, stopped, texts, turn, turn_from, use


def only(result: Distillate) -> Observation:
    (observation,) = result.observations
    return observation


# Terse chats


def test_a_terse_request_takes_its_title_from_what_was_done() -> None:
    told = "the lamp flickered because `poll()` ran twice per tick; it now runs once"
    final = stopped(f"Done. {told.capitalize()}.")
    result = distil(turn(edited("src/lamp.py"), final, prompt="fix it"))
    assert only(result).title == f"lamp.py: {told}"
    assert only(result).files_modified == ("src/lamp.py",)
    assert result.summary.request == "fix it"


def test_a_correction_is_no_title() -> None:
    final = "Right, I moved that to the other one and reverted it here."
    work = edited("pier.py", old="blink(1)", new="blink(2)")
    result = distil(turn(work, stopped(final), prompt="no, the other one"))
    assert only(result).title == "pier.py: `blink(1)` became `blink(2)`"


@pytest.mark.parametrize(
    ("prompt", "final"),
    [("ok", "Done."), ("thanks", "You're welcome!"), ("and push", "Pushed to origin/main."),
     ("继续", "好的。"), ("commit", "Committed as 1a2b3c4.")],
)  # fmt: skip
def test_a_nod_leaves_nothing_but_that_it_was_asked(prompt: str, final: str) -> None:
    result = distil(turn(stopped(final), prompt=prompt))
    assert result.observations == ()
    assert (result.summary.request, result.summary.completed) == (prompt, None)


def test_routine_reads_and_listings_leave_nothing() -> None:
    of = turn_from(read(f"{PROJECT_DIR}/lamp.py"), prompt="look around")
    of = replace(of, events=(*of.events, ran("ls -la", "lamp.py"), stopped("Let me look further.")))
    result = distil(of)
    assert result.observations == ()
    assert result.summary.completed is None
    assert result.summary.files_read == ("lamp.py",)


def test_a_turn_that_was_interrupted_completed_nothing() -> None:
    start = "I'll start by reading the router to understand it."
    result = distil(turn(statement(start), stopped(start), prompt="Move the router to v6"))
    assert result.title == "Move the router to v6"
    assert (result.observations, result.summary.completed) == ((), None)


# Questions


def test_a_question_is_answered_by_a_discovery() -> None:
    final = (
        "Sessions are kept in Redis under `sess:<id>` with a TTL of 30 minutes. The TTL is"
        " refreshed in `Touch()` on every request. If Redis is down, `Load()` returns"
        " `ErrNoSession`.\n\nLet me know if you want me to change that."
    )
    result = distil(turn(stopped(final), prompt="How does session expiry work here?"))
    assert only(result) == Observation(
        "discovery",
        title="Sessions are kept in Redis under `sess:<id>` with a TTL of 30 minutes",
        narrative=final.partition("\n")[0].partition("minutes. ")[2],
        concepts=("how-it-works",),
        sources=(900,),
    )
    assert result.summary.request == "How does session expiry work here?"
    assert result.summary.next_steps is None


def test_a_short_answer_stands_under_its_question() -> None:
    result = distil(turn(stopped("It's in `config/redis.yaml`."), prompt="where is the config?"))
    assert result.observations == ()
    assert (result.summary.request, result.summary.completed) == (
        "where is the config?",
        "It's in `config/redis.yaml`.",
    )


# Languages


@pytest.mark.parametrize(
    ("prompt", "final", "title", "kept", "open_step"),
    [
        ("Kannst du bitte den Fehler beim Anmelden beheben?",
         "Fertig. Die Anmeldung schlug fehl, weil das Token in `auth.py` ohne Zeitzone verglichen"
         " wurde. Alle Tests laufen durch.\n\n## Nächste Schritte\n- Die alten Tokens müssen noch"
         " migriert werden.",
         "Den Fehler beim Anmelden beheben", "ohne Zeitzone",
         "Die alten Tokens müssen noch migriert werden."),
        ("Le total du panier est faux avec deux remises, corrige ça",
         "Voici les changements :\n\n- `panier.rb` : le total est recalculé après chaque remise,"
         " car l'ancien code gardait une valeur périmée",
         "Le total du panier est faux avec deux remises", "valeur périmée", None),
        ("ログインできない問題を修正してください",
         "ログイン処理を修正しました。原因は`session.ts`でCookieの期限が"
         "ミリ秒で比較されていたことです。次のステップとして、古いCookieの削除が必要です。",
         "ログインできない問題を修正してください", "ミリ秒で比較",
         "次のステップとして、古いCookieの削除が必要です。"),
        ("修复缓存并发崩溃的问题",
         "已修复。问题出在 `cache.go` 的 `Get()` 没有加锁，导致并发读写时崩溃。所有测试通过。",
         "修复缓存并发崩溃的问题", "没有加锁", None),
        ("أصلح خطأ حساب الضريبة في صفحة الدفع",
         "تم إصلاح المشكلة. كان سبب الخطأ أن `pay.py` يحسب الضريبة مرتين. أضفت اختبارين.",
         "أصلح خطأ حساب الضريبة في صفحة الدفع", "يحسب الضريبة مرتين", None),
    ],
    ids=["German", "French", "Japanese", "Chinese", "Arabic"],
)  # fmt: skip
def test_other_languages_are_kept_in_their_words(
    prompt: str, final: str, title: str, kept: str, open_step: str | None
) -> None:
    result = distil(turn(edited("src/x.py"), stopped(final), prompt=prompt))
    assert only(result).title == title
    assert kept in only(result).text
    assert result.summary.next_steps == open_step


# Tables, code, plans, logs


def test_a_table_becomes_facts_and_short_code_stays() -> None:
    final = (
        "Here are the results:\n\n| Engine | p50 | p99 |\n|---|---:|---:|\n"
        "| Diesel | 1.2 ms | 9 ms |\n| Steam | 2.8 ms | 31 ms |\n\n"
        "Diesel wins because it never cools down.\n\n"
        "```bash\nmake bench ENGINE=diesel\n```"
    )
    result = only(distil(turn(edited("bench.py"), stopped(final), prompt="Compare the engines")))
    assert result.title == "bench.py: diesel wins because it never cools down"
    assert result.facts == ("Diesel: p50 1.2 ms; p99 9 ms", "Steam: p50 2.8 ms; p99 31 ms")
    assert result.narrative == "`make bench ENGINE=diesel`"


def test_what_stands_under_one_file_is_one_fact() -> None:
    final = (
        "**`lamp.py`**\n- Added `blink()` for the double flash\n- Removed `flash_once()` since"
        " nobody called it\n- Renamed `Wick` to `Filament`\n\n**`pier.py`**\n- Replaced the `Rope`"
        " class by `Chain`"
    )
    result = only(distil(turn(edited("lamp.py"), stopped(final), prompt="Make the lamp blink")))
    assert result.title == "lamp.py: added `blink()` for the double flash"
    assert result.facts == (
        "`lamp.py`: Removed `flash_once()` since nobody called it; Renamed `Wick` to `Filament`",
        "`pier.py`: Replaced the `Rope` class by `Chain`",
    )


def test_a_reply_that_is_only_code_leaves_only_what_was_asked() -> None:
    code = "```python\n" + "\n".join(f"def f{n}(): ..." for n in range(9)) + "\n```"
    result = distil(turn(stopped(code), prompt="write me nine functions"))
    assert (result.title, result.observations) == ("Write nine functions", ())


PLAN = (
    "Implement the following plan:\n\n# Plan: Drain before exit\n\n## Problem\nOn SIGTERM the"
    " server drops requests because `Close()` is called.\n\n## Approach\n"
    "Call `Shutdown()` with a 20 s"
    " deadline instead of `Close()`, since SIGKILL comes after 30 s.\n\n## Verification\n- Run the"
    " tests\n- Check the log"
)


def test_a_pasted_plan_gives_the_title_the_problem_and_the_choice() -> None:
    result = distil(turn(edited("serve.go"), stopped("The server drains now."), prompt=PLAN))
    assert only(result).title == result.summary.request == "Drain before exit"
    assert "drops requests because `Close()` is called" in str(only(result).narrative)
    assert "20 s deadline instead of" in str(only(result).narrative)
    assert "Check the log" not in only(result).text


@pytest.mark.parametrize(("length", "title"), [(550, ""), (650, "Drain before exit")])
def test_a_long_document_with_headings_is_a_plan(length: int, title: str) -> None:
    item = "- The server drops requests because it closes at once.\n"
    document = f"# Drain before exit\n\n## Why\n\n{item * 20}"[:length]
    assert parse_request(document).plan_title == title


def test_the_error_of_a_pasted_trace_is_remembered() -> None:
    prompt = (
        "the import crashes\nTraceback (most recent call last):\n"
        '  File "/srv/imp.py", line 8, in load\n    x()\nharbor.oil.NoOil: tank 7 is empty'
    )
    result = distil(turn(edited("imp.py"), stopped("Empty tanks are skipped."), prompt=prompt))
    assert only(result).title == "imp.py: empty tanks are skipped"
    assert "harbor.oil.NoOil: tank 7 is empty" in only(result).text
    assert result.summary.request == "the import crashes"


# Work


def test_what_failed_and_what_fixed_it_are_notes() -> None:
    of = turn(
        ran("pytest -q", "FAILED tests/test_fee.py::test_round - assert 1 == 2\n1 failed", 1),
        edited("fee.py", 2),
        ran("pytest -q", "42 passed in 2s", 3),
        stopped("Fees are rounded half-even now."),
        prompt="Round fees half-even",
    )
    summary = distil(of).summary
    assert summary.notes == (
        "`pytest -q` failed (FAILED tests/test_fee.py::test_round - assert 1 == 2);"
        " it passed after editing fee.py."
    )
    assert summary.commands == (CommandRun("pytest -q", "test", "passed", "42 passed", (1, 3)),)
    assert summary.faults == ()


def test_a_command_that_fails_here_is_a_fault_and_no_note() -> None:
    of = turn(
        ran("wrap make test", "error: no such command 'make'.", 1, failed=True),
        ran("make test", "4 passed", 2),
        prompt="Run the tests",
    )
    summary = distil(of).summary
    error = "error: no such command 'make'"
    assert summary.faults == (EnvironmentFault("wrap make test", error, "make test", (1, 2)),)
    assert summary.commands == (
        CommandRun("wrap make test", "test", "failed", "", (1,)),
        CommandRun("make test", "test", "passed", "4 passed", (2,)),
    )
    assert summary.notes is None


def test_of_many_commands_the_last_and_the_last_that_failed_are_recorded() -> None:
    tests = [ran(f"pytest tests/test_{n}.py", "1 passed", n) for n in range(1, 6)]
    checks = [ran(f"make lint-{n} check", number=n) for n in range(6, 11)]
    tests[1] = ran("pytest tests/test_2.py", "1 failed", 2, failed=True)
    runs = distil(turn(*tests, *checks)).summary.commands
    assert [(run.purpose, run.sources) for run in runs] == [
        ("test", (2,)), ("test", (5,)),
        ("check", (10,)),
    ]  # fmt: skip


def test_a_turn_that_only_commits_tells_the_commit_once() -> None:
    command = "git commit -m 'fix: drain the queue before exit'"
    final = "Committed as 1a2b3c4. All tests pass."
    result = distil(turn(ran(command, "[main 1a2b3c4] fix"), stopped(final), prompt="commit"))
    assert result.observations == ()
    assert result.summary.completed == "Drain the queue before exit"
    assert result.summary.notes == "Committed as 1a2b3c4."


def test_what_a_commit_ran_into_is_a_discovery() -> None:
    final = "The pre-commit hook fails because `make test` picks up tests in `tmp/clones/`."
    result = distil(turn(stopped(final), prompt="commit this"))
    assert (only(result).type, only(result).title) == ("discovery", final.rstrip("."))


def test_what_stopped_a_commit_is_told_rather_than_the_commit() -> None:
    """By one name, and without a word such as "because"."""
    command = "git commit -m 'fix: drain the queue before exit'"
    failure = "The pre-commit hook failed due to lint errors in `tmp/clones/`"
    for final in (f"{failure}.", f"Skipped the hook. {failure}.", f"{failure}. Committed now."):
        result = distil(turn(ran(command, "[main 1a2b3c4] fix"), stopped(final), prompt="commit"))
        assert only(result).title == failure


@pytest.mark.parametrize(
    "final",
    [
        "Committed. Tests: 1329 pass, 0 fail.",  # nothing has a name
        "Committed `lamp.py`. The bug in `pier.py` is fixed.",  # nothing stopped it
    ],
)
def test_a_commit_that_went_through_makes_no_observation(final: str) -> None:
    command = "git commit -m 'fix: drain the queue before exit'"
    done = ran(command, "[main 1a2b3c4] fix")
    assert distil(turn(done, stopped(final), prompt="commit")).observations == ()


def test_what_subagents_and_the_web_were_asked_is_what_was_investigated() -> None:
    task = {"description": "Explore the billing code", "prompt": "x" * 5000}
    of = turn(
        use(1, tool_name="Task", tool_input=task),
        use(2, tool_name="WebSearch", tool_input={"query": "tax rates 2025"}),
        use(3, tool_name="Task", tool_input=task),
        use(4, tool_name="Task", tool_input={"description": "Nested"}, agent_id="a1"),
        prompt="Where are invoices taxed?",
    )
    assert distil(of).summary.investigated == (
        "Explore the billing code; the web for “tax rates 2025”"
    )


def test_open_steps_are_told_apart_from_what_was_done() -> None:
    final = (
        "The two buckets exist now. `for_each` needs a set, so the list is wrapped in `toset()`."
        " DNS must still be switched to the new bucket by hand."
    )
    result = distil(turn(edited("main.tf"), stopped(final), prompt="create the backup buckets"))
    assert "two buckets exist" in only(result).text
    step = "DNS must still be switched to the new bucket by hand."
    assert result.summary.next_steps == step
    assert result.summary.open_steps == (OpenStep(step, (900,)),)
    assert "DNS" not in only(result).text


def test_an_offer_is_no_open_step() -> None:
    final = (
        "The lamp in `pier.py` blinks twice now.\n\n## Next steps\n"
        "- You need to restart the `lampd` service. Should I do it?\n"
        "- Should I also write a test for `blink()`?"
    )
    summary = distil(turn(stopped(final), prompt="Make the lamp blink")).summary
    assert summary.next_steps is not None and "Should I do it?" in summary.next_steps
    assert summary.open_steps == (OpenStep("You need to restart the `lampd` service.", (900,)),)


BOILERPLATE = [
    "Now let me read the file.",
    "I'll now run the tests to verify.",
    "Perfect! All 42 tests pass.",
    "Here's a summary of the changes:",
    "Everything looks good.",
    "Let me know if you need anything else!",
    "The Edit tool failed to match the string.",
]


def test_boilerplate_is_never_remembered() -> None:
    final = "The relay in `lamp.py` was wired backwards, which blew the 5 A fuse."
    way = [statement(text, number) for number, text in enumerate(BOILERPLATE, 1)]
    ending = stopped("\n\n".join((*BOILERPLATE, final)))
    result = distil(turn(*way, edited("lamp.py"), ending, prompt="the fuse blows every night"))
    everything = "\n".join(text or "" for text in texts(result))
    assert "wired backwards" in everything
    assert not [text for text in BOILERPLATE if text.rstrip(".!:") in everything]


def test_a_no_is_never_lost() -> None:
    final = "No component needs to know of `Lamp`; the `pier` package hides it."
    result = distil(turn(edited("pier.py"), stopped(final), prompt="hide the lamp"))
    assert final in only(result).text or result.summary.next_steps == final


# Long sessions


def many_turns(count: int) -> list[Turn]:
    names = [f"{a}{b}" for a in ("lamp", "pier", "mast", "rope", "gull") for b in range(count)]
    return [
        turn(
            edited(f"src/{name}.py", 5),
            ran("make test", f"{number} passed", 6),
            stopped(
                f"The `{name}` module failed because `open_{name}()` was called before"
                f" `init_{name}()`; the order is now fixed. Ships need `{names[number - 1]}` too."
            ),
            prompt=f"Mend {name}",
        )
        for number, name in enumerate(names[:count], start=1)
    ]


def test_a_session_of_many_turns_repeats_nothing() -> None:
    result = session(*many_turns(60))
    assert [each.summary.notes for each in result] == [None] * 60
    assert {run.command for one in result for run in one.summary.commands} == {"make test"}
    titles = [o.title for each in result for o in each.observations]
    assert len(titles) == len(set(titles)) == 60


def test_the_same_turn_again_brings_no_second_memory_of_it() -> None:
    first, again = session(*[many_turns(1)[0]] * 2)
    assert only(first).narrative is not None
    kept = {one for observation in again.observations for one in observation.text.split("\n")}
    assert not kept & {str(only(first).narrative), str(only(first).title)}


def test_the_five_hundredth_turn_costs_what_the_tenth_did() -> None:
    result = session(*many_turns(500))
    sizes = [sum(len(text or "") for text in texts(one)) for one in result]
    assert max(sizes[400:]) <= 1.1 * max(sizes[:100])


# Anything


def hostile(text: str) -> list[Turn]:
    plan = f"Implement the following plan:\n\n# x\n\n{text}"
    failed = use(2, "PostToolUseFailure", tool_name="Bash", tool_input={"command": "x"}, text=text)
    return [
        turn(statement(text), stopped(text + "."), prompt=text),
        turn(prompt=plan),
        turn(ran(text), ran("npm test", f"{text}\n1 failed"), failed),
    ]


SIGNS = ["a", "`", "(", " ", "- ", "|", "**", "#", "[", "[a](", "a. A", "a_", "/", "0,", "\n",
         "中", "<system-reminder>", "12:00:00 ", "error", "| a ", '-m "', "cd x && ", "— ",
         "# a\n- `b` (c)\n"]  # fmt: skip


@pytest.mark.parametrize("sign", SIGNS)
def test_no_paste_takes_long(sign: str) -> None:
    text = sign * (200_000 // len(sign))
    for number, of in enumerate(hostile(text)):
        result = distil(of)
        check(result, of)
        assert sum(len(part or "") for part in texts(result)) < 2 * MAX_CHARS

        def distil_paste(paste: str, number: int = number) -> object:
            return distil(hostile(paste)[number])

        assert too_fast_growth(distil_paste, lambda size: sign * (size // len(sign))) is None


words = st.sampled_from(
    ["The lamp", "blinks", "because", "`fuse()`", "instead of", "failed.", "Now", "it",
     "\n- ", "\n\n", "**Fix**:", "## Next steps\n", "| a | b |", "twice", "5 A", "never", "。",
     "灯台", "you need to", "Done!", "I'll", "src/lamp.py", "\n```\n", "must still", "— "]
)  # fmt: skip
speech = st.lists(words | st.text(max_size=6), max_size=60).map(" ".join)
turns = st.builds(
    lambda prompt, spoken, final, files: turn(
        *(statement(text, number) for number, text in enumerate(spoken, 1)),
        *(edited(path, number) for number, path in enumerate(files, 100)),
        stopped(final),
        prompt=prompt,
    ),
    speech,
    st.lists(speech, max_size=3),
    speech,
    st.lists(st.sampled_from(["lamp.py", "src/pier.py"]), max_size=2),
)


@given(turns)
def test_whatever_was_said_is_kept_in_bounds_in_order_and_once(of: Turn) -> None:
    scored = score_turn(of)
    selected = select_passages(scored)
    lengths = [len(candidate.text) for candidate in selected]
    # The best passage is kept also where it is longer than the budget.
    assert sum(lengths) <= max(budget_for(scored.evidence), 2 * LONGEST_PASSAGE)
    positions = [candidate.position for candidate in selected]
    assert positions == sorted(set(positions))
    assert len({candidate.text for candidate in selected}) == len(selected)


@given(turns)
def test_whatever_was_said_is_distilled_the_same_each_time(of: Turn) -> None:
    result = distil(of)
    check(result, of)
    assert distil(of) == result


@given(turns)
def test_a_title_is_a_whole_text_or_ends_where_a_clause_does(of: Turn) -> None:
    evidence_texts = [source.text for source in collect_evidence(of).texts()]
    sources = [" ".join(re.sub(r"[*`#|]", " ", text).split()).lower() for text in evidence_texts]
    for title in {distil(of).title, *(o.title for o in distil(of).observations)} - {None}:
        bare = " ".join(re.sub(r"[*`#|]", " ", str(title)).split()).lower()
        for source in sources:
            if bare and source.startswith(bare) and source != bare:
                following = source[len(bare) :]
                assert not following[0].isalnum() or bare[-1] in ")" or not bare[-1].isalnum()


@given(turns)
def test_nothing_told_before_is_told_again(of: Turn) -> None:
    first = distil(of)
    before = tuple(o.text for o in first.observations)
    again = distil(replace(of, recent_memories=before))
    observed = [o for o in again.observations if o.concepts != ("preference",)]
    for observation in observed:  # a rule is told as often as the user states it
        for text in (observation.narrative, *observation.facts):
            for sentence in sentences(text or ""):
                words = content_words(sentence)
                assert not words or words not in [content_words(memory) for memory in before]
        assert observation.title not in {o.title for o in first.observations}


def test_files_that_were_read_stay_beside_those_that_were_edited() -> None:
    fuse = use(1, tool_name="Read", tool_input={"file_path": f"{PROJECT_DIR}/fuse.py"})
    result = distil(turn(fuse, edited("lamp.py"), stopped("`lamp.py` was bent, so it is new.")))
    assert result.summary.files_read == ("fuse.py",)
    assert only(result).files_modified == ("lamp.py",)
    assert only(result).files_read == ()  # told once


def test_an_observation_without_edits_names_the_files_that_were_read() -> None:
    fuse = use(1, tool_name="Read", tool_input={"file_path": f"{PROJECT_DIR}/fuse.py"})
    answer = stopped("The lamp blinks because `fuse.py` calls `light()` twice.")
    result = distil(turn(fuse, answer, prompt="Why does the lamp blink?"))
    assert only(result).files_read == result.summary.files_read == ("fuse.py",)


def test_a_file_that_was_read_and_edited_is_in_both_lists() -> None:
    reads = [use(number, tool_name="Read", tool_input={"file_path": f"{PROJECT_DIR}/{name}"})
             for number, name in enumerate(("lamp.py", "fuse.py"), 1)]  # fmt: skip
    result = distil(turn(*reads, edited("lamp.py"), stopped("`lamp.py` was bent, so it is new.")))
    assert result.summary.files_read == ("fuse.py", "lamp.py")
    assert only(result).files_modified == result.summary.files_edited == ("lamp.py",)


_ANSWER = stopped(
    "The lamp blinks twice because `lamp_timer` is started by `light()` and by `on_wake()`.\n"
    "`lamp_timer` has no guard against a second start, so both calls toggle the relay.\n"
    "The driver debounces for 20 ms only, while the two starts are 80 ms apart.\n"
    "Since version 2.1 of `relay_driver` the time can be set with `RELAY_DEBOUNCE_MS`."
)


def test_verbosity_decides_how_much_is_kept_of_a_turn() -> None:
    commit = ran("git commit -m 'Guard the lamp timer against a second start'", "[main 1a2b3c4]")
    edits = [edited(f"{name}.py") for name in ("lamp", "timer", "relay")]
    of = turn(*edits, commit, _ANSWER, prompt="The lamp blinks twice on waking up, fix it")
    texts = [
        " ".join(o.text for o in distil(of, verbosity).observations)
        for verbosity in ("minimal", "normal", "verbose")
    ]
    assert 0 < len(texts[0]) < len(texts[1]) <= len(texts[2])


def test_the_least_verbosity_leaves_out_small_edits() -> None:
    final = "Renamed the heading of `notes.md` to Winter."
    of = turn(edited("notes.md"), stopped(final), prompt="Rename the heading")
    assert distil(of).observations
    assert distil(of, "minimal").observations == ()


def test_edits_that_nobody_describes_make_no_observation_after_others() -> None:
    cause = "The harbour lamp flickered because `poll()` ran twice per tick in `lamp.py`."
    first = turn(edited("lamp.py"), stopped(cause), prompt="the lamp flickers")
    large = edited("lamp.py", old="x\ny", new="y\nx")
    second = turn(large, stopped("Done."), prompt="the other one, too")
    assert session(first, second)[1].observations == ()


def test_files_of_which_nothing_is_told_make_no_observation_unless_they_are_new() -> None:
    changed = edited("horn.py", old="x\ny", new="y\nx")
    assert distil(turn(changed, stopped("Done."), prompt="go on")).observations == ()
    params = {"file_path": f"{PROJECT_DIR}/horn.py", "content": "..."}
    created = use(1, tool_name="Write", tool_input=params, tool_response={"type": "create"})
    told = distil(turn(created, stopped("Done."), prompt="go on"))
    assert only(told).title == "Created horn.py"


def test_a_plan_is_worth_an_observation_before_anything_was_done() -> None:
    plan = (
        "Implement the following plan:\n\n# Plan: Dim `lamp.py` at Night\n\n## Context\n\n"
        "The lamp keeps its full brightness after sunset, which wakes the harbour.\n"
    )
    result = distil(turn(prompt=plan))
    assert only(result).title == "Dim `lamp.py` at Night"
    assert distil(turn(prompt="Dim the lamp at night")).observations == ()


def test_a_sentence_that_leads_to_a_list_ends_with_a_full_stop() -> None:
    (passage,) = passages_in("`light()` is started by both callers of `fuse.py`:")
    assert join_passages([passage]) == "`light()` is started by both callers of `fuse.py`."
    (passage,) = passages_in("`light()` 由 `fuse.py` 的两个调用者启动：")
    assert join_passages([passage]) == "`light()` 由 `fuse.py` 的两个调用者启动。"


# What is told once


def test_a_passage_that_only_repeats_the_title_leaves_room_for_others() -> None:
    final = (
        "The `relay` loses its charge because the `fuse` is too thin. So the thin `fuse` loses the"
        " charge of the `relay`. The spare `fuse` lies in the drawer of the harbour office."
    )
    result = only(distil(turn(edited("relay.py"), stopped(final), prompt="Why?")))
    assert "drawer of the harbour office" in result.text
    assert result.text.count("loses") == 1
