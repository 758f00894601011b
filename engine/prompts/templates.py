"""The `.md` files beside this one, read once: the only words that are the same for everybody."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from string import Template

from engine.ports.llm import LlmPhase
from engine.prompts.forms import FORMS, TOOLS

_FOLDER = Path(__file__).parent
_PART = re.compile(r"^<!-- (talk|now) -->\n", re.MULTILINE)
_GAP = re.compile(r"\n{3,}")
_FILES = {file.stem: file.read_text(encoding="utf-8") for file in sorted(_FOLDER.glob("*.md"))}


@dataclass(frozen=True, slots=True)
class Words:
    """A text with gaps; what fills a gap is never looked through for further gaps."""

    template: str

    def filled(self, **values: str | int) -> str:
        """Return the text with every gap filled; more than one blank line in a row becomes one."""
        return _GAP.sub("\n\n", Template(self.template).substitute(values)).lstrip("\n")


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseWords:
    """What a phase says: the task, which is always the same; what grows with a talk; what is now."""

    task: str
    talk: Words
    now: Words


def _phase_words(phase: LlmPhase) -> PhaseWords:
    task, *rest = _PART.split(_FILES[phase])
    parts = dict(zip(rest[::2], rest[1::2], strict=True))
    return PhaseWords(task=task, talk=Words(parts.get("talk", "")), now=Words(parts["now"]))


def _version() -> str:
    shown = {
        "files": _FILES,
        "forms": {str(phase): form for phase, form in FORMS.items()},
        "tools": [[tool.name, tool.description, tool.schema] for tool in TOOLS],
    }
    return hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()[:12]


RULES = _FILES["rules"]
AGENT = Words(_FILES["agent"])
MEMORY = Words(_FILES["memory"])
HOUSE = Words(_FILES["house"])
PHASES = {phase: _phase_words(phase) for phase in LlmPhase}
PROMPT_VERSION = _version()
