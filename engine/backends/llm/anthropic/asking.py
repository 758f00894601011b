"""A prompt as a request to the Messages API.

Structured output (`output_config.format`) and not a forced tool: some models refuse to be forced,
and what is forced cannot look anything up first. No sampling parameters: the API takes none.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from engine.core.tokens import upper_tokens
from engine.prompts import limits_of, prompt_of, show_found

if TYPE_CHECKING:
    from engine.ports.llm import LlmRequest, Round
    from engine.prompts import Prompt

_MARK = {"type": "ephemeral"}
#: Families that take no `effort`: https://platform.claude.com/docs/en/build-with-claude/effort
_WITHOUT_EFFORT = (
    "claude-3",
    "claude-haiku-4",
    "claude-opus-4-0",
    "claude-opus-4-1",
    "claude-opus-4-2025",
    "claude-sonnet-4-0",
    "claude-sonnet-4-2025",
    "claude-sonnet-4-5",
)


def body_of(request: LlmRequest, effort: str = "") -> dict[str, Any]:
    """Return the arguments of `messages.create`; `effort` is how hard the model is to think.

    Everything up to a mark is the same as at the calls before, byte for byte; see `Prompt`.
    """
    prompt = prompt_of(request)
    system = (prompt.rules, prompt.agent, prompt.memory)
    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": prompt.max_tokens,
        "system": [_text(text, marked=True) for text in system if text],
        "messages": [{"role": "user", "content": _asked(prompt)}, *_rounds(request)],
        "output_config": {"format": {"type": "json_schema", "schema": prompt.schema}},
    }
    if effort and not request.model.startswith(_WITHOUT_EFFORT):
        body["output_config"]["effort"] = effort
    if prompt.tools:
        body["tools"] = [
            {
                "name": tool.name,
                "description": tool.description,
                "input_schema": tool.schema,
                "strict": True,
            }
            for tool in prompt.tools
        ]
        if not request.may_look_up:
            body["tool_choice"] = {"type": "none"}
    return body


def most_tokens(request: LlmRequest) -> tuple[int, int]:
    """Return bounds on the tokens of a request and of its answer."""
    prompt = prompt_of(request)
    rounds = (
        json.dumps(block, ensure_ascii=False)
        for message in _rounds(request)
        for block in message["content"]
    )
    return upper_tokens((*prompt.texts(), *rounds)), prompt.max_tokens


def _asked(prompt: Prompt) -> list[dict[str, Any]]:
    n_talk = len(prompt.talk)
    talk = [_text(block, marked=n == n_talk) for n, block in enumerate(prompt.talk, start=1)]
    return [*talk, _text(prompt.now, marked=False)]


def _text(text: str, *, marked: bool) -> dict[str, Any]:
    block = {"type": "text", "text": text}
    return {**block, "cache_control": _MARK} if marked else block


def _rounds(request: LlmRequest) -> list[dict[str, Any]]:
    return [message for one in request.rounds for message in _round(request, one)]


def _round(request: LlmRequest, one: Round) -> list[dict[str, Any]]:
    """Return what the model said, as it came, and what was found, in the order of its wishes."""
    said: list[dict[str, Any]] = json.loads(one.asked.said)
    uses = [block for block in said if block["type"] == "tool_use"]
    results = [
        {
            "type": "tool_result",
            "tool_use_id": use["id"],
            "content": show_found(found, request.context.persona, limits_of(request)),
        }
        for use, found in zip(uses, one.found, strict=True)
    ]
    return [{"role": "assistant", "content": said}, {"role": "user", "content": results}]
