"""The checks of a whole request, in the order in which the server makes them.

Top-level fields: https://platform.claude.com/docs/en/api/messages/create and
https://platform.claude.com/docs/en/api/messages/count_tokens
"""

from __future__ import annotations

from tests.anthropic_api import shapes
from tests.anthropic_api.check_messages import check_messages, check_system
from tests.anthropic_api.check_tools import check_output, check_tools
from tests.anthropic_api.models import Model
from tests.anthropic_api.prompt import check_marks
from tests.anthropic_api.refusal import Json, Refusal, invalid
from tests.anthropic_api.schemas import Complexity

#: https://platform.claude.com/docs/en/api/versioning; the older version is still served.
OLD_VERSION = "2023-06-01"
VERSION = "2026-10-21"
SAMPLING = ("temperature", "top_p", "top_k")
COUNTED = (
    "cache_control",
    "messages",
    "model",
    "output_config",
    "system",
    "thinking",
    "tool_choice",
    "tools",
)
GENERATED = (*COUNTED, "max_tokens", "metadata", "service_tier", "stop_sequences", "stream")
#: The API has them; this server does not.
NOT_REHEARSED = (
    "container",
    "diagnostics",
    "inference_geo",
    "speed",
    "user_profile_id",
    "workspace_id",
)


def check_fields(body: Json, version: str, *, generates: bool) -> None:
    """Check that nothing needed is missing and nothing unknown there, before the model is known."""
    for name in NOT_REHEARSED:
        if name in body:
            raise invalid(name, "is not rehearsed here")
    known = (*GENERATED, *(SAMPLING if version == OLD_VERSION else ())) if generates else COUNTED
    required = ("model", "messages", *(("max_tokens",) if generates else ()))
    shapes.fields(body, "", required=required, optional=known)


def check_body(body: Json, model: Model) -> None:
    """Check everything that a known model and known fields leave to check."""
    complexity = Complexity()
    _check_numbers(body, model)
    _check_small_fields(body)
    _check_thinking(body, model)
    check_output(body, model, complexity)
    check_tools(body, model, complexity)
    complexity.check()
    check_system(body)
    check_messages(body, model)
    check_marks(body)


def _check_numbers(body: Json, model: Model) -> None:
    """With `max_tokens` 0 the prompt is only cached:
    https://platform.claude.com/docs/en/build-with-claude/prompt-caching#pre-warming-the-cache"""
    if "max_tokens" in body:
        shapes.whole(body["max_tokens"], "max_tokens", most=model.max_output_tokens)
    for name in SAMPLING:
        if name in body and not model.samples:
            raise invalid(name, f"{model.id} does not take it")


def _check_small_fields(body: Json) -> None:
    if shapes.flag(body.get("stream", False), "stream"):
        raise invalid("stream", "is not rehearsed here")
    metadata = shapes.fields(
        body.get("metadata", {}), "metadata", required=(), optional=("user_id",)
    )
    if metadata.get("user_id") is not None:
        shapes.text(metadata["user_id"], "metadata.user_id")
    shapes.one_of(body.get("service_tier", "auto"), "service_tier", {"auto", "standard_only"})
    stops = shapes.items(body.get("stop_sequences", []), "stop_sequences")
    for number, value in enumerate(stops):
        shapes.text_with_content(value, f"stop_sequences.{number}")


def _check_thinking(body: Json, model: Model) -> None:
    """https://platform.claude.com/docs/en/build-with-claude/thinking: the models that think by
    themselves take no budget, and some cannot be told to stop."""
    if "thinking" not in body:
        return
    value = body["thinking"]
    kind = value.get("type") if isinstance(value, dict) else None
    kind = shapes.one_of(kind, "thinking.type", {"adaptive", "disabled", "enabled"})
    needed = ("type", "budget_tokens") if kind == "enabled" else ("type",)
    thinking = shapes.fields(value, "thinking", required=needed, optional=("display",))
    if kind == "disabled" and not model.stops_thinking:
        raise invalid("thinking.type", f"{model.id} always thinks")
    if (kind == "adaptive") != model.thinks and kind != "disabled":
        raise invalid("thinking.type", f"{model.id} does not take {kind}")
    if kind == "enabled":
        most = body.get("max_tokens", model.max_output_tokens) - 1
        shapes.whole(thinking["budget_tokens"], "thinking.budget_tokens", least=1024, most=most)


def check_length(tokens: int, model: Model) -> None:
    """https://github.com/boldsoftware/exe.dev/issues/62 has the real one's words."""
    if tokens > model.context_tokens:
        raise Refusal(400, f"prompt is too long: {tokens} tokens > {model.context_tokens} maximum")
