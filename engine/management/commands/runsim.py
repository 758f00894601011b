"""`manage.py runsim`: one run of a simulation, from the terminal to its end."""

from __future__ import annotations

import getpass
import json
import os
import re
from argparse import ArgumentTypeError
from dataclasses import asdict
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.core.management import BaseCommand, CommandError

from cohorts.names import MODEL_LIKE, MODEL_PATTERN
from engine import runs
from engine.build import CHATS, CLOCKS, LLMS, REPLAY
from engine.core.settings import RefusedSetting
from engine.export.summary import summarise
from engine.loop.ending import EndReason
from engine.models import Simulation
from engine.runs.forecast_words import in_words
from engine.runs.progress import progress_for

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from engine.core.config import RunConfig

NANO: Final = 10**9
WRONG_USE: Final = 2
LIVE: Final = 3
PAUSED: Final = 4
_EXITS = {
    EndReason.FAILED: 1,
    EndReason.INTERRUPTED: 1,
    EndReason.MONEY_CAP: PAUSED,
    EndReason.CALL_CAP: PAUSED,
    EndReason.CIRCUIT_OPEN: PAUSED,
    EndReason.PAUSE_REQUESTED: PAUSED,
}
#: The largest number that every database can store.
MOST: Final = 2**63 - 1
_BOUNDS = {
    "seed": (-MOST, MOST),
    "latency": (0, 3600),
    "max_turns": (1, MOST),
    "max_minutes": (0.001, 10**6),
    "max_calls": (1, MOST),
}
_NOT_RESUMED = (
    "channels",
    "llm",
    "small_model",
    "large_model",
    "chat",
    "policy",
    "concurrent_turns",
    "turn_delay",
    "seed",
    "latency",
    "clock",
    "max_turns",
    "max_minutes",
    "until_idle",
)


class Command(BaseCommand):
    """Exit: 0 completed or stopped as asked, 1 failed, 2 wrong use, 3 a live run, 4 paused."""

    help = "Run a simulation from this terminal; Ctrl-C stops it gently, a second one at once."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--simulation", default="main", metavar="NAME")
        begin = parser.add_mutually_exclusive_group()
        begin.add_argument("--fresh", action="store_true", help="start an empty world")
        begin.add_argument("--resume", action="store_true", help="go on with a paused run")
        parser.add_argument("--channels", default="", metavar="A,B", help="make these if missing")
        parser.add_argument("--llm", type=_llm, metavar=f"{'|'.join(LLMS)}|{REPLAY}RUN")
        parser.add_argument("--small-model", metavar="M", help="for sorting and remembering")
        parser.add_argument("--large-model", metavar="M", help="for replies and posts")
        parser.add_argument("--chat", choices=CHATS)
        parser.add_argument("--policy", choices=[str(one) for one in Simulation.Policy.values])
        parser.add_argument("--concurrent-turns", type=int, metavar="N")
        parser.add_argument("--turn-delay", type=float, metavar="S")
        parser.add_argument("--seed", type=int, metavar="N")
        parser.add_argument("--latency", type=float, metavar="S")
        parser.add_argument("--clock", choices=CLOCKS)
        parser.add_argument("--max-turns", type=int, metavar="N")
        parser.add_argument("--max-minutes", type=float, metavar="M")
        parser.add_argument("--max-calls", type=int, metavar="N")
        parser.add_argument("--max-usd", metavar="X")
        parser.add_argument("--until-idle", action="store_true", help="end when nothing is left")
        parser.add_argument(
            "--estimate", action="store_true", help="tell what it would take, and start nothing"
        )
        parser.add_argument("--json", action="store_true", help="print the summary on stdout")
        parser.add_argument("--quiet", action="store_true", help="no progress on stderr")

    def handle(self, **options: Any) -> None:
        if options["estimate"]:
            self._estimate(options)
            return
        with runs.Stops() as stops:
            begun = _begun(options)
            observer = progress_for(self.stderr, quiet=options["quiet"])
            try:
                driven = runs.drive(begun, observer, stops)
            except runs.EndUnwritten as error:
                raise CommandError(str(error)) from error
        self._report(driven, as_json=options["json"])
        code = _EXITS.get(driven.ending.reason, 0)
        if code:
            raise SystemExit(code)

    def _estimate(self, options: dict[str, Any]) -> None:
        """Print what the run would take; nothing is written, and no model is asked."""
        try:
            simulation, config = _planned(options)
        except (runs.RunRefused, RefusedSetting) as error:
            raise CommandError(str(error), returncode=WRONG_USE) from error
        told = runs.forecast(simulation, config)
        if options["json"]:
            self.stdout.write(json.dumps(asdict(told)))
        else:
            self.stdout.write("\n".join(in_words(simulation.name, told)))

    def _report(self, driven: runs.Driven, *, as_json: bool) -> None:
        if as_json:
            if driven.ending.sentence:
                self.stderr.write(driven.ending.sentence)
            self.stdout.write(json.dumps(summarise(driven.run_id)))
        else:
            self.stdout.write(runs.report(driven.run_id))


def _begun(options: dict[str, Any]) -> runs.Begun:
    """Return the run that was asked for, or refuse it with the exit code of its reason."""
    try:
        return _resume(options) if options["resume"] else _begin(options)
    except runs.RunIsLive as error:
        raise CommandError(str(error), returncode=LIVE) from error
    except (runs.RunRefused, RefusedSetting) as error:
        raise CommandError(str(error), returncode=WRONG_USE) from error


