"""The commands of a turn: tests, commits, what failed and what made it go away."""

import re

import pytest

from claude_mem.observer.local.here_documents import here_document_of, without_here_documents
from claude_mem.observer.local.tool_uses import (
    CommandLog,
    Failure,
    error_line,
    read_commands,
    short_command,
)
from claude_mem.types import CommandRun, TurnEvent
from tests.turns import edited, ran, turn, use


def log_of(*events: TurnEvent) -> CommandLog:
    return read_commands(turn(*events))


@pytest.mark.parametrize(
    ("command", "short"),
    [
        ("cd /srv && make lamp 2>&1 | tail -5", "make lamp"),
        ("OIL=1 sudo timeout 60 ./light --twice > /dev/null", "./light --twice"),
        ("make lamp || true; echo done", "make lamp"),
        ("make   lamp\necho next line", "make lamp"),
        ("x" * 500, "x" * 119 + "…"),
    ],
)
def test_a_command_is_told_without_where_it_ran_and_what_was_done_with_its_output(
    command: str, short: str
) -> None:
    assert short_command(command) == short


PYTEST = (
    "FAILED tests/test_lamp.py::test_blink - AssertionError: assert 1 == 2\n1 failed, 41 passed"
)
GIT = re.compile(r"\bgit commit\b")
GO = "--- FAIL: TestBlink (0.01s)\n    lamp_test.go:20: got 1 want 2\nFAIL\nFAIL\tharbor\t0.02s"
CARGO = (
    "test lamp::tests::blinks ... FAILED\n\nfailures:\nthread 'x' panicked at src/lamp.rs:40:9:\n"
    "test result: FAILED. 11 passed; 1 failed; 0 ignored\nerror: test failed, to rerun pass `--lib`"
)
JEST = "FAIL src/lamp.test.ts\n  ● lamp › blinks\nTests:       1 failed, 12 passed, 13 total"
GRADLE = (
    "LampTest > blinks() FAILED\n    org.opentest4j.AssertionFailedError: expected: <2>\n"
    "12 tests completed, 1 failed\nFAILURE: Build failed with an exception.\nBUILD FAILED in 3s"
)
MAVEN = "[ERROR] Tests run: 12, Failures: 1, Errors: 0\n[ERROR] LampTest.blinks:12 expected 2"
RSPEC = "Failures:\n  1) Lamp blinks\n12 examples, 1 failure"


@pytest.mark.parametrize(
    ("command", "failing", "passing", "counts", "error"),
    [
        ("python -m pytest -q", PYTEST, "42 passed in 2.0s", "42 passed",
         "FAILED tests/test_lamp.py::test_blink - AssertionError: assert 1 == 2"),
        ("go test ./...", GO, "ok  \tharbor\t0.02s", "", "--- FAIL: TestBlink (0.01s)"),
        ("cargo test", CARGO, "test result: ok. 12 passed; 0 failed; 0 ignored", "12 passed",
         "test lamp::tests::blinks ... FAILED"),
        ("npx jest", JEST, "Tests:       13 passed, 13 total", "13 passed",
         "FAIL src/lamp.test.ts"),
        ("./gradlew test", GRADLE, "BUILD SUCCESSFUL in 3s", "",
         "org.opentest4j.AssertionFailedError: expected: <2>"),
        ("mvn -q test", MAVEN, "", "",
         "[ERROR] Tests run: 12, Failures: 1, Errors: 0"),
        ("bundle exec rspec", RSPEC, "12 examples, 0 failures", "", "1) Lamp blinks"),
    ],
)  # fmt: skip
def test_a_test_that_failed_and_passed_after_an_edit_is_told_with_both(
    command: str, failing: str, passing: str, counts: str, error: str
) -> None:
    log = log_of(
        ran(command, failing, 1, failed=True), edited("lamp.x", 2), ran(command, passing, 3)
    )
    assert log.runs == {command: CommandRun(command, "test", "passed", counts, (1, 3))}
    assert log.failures == [Failure(command, error, "after editing lamp.x", "", (1, 3))]


def test_a_pipe_does_not_hide_that_tests_failed() -> None:
    log = log_of(ran("pytest | tail -3", "1 failed, 2 passed in 1s"))
    assert log.runs == {
        "pytest": CommandRun("pytest", "test", "failed", "2 passed, 1 failed", (1,))
    }


