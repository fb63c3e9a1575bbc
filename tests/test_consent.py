"""Text leaves the machine only for an address that the user agreed to."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from claude_mem.config import Layout, has_consent
from claude_mem.index.embedders.embedder import CONSENT
from tests.api import Api, open_api
from tests.conftest import Home
from tests.embedders import EmbeddingServer, embedding_server


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with embedding_server() as server:
        yield server


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    with open_api(tmp_path / "data") as api:
        yield api


def environment_of(server: EmbeddingServer) -> dict[str, str]:
    return {
        "CLAUDE_MEM_EMBEDDER": "endpoint",
        "CLAUDE_MEM_EMBEDDER_URL": server.url,
        "CLAUDE_MEM_EMBEDDER_MODEL": "concepts",
    }


def test_an_endpoint_in_the_environment_of_a_worker_gets_no_text(
    tmp_path: Path, server: EmbeddingServer
) -> None:
    with open_api(tmp_path / "data", **environment_of(server)) as api:
        api.add_turn("s", "Why does the lamp flicker?", "The relay of the lamp is loose.")
        index = api.worker.semantic_index
        assert index is not None and index.waiting(api.worker.store, 1) == 1
        api.runner.run(api.worker.embedding._embed_waiting(index))
        found = api.get_json("/api/search", query="lamp")
        trouble = (api.layout.root / "trouble").read_text()
    assert server.requests == []
    assert found["results"], "full text still works"
    assert server.url in trouble and "claude-mem embedder endpoint" in trouble


def test_the_command_records_consent_to_the_address_that_was_typed(
    home: Home, server: EmbeddingServer
) -> None:
    arguments = ("embedder", "endpoint", "--url", server.url, "--model", "concepts")
    refused = home.command(*arguments)
    assert refused.returncode == 1 and server.url in refused.stderr
    assert "--yes" in refused.stderr and "EMBEDDER" not in home.layout.settings.read_text()
    shown = home.command(*arguments, "--yes")
    assert shown.returncode == 0, shown.stderr
    assert has_consent(home.layout, CONSENT, server.url)
    assert f"address   {server.url}" in shown.stdout and "agreed    yes" in shown.stdout


def test_yes_does_not_agree_to_an_address_of_the_environment(
    home: Home, server: EmbeddingServer
) -> None:
    refused = home.command("embedder", "endpoint", "--yes", **environment_of(server))
    assert refused.returncode == 1 and server.url in refused.stderr
    assert not has_consent(home.layout, CONSENT, server.url)
    shown = home.command("embedder", **environment_of(server))
    assert "endpoint (environment)" in shown.stdout
    assert "no: claude-mem embedder endpoint" in shown.stdout


def test_an_address_without_encryption_is_refused_before_consent(home: Home) -> None:
    url = "http://192.168.1.5/embed"
    refused = home.command("embedder", "endpoint", "--url", url, "--model", "m", "--yes")
    assert refused.returncode == 1 and "use https" in refused.stderr
    assert not has_consent(home.layout, CONSENT, url)


def test_over_http_an_endpoint_needs_agreement_in_either_order_of_the_settings(api: Api) -> None:
    first, second = "https://one.example/embed", "https://two.example/embed"
    api.post_json("/api/settings", name="EMBEDDER_URL", value=first)
    assert agreed_addresses(api.layout, first, second) == []
    refused = api.post("/api/settings", name="EMBEDDER", value="endpoint")
    assert refused.status_code == 400 and refused.json()["field"] == "agree"
    assert first in refused.json()["error"]
    assert api.worker.settings.embedder.kind == "static"
    api.post_json("/api/settings", name="EMBEDDER", value="endpoint", agree=True)
    refused = api.post("/api/settings", name="EMBEDDER_URL", value=second)
    assert refused.status_code == 400 and second in refused.json()["error"]
    assert agreed_addresses(api.layout, first, second) == [first]
    insecure = api.post(
        "/api/settings", name="EMBEDDER_URL", value="http://two.example/", agree=True
    )
    assert insecure.status_code == 400 and insecure.json()["field"] == "value"


def agreed_addresses(layout: Layout, *urls: str) -> list[str]:
    return [url for url in urls if has_consent(layout, CONSENT, url)]
