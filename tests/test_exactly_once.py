"""Nothing lost, nothing twice: processes killed at every step, and at random, again and again.

Only launched processes and database rows: no handler is imported here.
"""

import os
import random
import signal
import sqlite3
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from claude_mem.worker.lock import is_held
from tests.conftest import Home, wait_until
from tests.payloads import Payload, as_bytes, edit, prompt, session_end, session_start, stop, tool

LINE = b'{"continue":true,"suppressOutput":true}\n'
HOOK_POINTS = ["hook.before_rename", "hook.after_rename"]
WORKER_POINTS = [
    "migration.before_commit",
    "migration.after_commit",
    "intake.before_read",
    "intake.before_commit",
    "intake.after_commit",
    "intake.after_unlink",
    "queue.after_claim",
    "store.before_save",
    "queue.before_acknowledge",
    "queue.after_acknowledge",
]


def arm(home: Home, tmp_path: Path, point: str) -> Path:
    marker = tmp_path / "armed"
    marker.touch()
    home.environment["CLAUDE_MEM_FAULT"] = f"{point}:{marker}"
    return marker


def one_turn() -> list[Payload]:
    return [session_start(), prompt(), tool(), edit(), stop(), session_end()]


def assert_one_turn_is_stored(home: Home, payloads: list[Payload]) -> None:
    stored = home.rows("SELECT event FROM tool_events ORDER BY id")
    assert [row["event"] for row in stored] == [p["hook_event_name"] for p in payloads]
    assert len(home.rows("SELECT * FROM session_summaries")) == 1
    changed = home.rows("SELECT files_modified FROM observations")
    assert [row["files_modified"] for row in changed] == ['["light.py"]']
    assert home.rows("SELECT status FROM sdk_sessions") == [{"status": "completed"}]
    assert home.rows("SELECT * FROM pending_messages") == []


@pytest.mark.parametrize("point", WORKER_POINTS)
def test_a_worker_killed_at_any_step_loses_and_doubles_nothing(
    home: Home, tmp_path: Path, point: str
) -> None:
    marker = arm(home, tmp_path, point)
    payloads = one_turn()
    with home.without_worker():
        for payload in payloads:
            assert home.hook(payload).returncode == 0
    home.hook(payloads[-1], "Wake")
    wait_until(lambda: not marker.exists(), f"the kill at {point}")
    wait_until(lambda: not is_held(home.layout), "the worker's death")
    home.start_worker()
    home.wait_settled()
    assert_one_turn_is_stored(home, payloads)


@pytest.mark.parametrize("point", HOOK_POINTS)
def test_a_hook_killed_at_any_step_never_printed_what_it_did_not_spool(
    home: Home, tmp_path: Path, point: str
) -> None:
    arm(home, tmp_path, point)
    killed = tool()
    done = home.hook(killed)
    assert done.returncode == 0
    assert LINE not in done.stdout
    payloads = [prompt(), tool(), stop()]
    for payload in payloads:
        assert home.hook(payload).stdout == LINE
    home.wait_settled()
    stored = {row["tool_use_id"] for row in home.rows("SELECT tool_use_id FROM tool_events")}
    assert payloads[1]["tool_use_id"] in stored
    assert (killed["tool_use_id"] in stored) == (point == "hook.after_rename")
    assert len(home.rows("SELECT * FROM session_summaries")) == 1


def test_the_same_event_told_twice_is_one_event(home: Home) -> None:
    payloads = one_turn()
    for payload in payloads:
        home.hook(payload)
        home.hook(payload)
    home.wait_settled()
    assert_one_turn_is_stored(home, payloads)
    for payload in payloads[1:-1]:  # a start and an end may be told again: a session is resumed
        home.hook(payload)
    home.wait_settled()
    assert_one_turn_is_stored(home, payloads)


SESSIONS, TURNS, TOOLS = 16, 5, 5


def storm_of(session: int) -> list[Payload]:
    name = f"session-{session:02d}"
    payloads: list[Payload] = []
    for turn in range(TURNS):
        identity = {"session_id": name, "prompt_id": f"{name}-turn-{turn}"}
        payloads.append(prompt(f"{name}, request {turn}", **identity))
        payloads += [edit(f"/home/dev/harbor/{name}-{n}.py", **identity) for n in range(TOOLS)]
        payloads.append(stop(f"{name}, answer {turn}", **identity))
    return [*payloads, session_end(session_id=name, prompt_id=f"{name}-turn-{TURNS - 1}")]


