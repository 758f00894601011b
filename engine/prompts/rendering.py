"""A context becomes a prompt: the same bytes for the same context, whatever the time or the call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from engine.ports.llm import (
    LlmPhase,
    PostContext,
    PruneContext,
    RememberContext,
    ReplyContext,
    ScanContext,
)
from engine.prompts.chances import post_values
from engine.prompts.forms import FORMS, MAX_TOKENS, TOOLS
from engine.prompts.limits import LIMITS
from engine.prompts.lists import prune_values, remember_values, scan_values
from engine.prompts.marks import marked
from engine.prompts.prompt import Prompt
from engine.prompts.talks import now_values, talk
from engine.prompts.templates import AGENT, HOUSE, MEMORY, PHASES, PROMPT_VERSION, RULES

if TYPE_CHECKING:
    from engine.ports.llm import Context, Persona
    from engine.prompts.limits import Limits

__all__ = ["PROMPT_VERSION", "render"]


def render(context: Context, limits: Limits = LIMITS) -> Prompt:
    """Return the prompt of a context; nothing in it depends on anything else."""
    match context:
        case ScanContext():
            return _prompt(LlmPhase.SCAN, context, limits, context.memory)
        case PruneContext():
            return _prompt(LlmPhase.PRUNE, context, limits, "")
        case ReplyContext():
            return _prompt(LlmPhase.REPLY, context, limits, context.memory)
        case PostContext():
            return _prompt(LlmPhase.POST, context, limits, context.memory)
        case RememberContext():
            return _prompt(LlmPhase.REMEMBER, context, limits, "")  # it is what is asked about


def _prompt(phase: LlmPhase, context: Context, limits: Limits, memory: str) -> Prompt:
    words = PHASES[phase]
    return Prompt(
        rules=_rules(words.task, context.persona, limits),
        agent=_agent(context.persona, limits),
        memory=_memory(memory, limits),
        talk=talk(context, words.talk, limits) if isinstance(context, ReplyContext) else (),
        now=words.now.filled(**_now(context, limits)),
        schema=FORMS[phase],
        max_tokens=MAX_TOKENS[phase],
        tools=TOOLS if phase is LlmPhase.REPLY else (),
    )


def _now(context: Context, limits: Limits) -> dict[str, str | int]:
    match context:
        case ScanContext():
            return scan_values(context, limits)
        case PruneContext():
            return prune_values(context, limits)
        case ReplyContext():
            return now_values(context, limits)
        case PostContext():
            return post_values(context, limits)
        case RememberContext():
            return remember_values(context, limits)


def _rules(task: str, persona: Persona, limits: Limits) -> str:
    """Return what is the same for every agent: our rules, the task, and the house rules."""
    text = persona.house_rules
    house = marked("house-rules", text, limits.house_rules) if text.strip() else ""
    parts = (RULES, task, HOUSE.filled(house_rules=house) if house else "")
    return "\n".join(part for part in parts if part)


def _agent(persona: Persona, limits: Limits) -> str:
    """Return whom the model speaks for."""
    about = {"name": persona.bot_name, "speaks-for": persona.represents}
    return AGENT.filled(
        you=marked("you", "", 0, about),
        profile=marked("profile", persona.public_profile, limits.own),
        instructions=marked("instructions", persona.private_instructions, limits.own),
    )


def _memory(memory: str, limits: Limits) -> str:
    if not memory.strip():
        return ""
    return MEMORY.filled(memory=marked("memory", memory, limits.memory))
