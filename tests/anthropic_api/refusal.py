"""What the server says no with.

Status codes, kinds and the form of the body: https://platform.claude.com/docs/en/api/errors
"""

from __future__ import annotations

import json
from typing import Any

Json = dict[str, Any]

KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    502: "api_error",
    503: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}


class Refusal(Exception):
    """A request that is not answered, and not billed."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


def invalid(where: str, why: str) -> Refusal:
    """The refusal of a request by its form; `where` is a path such as `messages.0.content`."""
    return Refusal(400, f"{where}: {why}")


def error_body(status: int, message: str, request_id: str) -> bytes:
    """Return the body of every error, with the kind that belongs to `status`."""
    error = {"type": KINDS[status], "message": message}
    return json.dumps({"type": "error", "error": error, "request_id": request_id}).encode()