@pytest.mark.parametrize(
    ("command", "purpose"),
    [
        ("npm run lint", "check"), ("bun run lint:fix", "check"), ("go vet ./...", "check"),
        ("python -m mypy src", "check"), ("terraform plan", "check"), ("make test", "test"),
        ("mise run test:ci", "test"), ("hatch run test", "test"), ("mise run lint", "check"),
        ("npm run dev", "run"), ("cargo run", "run"), ("make release", "release"),
        ("mise run fmt", None), ("npm run fmt", None),
        ("cat build/lamp.log", None), ("./deploy --to build/pier", None), ("f=build/x.html", None),
    ],
)  # fmt: skip
def test_a_command_is_recorded_where_it_tests_or_checks(command: str, purpose: str | None) -> None:
    runs = log_of(ran(command)).runs.values()
    assert [run.purpose for run in runs] == ([purpose] if purpose else [])


@pytest.mark.parametrize(
    ("command", "runs"),
    [
        ("mise run fmt && mise run lint && mise run test 2>&1 | tail -3",
         {"mise run lint": "check", "mise run test": "test"}),
        ("cd pier && make lint && make test", {"make lint": "check", "make test": "test"}),
        ("make lint; make test", {"make lint; make test": "test"}),
    ],
)  # fmt: skip
def test_the_steps_of_a_chain_that_passed_are_commands_of_their_own(
    command: str, runs: dict[str, str]
) -> None:
    log = log_of(ran(command, "3 passed"))
    assert {name: run.purpose for name, run in log.runs.items()} == runs
    assert {run.counts for run in log.runs.values() if run.purpose == "test"} == {"3 passed"}
    assert {run.counts for run in log.runs.values() if run.purpose == "check"} <= {""}


def test_a_chain_that_failed_is_one_command() -> None:
    log = log_of(ran("make lint && make test", "lamp.c:4: error: x", failed=True))
    assert list(log.runs) == ["make lint && make test"]


def test_of_a_command_that_ran_twice_the_last_outcome_counts() -> None:
    log = log_of(ran("make lint", number=1), ran("make lint", "lamp.c: error", 2, failed=True))
    assert log.runs == {"make lint": CommandRun("make lint", "check", "failed", "", (1, 2))}


def test_a_failure_that_was_not_fixed_is_told_if_it_was_a_check() -> None:
    assert log_of(
        ran("ruff check", "lamp.py:1:1: E501 too long error", 1, failed=True)
    ).failures == [Failure("ruff check", "lamp.py:1:1: E501 too long error", sources=(1,))]
    assert log_of(ran("./deploy", "error: no such pier", 1, failed=True)).failures == []


def test_what_came_between_may_have_fixed_it() -> None:
    log = log_of(
        ran("npm run build", "Error: Cannot find module 'oil'", 1, failed=True),
        ran("npm install", "added 3 packages", 2),
        ran("npm run build", "ok", 3),
    )
    assert [failure.fixed_by for failure in log.failures] == ["after `npm install`"]


def test_a_command_held_wrong_is_told_with_the_one_that_works() -> None:
    log = log_of(
        ran("wrap bun run lint", "error: unrecognized subcommand 'bun'", 1, failed=True),
        ran("bun run lint", "", 2),
    )
    assert log.failures == [
        Failure("wrap bun run lint", "error: unrecognized subcommand 'bun'", "", "bun run lint",
                (1, 2))
    ]  # fmt: skip


def test_the_same_check_within_a_longer_command_is_no_other_command() -> None:
    log = log_of(
        ran("make lint", "lamp.c:4: error: unused lamp", 1, failed=True),
        edited("lamp.c", 2),
        ran("make lint && make test", "2 passed", 3),
    )
    assert [(failure.alternative, failure.fixed_by) for failure in log.failures] == [
        ("", "after editing lamp.c")
    ]


def test_fewer_tests_that_pass_fix_nothing() -> None:
    log = log_of(
        ran("pytest tests", "1 failed, 2 passed", 1, failed=True),
        ran("pytest tests -k lamp", "1 passed", 2),
    )
    assert [(each.command, each.fixed_by, each.alternative) for each in log.failures] in (
        [("pytest tests", "", "")],
        [],
    )


def test_looking_around_and_failing_is_no_failure() -> None:
    log = log_of(
        ran("grep -r lamp build", "grep: build: No such file", 1, failed=True),
        ran("ls build", "ls: cannot access 'build'", 2, failed=True),
    )
    assert log == CommandLog()


def test_a_subagents_commands_are_its_own() -> None:
    given = {"command": "pytest"}
    event = use(1, tool_name="Bash", tool_input=given, tool_response="2 passed", agent_id="a1")
    assert log_of(event) == CommandLog()


