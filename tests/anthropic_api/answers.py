"""Makes a message of a decision: its blocks within `max_tokens`, and how many tokens they are.

The stated count: a text or the JSON of a tool's input has one token for every three bytes of
UTF-8, rounded up per block; a model that thinks by itself spends sixteen first. No answer has none,
even an empty one, but where `max_tokens` is 0.
https://platform.claude.com/docs/en/build-with-claude/handling-stop-reasons
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.anthropic_api.check_messages import signature
from tests.anthropic_api.minds import Asked, Decision
from tests.anthropic_api.prompt import BYTES_PER_TOKEN, compact, tokens_of
from tests.anthropic_api.refusal import Json

THINKING_TOKENS = 16


@dataclass(slots=True, kw_only=True)
class Answer:
    """A message in the making. `left`: what remains of `max_tokens`."""

    left: int
    blocks: list[Json] = field(default_factory=list)
    thinking_tokens: int = 0
    output_tokens: int = 0
    is_cut: bool = False

    def _spend(self, tokens: int) -> int:
        spent = min(tokens, self.left)
        self.is_cut |= spent < tokens
        self.left -= spent
        self.output_tokens += spent
        return spent

    def think(self, tokens: int) -> None:
        """Add a block of thinking that does not show what was thought."""
        self.thinking_tokens = self._spend(tokens)
        self.blocks.append({"type": "thinking", "thinking": "", "signature": signature("")})

    def say(self, text: str) -> None:
        """Add a text, or as much of it as fits."""
        data = text.encode()
        n_bytes = self._spend(tokens_of(data)) * BYTES_PER_TOKEN
        self.blocks.append({"type": "text", "text": data[:n_bytes].decode(errors="ignore")})

    def use(self, name: str, value: object, use_id: str) -> None:
        """Add a use of a tool; what does not fit loses its input."""
        tokens = tokens_of(compact(value))
        whole = self._spend(tokens) == tokens
        block = {"type": "tool_use", "id": use_id, "name": name, "input": value if whole else {}}
        self.blocks.append(block)


def answer_to(asked: Asked, decision: Decision) -> Answer:
    """Return the blocks that the decision makes, in order, until `max_tokens` are spent."""
    answer = Answer(left=asked.body["max_tokens"])
    if thinking := _thinking_tokens(asked, decision):
        answer.think(thinking)
    for text in decision.texts:
        if not answer.is_cut:
            answer.say(text)
    for number, call in enumerate(decision.calls):
        if not answer.is_cut:
            answer.use(call.name, call.input, f"toolu_{asked.number:06}_{number}")
    if asked.body["max_tokens"] == 0:
        answer.blocks = []
        answer.is_cut = True
    answer.output_tokens = max(answer.output_tokens, min(1, asked.body["max_tokens"]))
    return answer


def _thinking_tokens(asked: Asked, decision: Decision) -> int:
    """Thinking is asked for by name, or goes on by itself."""
    if decision.thinking_tokens is not None:
        return decision.thinking_tokens
    default = "adaptive" if asked.model.thinks else "disabled"
    kind = asked.body.get("thinking", {"type": default})["type"]
    return 0 if kind == "disabled" else THINKING_TOKENS


def message(asked: Asked, decision: Decision, answer: Answer, usage: Json) -> Json:
    """Return the body of a whole answer."""
    stop_reason = decision.stop_reason or ("tool_use" if decision.calls else "end_turn")
    refusal = {"type": "refusal", "category": decision.category, "explanation": None}
    return {
        "id": f"msg_{asked.number:06}",
        "type": "message",
        "role": "assistant",
        "model": asked.model.id,
        "content": answer.blocks,
        "stop_reason": "max_tokens" if answer.is_cut else stop_reason,
        "stop_sequence": None,
        "stop_details": refusal if stop_reason == "refusal" else None,
        "usage": usage,
    }
