"""`python -m bench.screenshots`: pictures of every page of the viewer, into docs/images/.

The sessions are made up (`demo_sessions`). Needs the extra `browser` and chromium.
"""

import io
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.demo_home import write_demo

TARGET = Path(__file__).parent.parent / "docs" / "images"
SIZES = {"light": (1280, 860), "dark": (1280, 860), "narrow": (360, 740)}
TALL = {"turn": 1640}  # pages whose lower part matters
COLOURS = 200
MAX_BYTES = 150_000


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="claude-mem-screenshots-") as directory:
        home = Path(directory)
        write_demo(home / ".claude-mem", time.time_ns() // 1_000_000)
        environment = {
            "PATH": os.environ["PATH"], "HOME": str(home), "CLAUDE_MEM_WORKER_PORT": "38800",
        }  # fmt: skip
        try:
            _command(environment, "install", "--scope", "user", "--yes")
            _take_all(_command(environment, "open", "--print").strip(), home)
        finally:
            _command(environment, "worker", "stop")


def _command(environment: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, "-m", "claude_mem", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment,
                          stdin=subprocess.DEVNULL)  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    return done.stdout


def _take_all(link: str, home: Path) -> None:
    from playwright.sync_api import sync_playwright

    TARGET.mkdir(parents=True, exist_ok=True)
    address = link.partition("/open")[0]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        context = browser.new_context(locale="en-GB", reduced_motion="reduce")
        page = context.new_page()
        page.goto(link)
        page.wait_for_url(f"{address}/")
        for name, path in _pages(page).items():
            for style, (width, height) in SIZES.items():
                tall = TALL.get(name, height) if width > 1000 else height
                page.set_viewport_size({"width": width, "height": tall})
                page.emulate_media(color_scheme="dark" if style == "dark" else "light")
                page.goto(f"{address}{path}")
                _prepare(page, name, home)
                _save(page.screenshot(), TARGET / f"{name}-{style}.png")
        browser.close()


def _pages(page: Any) -> dict[str, str]:
    """The pages of the latest session, and of what it belongs to."""
    cards = page.locator("article", has_text="Customers say")
    turn = cards.locator("[data-open]").get_attribute("href")
    session = page.locator("h3.session a").first.get_attribute("href")
    project = page.locator("h3.session a.project").first.get_attribute("href")
    memory = cards.locator(".memories a").first.get_attribute("href").rpartition("#m")[2]
    return {
        "feed": "/", "turn": turn, "session": session, "search": "/search?q=webhook+timeout",
        "timeline": f"/timeline/{memory}", "projects": "/projects", "project": project,
        "health": "/doctor", "settings": "/settings",
    }  # fmt: skip


def _prepare(page: Any, name: str, home: Path) -> None:
    if name == "health":
        page.locator("#checks").wait_for()
    if name == "turn":
        page.locator("details summary.event").first.evaluate("s => s.parentElement.open = true")
    # Pictures show no paths of the machine that took them.
    page.evaluate(
        """([home, python]) => {
          const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
          for (let node; (node = walker.nextNode()); )
            node.data = node.data.replaceAll(home, "/home/dev").replaceAll(python, "python3");
        }""",
        [str(home), sys.executable],
    )


def _save(png: bytes, path: Path) -> None:
    from PIL import Image

    image = Image.open(io.BytesIO(png)).convert("RGB")
    # Few pixels of a colour are enough to keep it: the dots of the types are small.
    method = Image.Quantize.MAXCOVERAGE
    image.quantize(COLOURS, method, dither=Image.Dither.NONE).save(path, optimize=True)
    size = path.stat().st_size
    print(f"{path.name}: {size // 1024} KB")
    if size > MAX_BYTES:
        raise SystemExit(f"{path} is too large")


if __name__ == "__main__":
    main()
