"""A real browser on a real worker, for the tests of the viewer."""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import BrowserContext, Page, sync_playwright

from claude_mem.install.launcher import write_launcher
from tests import payloads
from tests.conftest import Home
from tests.network_run import WatchedRun, current_run
from tests.payloads import PROJECT_DIR

PATIENCE_MS = 30_000
# Nothing but the viewer: a browser of its own accord looks for updates and names.
ARGUMENTS = (
    "--no-sandbox", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run", "--disable-domain-reliability", "--disable-quic",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--disable-dev-shm-usage",
    "--disable-features=OptimizationHints,MediaRouter,DialMediaRouteProvider,Translate,"
    "AutofillServerCommunication,CertificateTransparencyComponentUpdater",
)  # fmt: skip


@dataclass
class Browsing:
    """A browser that was let in, and everything that it asked for."""

    home: Home
    context: BrowserContext
    page: Page
    address: str
    requests: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def go(self, path: str) -> Page:
        self.page.goto(f"{self.address}{path}")
        return self.page

    def watch(self, page: Page) -> None:
        page.set_default_timeout(PATIENCE_MS)
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", self._console)

    def _console(self, message: Any) -> None:
        # A stream that breaks off with its worker is reported by the browser, not by us.
        if message.type == "error" and "ERR_" not in message.text:
            self.problems.append(f"{message.text} {message.location}")


def _allow_route_lookup() -> None:
    """Chromium asks the kernel whether there is a route for IPv6, and sends nothing there."""
    run = current_run()
    if isinstance(run, WatchedRun):
        run.provoke("connect 2001:4860:4860::8888:443")


def open_link(home: Home) -> str:
    done = home.command("open", "--print")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@contextmanager
def open_home(directory: Path) -> Iterator[Home]:
    home = Home(directory)
    home.path.mkdir(parents=True)
    home.layout.create()
    write_launcher(home.layout)
    home.environment["CLAUDE_MEM_WORKER_PORT"] = "41200"
    home.start_worker()
    try:
        yield home
    finally:
        home.end_worker()


@contextmanager
def open_browser(home: Home, **options: Any) -> Iterator[Browsing]:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    assert chromium, "these tests need chromium: apt-get install chromium"
    _allow_route_lookup()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=list(ARGUMENTS))
        context = browser.new_context(**{"reduced_motion": "reduce", "locale": "en-GB", **options})
        page = context.new_page()
        link = open_link(home)
        browsing = Browsing(home, context, page, link.partition("/open")[0])
        browsing.watch(page)
        page.goto(link)
        page.wait_for_url(re.compile(rf"{browsing.address}/(#.*)?$"))
        try:
            yield browsing
        finally:
            context.close()
            browser.close()


def run_turn(
    home: Home, session: str, number: int, text: str, reply: str, file: str = "light.py",
    directory: str = PROJECT_DIR,
) -> None:  # fmt: skip
    """A whole turn, through the real hooks."""
    identity = {"session_id": session, "prompt_id": f"{session}-{number}"}
    for payload in (
        payloads.prompt(text, **identity),
        payloads.edit(f"{directory}/{file}", **identity),
        payloads.stop(reply, **identity),
    ):
        assert home.hook(payload, CLAUDE_PROJECT_DIR=directory).returncode == 0
