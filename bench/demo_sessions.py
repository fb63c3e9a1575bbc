# ruff: noqa: E501
"""Sessions of made-up projects, for screenshots and timings of the viewer: months of work."""

from dataclasses import dataclass, field

from claude_mem.types import ObservationType

Note = tuple[ObservationType, str, str]  # type, title, narrative


@dataclass(frozen=True)
class DemoTurn:
    prompt: str
    completed: str
    notes: tuple[Note, ...] = ()
    edited: tuple[tuple[str, str, str], ...] = ()  # file, before, after
    commands: tuple[tuple[str, str], ...] = ()  # command, output
    learned: str = ""
    next_steps: str = ""
    said: str = ""
    model: str = ""
    decisions: tuple[tuple[str, str], ...] = ()  # question, answer
    concepts: tuple[str, ...] = ()


@dataclass(frozen=True)
class DemoSession:
    project: str
    title: str
    days_ago: float
    turns: tuple[DemoTurn, ...] = field(default_factory=tuple)


MODEL = "claude-haiku-4-5"

# fmt: off
SESSIONS: tuple[DemoSession, ...] = (
    DemoSession("beacon-api", "Retry webhooks that time out", 0.05, (
        DemoTurn(
            "Customers say some webhooks never arrive. Find out why and make delivery reliable.",
            "Deliveries that time out are now retried with backoff for 24 hours; before, a timeout "
            "was counted as delivered.",
            (("bugfix", "A timeout of a webhook was recorded as a successful delivery",
              "`deliver()` caught `httpx.TimeoutException` together with `httpx.HTTPError` and "
              "returned the empty response, which `mark_sent()` read as status 200. The two are "
              "separate now: a timeout raises `DeliveryFailed` and is retried."),
             ("decision", "Retry webhooks for 24 hours with exponential backoff and full jitter",
              "Fixed delays were rejected: all failed deliveries of an outage would return at the "
              "same moment. The schedule is 1 min to 2 h, at most 18 tries.")),
            (("beacon/webhooks/delivery.py",
              "    except httpx.HTTPError:\n        return EMPTY",
              "    except httpx.TimeoutException as error:\n        raise DeliveryFailed(url) "
              "from error\n    except httpx.HTTPError:\n        return EMPTY"),
             ("beacon/webhooks/schedule.py", "DELAYS = [60, 60, 60]",
              "def delay(attempt: int) -> float:\n    return random() * min(7200, 60 * 2**attempt)")),
            (("pytest tests/webhooks -q", "31 passed in 4.12s"),
             ("grep -rn TimeoutException beacon", "beacon/webhooks/delivery.py:48")),
            learned="httpx.TimeoutException is a subclass of HTTPError, so its handler must come first.",
            next_steps="Show failed deliveries in the dashboard; alert when the queue is older than an hour.",
            said="I found it. `deliver()` treats a timeout like any other HTTP error and returns an "
                 "empty response, and `mark_sent()` only checks that there is one.\n\nThe fix has two "
                 "parts:\n\n1. A timeout raises `DeliveryFailed`.\n2. The scheduler retries with "
                 "**full jitter**, so that an outage does not end in a thundering herd.\n\n```python\n"
                 "def delay(attempt: int) -> float:\n    return random() * min(7200, 60 * 2**attempt)\n```",
            model=MODEL, decisions=(("How long are webhooks retried?", "for 24 hours, with full jitter"),),
            concepts=("problem-solution", "gotcha")),
        DemoTurn(
            "Always run the linter before you commit. And write a test that a slow endpoint is retried.",
            "Added `test_slow_endpoint_is_retried`, which uses a server that answers after the timeout.",
            (("change", "A slow endpoint is simulated by a server that never answers, not by a mock",
              "The fixture `silent_server` accepts connections and reads nothing. The old mock raised "
              "the wrong exception, which is why the bug was not found."),),
            (("tests/webhooks/test_delivery.py", "", "def test_slow_endpoint_is_retried(silent_server): ..."),),
            (("ruff check . && pytest tests/webhooks -q", "32 passed in 4.80s"),)),
    )),
    DemoSession("tidepool", "Dark mode for the dashboard", 0.3, (
        DemoTurn(
            "Add a dark mode that follows the system, with a switch in the header.",
            "Colours are custom properties now; the switch stores its choice in a cookie so that the "
            "server renders the right theme and nothing flashes.",
            (("feature", "The theme is read from a cookie on the server, so pages never flash white",
              "`localStorage` is only readable after the first paint. A cookie `theme` is read in "
              "`layout.tsx` and sets `data-theme` on `<html>`."),
             ("discovery", "Recharts ignores CSS variables in the `fill` of a gradient stop",
              "`stopColor=\"var(--accent)\"` renders black in Safari 17. The chart reads the computed "
              "value with `getComputedStyle` instead.")),
            (("app/layout.tsx", "<html lang=\"en\">", "<html lang=\"en\" data-theme={theme}>"),
             ("app/charts/area.tsx", "stopColor=\"var(--accent)\"", "stopColor={accent}"),
             ("styles/tokens.css", "--bg: #fff;", "--bg: light-dark(#fff, #141518);")),
            (("npm test", "Tests: 118 passed, 118 total"),),
            learned="light-dark() needs color-scheme on the root element.",
            model=MODEL, concepts=("how-it-works",)),
        DemoTurn("The charts are still too bright. Tone them down.",
                 "Chart colours have a second set for dark mode with lower chroma.",
                 (("change", "Charts use a separate, less saturated palette in dark mode", ""),),
                 (("app/charts/palette.ts", "export const series = [", "export const series = light ? ["),)),
    )),
    DemoSession("beacon-api", "Move the queue from Redis to PostgreSQL", 1.1, (
        DemoTurn(
            "We want one database less. Can the job queue move into PostgreSQL without losing jobs?",
            "Jobs are claimed with SELECT … FOR UPDATE SKIP LOCKED and a lease; Redis is only a cache now.",
            (("decision", "The job queue lives in PostgreSQL; Redis stays as a cache only",
              "A job and the rows it changes commit in one transaction, which Redis could not give. "
              "Measured: 900 jobs/s on the staging box, of which we need 40."),
             ("refactor", "Jobs are acknowledged in the transaction that stores their result",
              "`Worker.finish()` takes the connection of the handler. A crash between both is no "
              "longer possible.")),
            (("beacon/jobs/queue.py", "redis.brpoplpush(", "SELECT id FROM jobs FOR UPDATE SKIP LOCKED"),
             ("beacon/jobs/worker.py", "queue.ack(job)", "queue.ack(job, connection)"),
             ("migrations/0042_jobs.sql", "", "CREATE TABLE jobs (id bigserial PRIMARY KEY, …);")),
            (("pytest -q", "412 passed, 3 skipped in 61.20s"),),
            next_steps="Remove the Redis queue after the release of 4.2.",
            model=MODEL, decisions=(("Where does the job queue live?", "in PostgreSQL, Redis is a cache"),),
            concepts=("trade-off", "why-it-exists")),
        DemoTurn("What happens to jobs that are in Redis during the deploy?",
                 "A one-off command drains Redis into the new table; it can run twice without doubling jobs.",
                 (("feature", "`beacon jobs drain` moves jobs out of Redis and can be repeated", ""),),
                 (("beacon/cli/jobs.py", "", "@jobs.command()\ndef drain() -> None: ..."),)),
    )),
    DemoSession("sextant", "Parse coordinates with minutes and seconds", 2.2, (
        DemoTurn(
            "`sextant plot` refuses 48°51′24″N. Support degrees, minutes and seconds.",
            "The parser accepts DMS in the usual spellings; errors point at the character that is wrong.",
            (("feature", "Coordinates may be written as degrees, minutes and seconds", ""),
             ("bugfix", "A southern latitude lost its sign when it had no degrees",
              "`-0` is 0 for integers: the sign is kept apart from the number now.")),
            (("src/parse.rs", "let deg: i32 = s.parse()?;", "let (sign, deg) = signed(s)?;"),),
            (("cargo test", "test result: ok. 64 passed; 0 failed"),),
            learned="nom 8 removed the tuple combinators; sequences are plain tuples."),
    )),
    DemoSession("tidepool", "The list of samples is slow", 3.4, (
        DemoTurn(
            "Scrolling the list of samples stutters with more than 2,000 rows. Profile it first.",
            "Rows are virtualised; a frame takes 4 ms instead of 90.",
            (("discovery", "Each row subscribed to the whole store and rendered on every change",
              "The profile shows 2,000 renders per keystroke in the filter box."),
             ("bugfix", "Rows select only their own sample from the store", "")),
            (("app/samples/list.tsx", "useStore()", "useStore((s) => s.samples[id])"),),
            (("npm run bench:list", "p95 frame 4.1 ms (before 91.7 ms)"),), model=MODEL),
    )),
    DemoSession("beacon-api", "Rate limits per API key", 6.0, (
        DemoTurn("Limit each API key to 100 requests per second, with a burst of 200.",
                 "A token bucket in PostgreSQL was too slow; it is a sliding window in Redis.",
                 (("decision", "Rate limits are counted in Redis, as a sliding window",
                   "In PostgreSQL the hot row of a busy key was updated 3,000 times a second."),
                  ("feature", "Responses carry RateLimit-Remaining and RateLimit-Reset", "")),
                 (("beacon/limits.py", "", "class SlidingWindow: ..."),),
                 (("pytest tests/test_limits.py -q", "18 passed in 0.91s"),),
                 decisions=(("Where are rate limits counted?", "in Redis, sliding window"),)),
    )),
    DemoSession("dotfiles", "Faster shell start", 8.5, (
        DemoTurn("My shell takes a second to start. Find out what is slow.",
                 "nvm was loaded at start; it is loaded on first use now. 1.1 s became 80 ms.",
                 (("discovery", "nvm.sh took 870 ms of the 1.1 s", "Measured with zprof."),),
                 ((".zshrc", "source $NVM_DIR/nvm.sh", "nvm() { unset -f nvm; source $NVM_DIR/nvm.sh; nvm \"$@\"; }"),)),
    )),
    DemoSession("sextant", "Release 0.9", 11.0, (
        DemoTurn("Prepare the release 0.9: changelog, version, tag. Do not publish.",
                 "Version, changelog and tag are ready; publishing is left to you.",
                 (("change", "The changelog is written from the titles of merged pull requests", ""),),
                 (("Cargo.toml", "version = \"0.8.3\"", "version = \"0.9.0\""), ("CHANGELOG.md", "", "## 0.9.0")),
                 next_steps="cargo publish, after the announcement is reviewed."),
    )),
)