@pytest.mark.parametrize(
    ("command", "output", "commits"),
    [
        ("git commit -m 'Blink twice'", "[main 1a2b3c4] Blink twice", {"Blink twice": "1a2b3c4"}),
        ('git commit -am "Say \\"ahoy\\""', "", {'Say \\"ahoy\\"': ""}),
        ("git commit -m \"$(cat <<'EOF'\nLight the pier\n\nBody.\nEOF\n)\"",
         "[winter (root-commit) 99aabbc] Light", {"Light the pier": "99aabbc"}),
        ("git add . && git commit -F - <<EOF\n\nOil the pump\nEOF", "", {"Oil the pump": ""}),
        ("git commit --amend --no-edit", "[main 1a2b3c4] x", {}),
        ("git log --grep commit", "", {}),
        ("cat >> pier.md <<'EOF'\nThe pier\nEOF\ngit add . && git commit -m 'Paint it'", "",
         {"Paint it": ""}),
        ("cat > run.sh <<'SH'\n. ./lamp.sh\ngit commit -m 'Wind it'\nSH\nchmod +x run.sh", "", {}),
        ("git commit -m 'Oil it' && cat > pier.md <<EOF\nThe pier\nEOF", "", {"Oil it": ""}),
        ("git commit -m 'Oil; it' \\\n -m \"$(cat <<EOF\nDim the lamp\nEOF\n)\"", "",
         {"Dim the lamp": ""}),
        ("git commit -F - <<< 'Fog' && cat <<EOF\nThe pier\nEOF", "", {}),
        ("git commit -F - <<EOF\nCut o", "", {"Cut o": ""}),
    ],
)  # fmt: skip
def test_a_commit_is_told_by_its_subject_and_hash(
    command: str, output: str, commits: dict[str, str]
) -> None:
    assert log_of(ran(command, output)).commits == commits


def test_a_command_of_many_here_documents_is_read_in_one_pass() -> None:
    many = "cat <<A\n\nA\n" * 20_000
    assert here_document_of(f"{many}git commit -F - <<A\nOil it\nA\n", GIT) == "Oil it"
    assert here_document_of(f"git commit -F - {'<<' * 50_000}", GIT) is None
    assert here_document_of('git commit -m "' + '\\"' * 50_000 + "<<A\nOil\nA\n", GIT) is None
    assert here_document_of("git commit " * 20_000 + "-F - <<A\nOil\nA\n", GIT) == "Oil"
    assert "Oil" not in without_here_documents(f"{many}cat <<A\nOil it\nA\n")


def test_a_commit_that_a_hook_held_up_is_told_once() -> None:
    failed = ran("git commit -m 'Blink'", "lint failed", 1, failed=True)
    log = log_of(failed, ran("git commit -m 'Blink'", "[main 1a2b3c4] Blink", 2))
    assert log.commits == {"Blink": "1a2b3c4"}


@pytest.mark.parametrize(
    ("command", "output", "commits"),
    [
        ("git add . && git commit --amend --no-edit", "[main 5e6f7a8] Blink", {"Blink": "5e6f7a8"}),
        ("git commit --amend -m 'Blink'", "[main 5e6f7a8] Blink", {"Blink": "5e6f7a8"}),
        ("git commit --amend --no-edit", "[main 5e6f7a8] Oil it", {"Blink": "1a2b3c4"}),
        ("git commit --amend --no-edit -q", "", {"Blink": "1a2b3c4"}),
        ("git commit --amend --dry-run", "On branch main", {"Blink": "1a2b3c4"}),
        ("git commit --amend --no-edit | tail -1", "lint failed", {"Blink": "1a2b3c4"}),
    ],
)  # fmt: skip
def test_an_amended_commit_is_told_by_its_new_hash(
    command: str, output: str, commits: dict[str, str]
) -> None:
    first = ran("git commit -m 'Blink'", "[main 1a2b3c4] Blink", 1)
    assert log_of(first, ran(command, output, 2)).commits == commits


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("warming up\nValueError: no oil\nexit code 1", "ValueError: no oil"),
        ('error: script "test" exited with code 1\nlamp.c:4: error: no oil',
         "lamp.c:4: error: no oil"),
        ("DeprecationWarning: old error\nthe pump is missing", "the pump is missing"),
        ("something odd happened here", "something odd happened here"),
        ("short", ""),
        ("", ""),
    ],
)  # fmt: skip
def test_the_line_that_says_what_went_wrong_is_found(output: str, line: str) -> None:
    assert error_line(output) == line