class Storm:
    """Hooks of many sessions at once; some are killed in the middle, as a client does."""

    def __init__(self, home: Home, seed: int) -> None:
        self._home = home
        self._dice = random.Random(seed)
        self._counting = threading.Lock()
        self.fired = 0
        self.printed: list[Payload] = []

    def play(self, session: int) -> None:
        for payload in storm_of(session):
            with self._counting:
                self.fired += 1
                kill_after = self._dice.uniform(0.001, 0.02) if self._dice.random() < 0.06 else None
            if self._fire(payload, kill_after):
                with self._counting:
                    self.printed.append(payload)

    def _fire(self, payload: Payload, kill_after: float | None) -> bool:
        process = subprocess.Popen(
            [self._home.layout.launcher, "claude", payload["hook_event_name"]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=self._home.env(),
            start_new_session=True,
        )
        killer = threading.Timer(kill_after, self._kill, [process]) if kill_after else None
        if killer:
            killer.start()
        out, _ = process.communicate(as_bytes(payload))
        if killer:
            killer.cancel()
            killer.join()
        return LINE in out

    @staticmethod
    def _kill(process: "subprocess.Popen[bytes]") -> None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def test_every_event_survives_a_storm_of_hooks_and_twenty_kills(home: Home) -> None:
    storm = Storm(home, seed=7)
    total = SESSIONS * (TURNS * (TOOLS + 2) + 1)
    assert total >= 500
    kills = 0
    dice = random.Random(11)
    with ThreadPoolExecutor(SESSIONS) as pool:
        playing = [pool.submit(storm.play, session) for session in range(SESSIONS)]
        at = sorted(dice.sample(range(5, total - 5), 20))
        killed = None  # the last worker
        seen, stored = -1, 0  # the worker, and the events when it was first seen
        while kills < 20:
            reached = storm.fired >= at[kills] or all(future.done() for future in playing)
            pid = home.worker_pid() if reached else None
            pid = pid if pid != killed else None
            # An event in whose work two workers die in a row is set aside, whoever killed them. So
            # each worker stores something before it is killed. Counted from when it is seen: what
            # the one before stored while it was being killed does not count.
            if pid is not None and any(home.layout.spool.glob("*.event")):
                count = stored_events(home)
                if pid != seen:
                    seen, stored = pid, count
                if count == stored:
                    continue
            if pid is not None:
                with suppress(ProcessLookupError):  # it may just have ended by an earlier kill
                    os.kill(pid, signal.SIGKILL)
                    kills, killed = kills + 1, pid
            elif all(future.done() for future in playing):
                home.start_worker()
        for future in playing:
            future.result()
    home.start_worker()
    # A last Stop and its SessionEnd may both have been killed: the next session finishes that turn.
    home.hook(session_start(session_id="the-session-after"))
    home.wait_settled()
    assert kills == 20
    assert_every_printed_event_is_stored_once(home, storm)
    assert_every_turn_has_one_summary(home)


def stored_events(home: Home) -> int:
    try:
        return len(home.column("SELECT id FROM tool_events"))
    except sqlite3.OperationalError:
        return 0  # there are no tables yet


def assert_every_printed_event_is_stored_once(home: Home, storm: Storm) -> None:
    stored = home.rows(
        "SELECT e.event, e.tool_use_id, s.content_session_id AS session_id, t.prompt_id"
        " FROM tool_events e JOIN sdk_sessions s ON s.id = e.session_id"
        " LEFT JOIN user_prompts t ON t.id = e.turn_id WHERE e.event <> 'SessionStart'"
    )
    keys = [
        (row["session_id"], row["event"], row["tool_use_id"] or row["prompt_id"]) for row in stored
    ]
    printed = {
        (p["session_id"], p["hook_event_name"], p.get("tool_use_id") or p["prompt_id"])
        for p in storm.printed
    }
    assert len(storm.printed) > 500
    assert len(keys) == len(set(keys))
    assert printed <= set(keys)
    # A killed hook may have spooled without printing; nothing else may be there.
    assert len(set(keys) - printed) <= storm.fired - len(storm.printed)


def assert_every_turn_has_one_summary(home: Home) -> None:
    turns = home.rows(
        "SELECT t.id, t.prompt_id, count(m.id) AS summaries FROM user_prompts t"
        " LEFT JOIN session_summaries m ON m.turn_id = t.id GROUP BY t.id"
    )
    assert len(turns) == SESSIONS * TURNS
    assert {turn["summaries"] for turn in turns} == {1}
    counts = home.rows("SELECT count(*) AS n FROM observations GROUP BY turn_id")
    assert {row["n"] for row in counts} == {1}
    mixed = home.rows(
        "SELECT o.files_modified, s.content_session_id AS name FROM observations o"
        " JOIN sdk_sessions s ON s.memory_session_id = o.memory_session_id"
        " WHERE instr(o.files_modified, s.content_session_id) = 0"
    )
    assert mixed == []
