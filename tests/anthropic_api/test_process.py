"""The server as a process: its URL, its report, and its end with its parent's pipe."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.anthropic_api.asking import HEADERS, hello
from tests.anthropic_api.minds import Asked, Decision
from tests.anthropic_api.process import ApiProcess, api_process
from tests.anthropic_api.script import MESSAGES
from tests.anthropic_api.server import KEY


def nod(asked: Asked) -> Decision:
    """A mind that another process can name."""
    return Decision(texts=("I agree.",), thinking_tokens=0)


def post(api: ApiProcess, body: object) -> tuple[int, bytes]:
    """Send one request; HTTPConnection by hand, because `ask` wants a server in this process."""
    connection = api.connect()
    try:
        connection.request("POST", MESSAGES, json.dumps(body).encode(), HEADERS)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def test_process_answers_reports_and_ends(tmp_path: Path) -> None:
    port_file = tmp_path / "port"
    with api_process(
        "--port-file", str(port_file), "--mind", "tests.anthropic_api.test_process:nod"
    ) as api:
        assert api.url == f"http://127.0.0.1:{port_file.read_text(encoding='utf-8')}"
        status, raw = post(api, hello())
        assert (status, json.loads(raw)["content"]) == (200, [{"type": "text", "text": "I agree."}])
        assert post(api, hello(top_k=1))[0] == 400
        report = api.report()
    assert api.process.returncode == 0
    assert report["total_nano_usd"] == 10 * 100 + 3 * 500
    assert [(line["key"], line["requests"]) for line in report["bill"]] == [(KEY, 1)]
    assert report["statuses"] == {"200": 1, "400": 1}
    assert [exchange["error"] for exchange in report["exchanges"]] == [
        None,
        "invalid_request_error",
    ]


def test_process_has_weather() -> None:
    with api_process("--weather", '{"overloaded": 1.0}', "--seed", "3") as api:
        assert post(api, hello())[0] == 529


def test_process_that_cannot_start_says_so(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AssertionError, match="did not start"), api_process("--weather", "{"):
        raise AssertionError(sys.executable)
    assert "invalid loads value" in capfd.readouterr().err
