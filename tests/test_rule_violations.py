"""Standing rules and commands: what is plainly forbidden is recognised, everything else is not."""

import pytest

from claude_mem.rule_violations import Rule, broken_rule


def is_broken(rule: str, command: str, *earlier: str) -> bool:
    return broken_rule(command, earlier, [Rule("F1", rule)]) is not None


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("never push to main", "git push origin main"),
        ("Never push directly to main!", "make check && git push -u origin main"),
        ("never use `git push --force` here", "git push --force origin topic"),
        ("Do not run npm install", "cd web; npm install left-pad"),
        ("always run make check first", "git commit -m 'Fix'"),
        ("Always run `make check` before pushing", "git push"),
    ],
)
def test_a_command_that_breaks_a_rule_is_recognised(rule: str, command: str) -> None:
    assert is_broken(rule, command)


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("never push to main", "git push origin topic"),
        ("never push to main", "git log main"),
        ("never push to main", "echo main"),
        ("always run make check first", "make test"),
        ("always run make check first", "make check && git commit -m x"),
        ("The tests are slow", "pytest"),
        ("never say never", "git push"),
        ("always answer in English first", "ls"),
        ("Prefer small commits", "git commit -am big"),
    ],
)
def test_other_commands_are_not_denied(rule: str, command: str) -> None:
    assert not is_broken(rule, command)


def test_what_must_come_first_may_have_come_in_an_earlier_command() -> None:
    assert not is_broken("always run make check first", "git push", "make check")
    assert is_broken("always run make check first", "git push", "make test")


def test_the_reason_names_the_memory() -> None:
    rule = broken_rule(
        "git push origin main", [], [Rule("7", "x"), Rule("8", "never push to main")]
    )
    assert rule is not None
    assert rule.reason == "A rule of this project (memory 8): never push to main"
