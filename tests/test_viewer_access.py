"""Getting into the viewer: a link that works once, a cookie, and nothing for other pages."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from claude_mem.config import SETTINGS, Setting
from claude_mem.server.app import page_routes
from claude_mem.server.viewer_cookie import CONFIRMATION, CONFIRMATION_HEADER, COOKIE, cookie_name
from claude_mem.worker.viewer_links import VALID_SECONDS, OneTimeLinks
from tests.api import Api, Clock, open_api
from tests.conftest import Home

TOKEN = "a-token-of-this-installation-0123456789"
HOST = "127.0.0.1:37777"
HTML = {"accept": "text/html,application/xhtml+xml"}
OWN = {"origin": f"http://{HOST}"}


@pytest.fixture
def tcp(tmp_path: Path) -> Iterator[Api]:
    with open_api(tmp_path / "data", token=TOKEN) as opened:
        yield opened


def cookie(tcp: Api, host: str = HOST) -> dict[str, str]:
    value = COOKIE.issue(tcp.worker.viewer_links.signing_key, host, tcp.clock())
    return {"cookie": f"{cookie_name(HOST)}={value}"}


def confirmation(tcp: Api) -> str:
    """Returns the confirmation as the page gets it behind a link."""
    answer = tcp.request("GET", f"/open?key={tcp.worker.viewer_links.issue()}", headers=HTML)
    tcp.client.cookies.clear()
    match = re.search(r"url=/#confirm=([0-9a-f.]+)", answer.text)
    assert match is not None
    return match[1]


def status(tcp: Api, method: str, path: str, headers: dict[str, str]) -> int:
    answer = tcp.request(method, path, headers=headers)
    tcp.client.cookies.clear()
    return answer.status_code


# The link


def test_a_link_lets_in_and_sets_a_strict_cookie(tcp: Api) -> None:
    key = tcp.worker.viewer_links.issue()
    answer = tcp.request("GET", "/open", params={"key": key}, headers=HTML)
    assert answer.status_code == 200
    set_cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in set_cookie and "SameSite=strict" in set_cookie and "Path=/" in set_cookie
    assert TOKEN not in set_cookie
    assert tcp.request("GET", "/api/stats").status_code == 200  # the client kept the cookie


def test_a_link_works_once(tcp: Api) -> None:
    key = tcp.worker.viewer_links.issue()
    assert status(tcp, "GET", f"/open?key={key}", HTML) == 200
    again = tcp.request("GET", f"/open?key={key}", headers=HTML)
    assert again.status_code == 401 and "set-cookie" not in again.headers
    assert "claude-mem open" in again.text


def test_looking_at_a_link_without_opening_it_does_not_use_it_up(tcp: Api) -> None:
    key = tcp.worker.viewer_links.issue()
    preview = tcp.request("HEAD", f"/open?key={key}", headers=HTML)
    assert "set-cookie" not in preview.headers and preview.text == ""
    assert "set-cookie" in tcp.request("GET", f"/open?key={key}", headers=HTML).headers


@pytest.mark.parametrize("path", ["/api/stats", "/api/search?query=x", "/health", "/no/such"])
@pytest.mark.parametrize("known", [True, False])
def test_no_browser_caches_an_answer_or_takes_it_for_another_type(
    tcp: Api, path: str, known: bool
) -> None:
    headers = cookie(tcp) if known else {}
    answer = tcp.request("GET", path, headers=headers)
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("query", ["", "?key=", "?key=x", f"?key={TOKEN}", "?key=%F0%9F%94%91"])
def test_any_other_key_is_refused(tcp: Api, query: str) -> None:
    tcp.worker.viewer_links.issue()
    answer = tcp.request("GET", f"/open{query}")
    assert answer.status_code == 401 and "set-cookie" not in answer.headers


def test_a_link_expires() -> None:
    clock = Clock()
    links = OneTimeLinks(clock)
    early, late = links.issue(), links.issue()
    clock.ms += VALID_SECONDS * 1000 - 1
    assert links.use(early)
    clock.ms += 1
    assert not links.use(late)


def test_many_links_push_out_the_oldest() -> None:
    links = OneTimeLinks(Clock())
    first, *others = [links.issue() for _ in range(50)]
    assert not links.use(first) and links.use(others[-1])


def test_a_link_can_only_be_made_on_the_socket(tcp: Api, tmp_path: Path) -> None:
    bearer = {"authorization": f"Bearer {TOKEN}"}
    assert status(tcp, "POST", "/viewer/link", bearer) == 404
    with open_api(tmp_path / "socket") as socket:
        answer = socket.post("/viewer/link")
        assert answer.status_code == 400 and "WORKER_PORT" in answer.json()["error"]


# The cookie


def test_the_cookie_reads_and_writes_from_our_own_page(tcp: Api) -> None:
    assert status(tcp, "GET", "/api/stats", cookie(tcp)) == 200
    assert status(tcp, "POST", "/api/processing", {**cookie(tcp), **OWN}) == 400  # an empty body


def test_a_change_by_cookie_needs_our_own_origin(tcp: Api) -> None:
    body = {"isProcessing": True}
    for origin in ({}, {"origin": "http://127.0.0.1:3000"}, {"origin": "null"}):
        headers = {**cookie(tcp), **origin}
        answer = tcp.request("POST", "/api/processing", json=body, headers=headers)
        assert answer.status_code == 403
    assert not tcp.worker.announcer.activity.is_processing


def test_the_cookie_with_the_token_needs_it_too_and_the_header_does_not(tcp: Api) -> None:
    path, headers = "/api/resume", {"cookie": f"claude_mem_token={TOKEN}"}
    assert status(tcp, "POST", path, headers) == 403
    assert status(tcp, "POST", path, {**headers, **OWN}) == 200
    assert status(tcp, "POST", path, {"authorization": f"Bearer {TOKEN}"}) == 200


def test_the_cookie_ends_after_hours(tcp: Api) -> None:
    of_today = cookie(tcp)
    tcp.clock.ms += COOKIE.seconds * 1000 - 1000
    assert status(tcp, "GET", "/api/stats", of_today) == 200
    tcp.clock.ms += 1000
    assert status(tcp, "GET", "/api/stats", of_today) == 401


@pytest.mark.parametrize("value", ["", ".", "1.2", "9" * 14, "9" * 14 + ".", "²³.x", "x.y", TOKEN])
def test_a_made_up_cookie_is_refused(tcp: Api, value: str) -> None:
    headers = {"cookie": f"{cookie_name(HOST)}={value}".encode()}
    assert tcp.request("GET", "/api/stats", headers=headers).status_code == 401


def test_the_cookie_of_another_port_does_not_count(tcp: Api) -> None:
    value = cookie(tcp)["cookie"].partition("=")[2]
    renamed = {"cookie": f"{cookie_name('127.0.0.1:40000')}={value}"}
    assert status(tcp, "GET", "/api/stats", renamed) == 401
    assert status(tcp, "GET", "/api/stats", cookie(tcp, "127.0.0.1:40000")) == 401
    assert status(tcp, "GET", "/api/stats", {**renamed, "host": "127.0.0.1:40000"}) == 401


def test_the_cookie_dies_with_the_worker(tcp: Api, tmp_path: Path) -> None:
    of_this_worker = cookie(tcp)
    with open_api(tmp_path / "data", token=TOKEN) as restarted:
        assert status(restarted, "GET", "/api/stats", cookie(restarted)) == 200
        assert status(restarted, "GET", "/api/stats", of_this_worker) == 401
        stolen = {CONFIRMATION_HEADER: confirmation(tcp)}
        headers = {**cookie(restarted), **OWN, **stolen}
        body = {"name": "CLAUDE_CODE_PATH", "value": "/tmp/evil"}
        answer = restarted.request("POST", "/api/settings", json=body, headers=headers)
        assert answer.status_code == 403


PROTECTED = [setting for setting in SETTINGS if setting.protected]


@pytest.mark.parametrize("setting", PROTECTED, ids=lambda setting: setting.name)
def test_the_cookie_alone_changes_no_program_path_or_address(tcp: Api, setting: Setting) -> None:
    body = {"name": setting.name, "value": setting.default_text}
    by_cookie = {**cookie(tcp), **OWN}
    cookie_value = by_cookie["cookie"].partition("=")[2]
    for wrong in ("", "x", "9.x", cookie_value):
        headers = {**by_cookie, CONFIRMATION_HEADER: wrong}
        answer = tcp.request("POST", "/api/settings", json=body, headers=headers)
        assert answer.status_code == 403 and "`claude-mem open`" in answer.json()["error"]
    assert not tcp.layout.settings.exists()
    link = {CONFIRMATION_HEADER: confirmation(tcp)}
    for headers in ({"authorization": f"Bearer {TOKEN}"}, {**by_cookie, **link}):
        answer = tcp.request("POST", "/api/settings", json=body, headers=headers)
        assert answer.status_code == 200, answer.text


def test_every_setting_that_is_a_path_or_an_address_is_protected() -> None:
    names = {s.name for s in SETTINGS if re.search(r"URL|_PATH|_FILE$|_DIR$", s.name)}
    assert names - {s.name for s in PROTECTED} == {"CLAUDE_MEM_DATA_DIR"}  # cannot be changed


def test_a_confirmation_is_no_cookie_and_ends_after_minutes(tcp: Api) -> None:
    value = confirmation(tcp)
    as_cookie = {"cookie": f"{cookie_name(HOST)}={value}"}
    assert status(tcp, "GET", "/api/stats", as_cookie) == 401
    by_cookie = {**cookie(tcp), **OWN}
    tcp.clock.ms += CONFIRMATION.seconds * 1000
    body = {"name": "CLAUDE_CODE_PATH", "value": "/usr/bin/claude"}
    headers = {**by_cookie, CONFIRMATION_HEADER: value}
    assert tcp.request("POST", "/api/settings", json=body, headers=headers).status_code == 403


def test_the_cookie_alone_agrees_to_nothing(tcp: Api) -> None:
    body = {"name": "OBSERVER", "value": "claude", "agree": True}
    headers = {**cookie(tcp), **OWN}
    answer = tcp.request("POST", "/api/settings", json=body, headers=headers)
    assert answer.status_code == 403 and not tcp.layout.agreed.exists()


def test_the_cookie_changes_any_other_setting(tcp: Api) -> None:
    body = {"name": "CONTEXT_TOKENS", "value": "400"}
    headers = {**cookie(tcp), **OWN}
    assert tcp.request("POST", "/api/settings", json=body, headers=headers).status_code == 200


def test_a_later_expiry_cannot_be_written_into_a_cookie(tcp: Api) -> None:
    value = cookie(tcp)["cookie"].partition("=")[2]
    expiry, signature = value.split(".")
    forged = {"cookie": f"{cookie_name(HOST)}={int(expiry) + 1}.{signature}"}
    assert status(tcp, "GET", "/api/stats", forged) == 401


# Without it


@pytest.mark.parametrize("route", [route for route in page_routes if route.path != "/open"])
def test_every_page_says_how_to_get_in(tcp: Api, route: object) -> None:
    path = re.sub(r"\{[^}]+\}", "1", getattr(route, "path", ""))
    answer = tcp.request("GET", path, headers=HTML)
    assert answer.status_code == 401
    assert "<pre>claude-mem open</pre>" in answer.text


def test_the_page_without_a_cookie_runs_nothing(tcp: Api) -> None:
    answer = tcp.request("GET", "/", headers=HTML)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert "<script" not in answer.text


# The command


def test_open_prints_a_link_that_lets_a_browser_in_once(home: Home) -> None:
    import httpx

    home.environment["CLAUDE_MEM_WORKER_PORT"] = "40300"
    done = home.command("open", "--print")
    assert done.returncode == 0, done.stderr
    url = done.stdout.strip()
    assert "once" in done.stderr
    with httpx.Client(trust_env=False) as browser:
        assert browser.get(url).status_code == 200
        address = f"http://{urlsplit(url).netloc}"
        assert browser.get(f"{address}/api/stats").status_code == 200
    with httpx.Client(trust_env=False) as stranger:
        assert stranger.get(url).status_code == 401
        assert stranger.get(address, headers=HTML).status_code == 401


def test_open_starts_the_browser_of_the_user(home: Home) -> None:
    program, seen = home.path / "browser", home.path / "seen"
    program.write_text(f'#!/bin/sh\necho "$1" > {seen}\n')
    program.chmod(0o755)
    home.environment["CLAUDE_MEM_WORKER_PORT"] = "40330"
    done = home.command("open", BROWSER=f"{program} %s")
    assert done.returncode == 0, done.stderr
    assert "/open?key=" in seen.read_text()
    assert "key=" not in done.stdout


def test_open_without_a_port_says_what_to_do(home: Home) -> None:
    done = home.command("open")
    assert done.returncode == 1 and "WORKER_PORT" in done.stderr