def _begin(options: dict[str, Any]) -> runs.Begun:
    """Check everything that was asked, then begin; nothing is written for a wrong word."""
    _check_numbers(options)
    name = options["simulation"]
    channels = [channel.strip() for channel in options["channels"].split(",") if channel.strip()]
    config = _configuration(options, Simulation.objects.filter(name=name).first())
    return runs.begin_named(
        name, config, channels=channels, fresh=options["fresh"], who=person_here()
    )


def _planned(options: dict[str, Any]) -> tuple[Simulation, RunConfig]:
    """Return the simulation and the configuration of a run that is only asked about."""
    _check_numbers(options)
    name = options["simulation"]
    simulation = Simulation.objects.filter(name=name).first()
    if simulation is None:
        raise runs.RunRefused(
            f'There is no simulation "{name}" to estimate a run of: make it first.'
        )
    if options["fresh"] or options["resume"]:
        raise runs.RunRefused("--estimate is for the next run: leave out --fresh and --resume.")
    return simulation, _configuration(options, simulation)


def _resume(options: dict[str, Any]) -> runs.Begun:
    _check_numbers(options)
    for name in _NOT_RESUMED:
        value = options[name]
        if value is not None and value is not False and value != "":
            flag = name.replace("_", "-")
            raise runs.RunRefused(
                f"--resume goes on with the run's stored settings: leave out --{flag}."
            )
    simulation = Simulation.objects.filter(name=options["simulation"]).first()
    if simulation is None:
        raise runs.RunRefused(f'There is no simulation "{options["simulation"]}".')
    return runs.resume(
        simulation,
        max_calls=options["max_calls"],
        max_nano_usd=nano_usd_of(options["max_usd"]),
    )


def _llm(word: str) -> str:
    if word in LLMS or word.startswith(REPLAY):
        return word
    raise ArgumentTypeError(f"there is no {word}, but {', '.join(LLMS)}, and {REPLAY}RUN")


def _configuration(options: dict[str, Any], stored: Simulation | None) -> RunConfig:
    if (options["llm"] or "").startswith(REPLAY):
        return runs.replayed(options["llm"], _asked_of_a_replay(options))
    asked = {
        "concurrent_turns": options["concurrent_turns"],
        "turn_delay_seconds": options["turn_delay"],
        "policy": options["policy"],
        **_models(options),
        "chat": options["chat"],
        "clock": options["clock"],
        "seed": options["seed"],
        "latency_seconds": options["latency"],
        "until_idle": options["until_idle"],
        "max_turns": options["max_turns"],
        "max_minutes": options["max_minutes"],
        "max_calls": options["max_calls"],
        "max_nano_usd": nano_usd_of(options["max_usd"]),
    }
    return runs.configured(stored, asked)


def _asked_of_a_replay(options: dict[str, Any]) -> dict[str, Any]:
    """Return what is to be other than it was in the recorded run."""
    for name in ("small_model", "large_model", "max_usd"):
        if options[name] is not None:
            flag = name.replace("_", "-")
            raise RefusedSetting(f"A replay asks no model and costs nothing: leave out --{flag}.")
    asked = {
        "policy": options["policy"],
        "chat": options["chat"],
        "clock": options["clock"],
        "seed": options["seed"],
        "concurrent_turns": options["concurrent_turns"],
        "turn_delay_seconds": options["turn_delay"],
        "until_idle": options["until_idle"] or None,
        "max_turns": options["max_turns"],
        "max_minutes": options["max_minutes"],
        "max_calls": options["max_calls"],
    }
    return {name: value for name, value in asked.items() if value is not None}


def _models(options: dict[str, Any]) -> dict[str, str]:
    """Return which LLM is asked, and the models that were named for it."""
    llm = options["llm"] or settings.SIM_LLM
    asked = {name: options[name] for name in ("small_model", "large_model") if options[name]}
    for name, model in asked.items():
        flag = name.replace("_", "-")
        if llm == "offline":
            raise RefusedSetting(f"The offline LLM is no model of a choice: leave out --{flag}.")
        if not re.search(MODEL_PATTERN, model):
            raise RefusedSetting(f'--{flag} is "{model}": it must be {MODEL_LIKE}.')
    return {"llm": llm, **asked}


def _check_numbers(options: dict[str, Any]) -> None:
    """Refuse numbers that would end a run before its first turn, or that no column holds."""
    for name, (lowest, highest) in _BOUNDS.items():
        value = options[name]
        if value is not None and not lowest <= value <= highest:
            flag = name.replace("_", "-")
            raise RefusedSetting(f"--{flag} is {value}: give a number from {lowest} to {highest}.")


def nano_usd_of(text: str | None) -> int | None:
    """Return dollars as whole nano-dollars."""
    if text is None:
        return None
    try:
        usd = Decimal(text)
    except InvalidOperation:
        usd = Decimal(-1)
    if not usd.is_finite() or not 1 <= usd * NANO <= MOST:
        raise RefusedSetting(f'--max-usd is "{text}": give an amount above 0, like 2.50.')
    return int(usd * NANO)


def person_here() -> str:
    """Return the name of the person at the terminal; a container's user may have none."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"
