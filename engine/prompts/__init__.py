"""What a model is shown, and what its answer means: pure functions over the contexts of the port.

The words are in the `.md` files beside this one. `render` makes a prompt of a context,
`read_answer` a decision of an answer; neither knows which service is asked.
"""

from engine.prompts.answers import RawAnswer, read_answer
from engine.prompts.asked import asked_of, limits_of, prompt_of
from engine.prompts.found import show_found
from engine.prompts.limits import LIMITS, Limits
from engine.prompts.prompt import Prompt
from engine.prompts.rendering import PROMPT_VERSION, render

__all__ = [
    "LIMITS",
    "PROMPT_VERSION",
    "Limits",
    "Prompt",
    "RawAnswer",
    "asked_of",
    "limits_of",
    "prompt_of",
    "read_answer",
    "render",
    "show_found",
]
