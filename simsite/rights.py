"""Who may do what: four groups of people, and the one table that says what each of them may.

Each `migrate` makes the groups and lets them hold exactly what the table says, so that a new model
is never left out. What somebody may do beyond it belongs into a group of its own.
"""

from __future__ import annotations

from typing import Final

from django.apps import apps

OWNER: Final = "Owner"
OPERATOR: Final = "Operator"
REVIEWER: Final = "Reviewer"
OBSERVER: Final = "Observer"
GROUPS: Final = (OWNER, OPERATOR, REVIEWER, OBSERVER)

GROUP_WORDS: Final = {
    OWNER: "Everything: also people and their rights, prices, and the money of a day.",
    OPERATOR: "Sets up agents, cohorts, simulations and schedules, starts and steers runs, writes "
    "into channels, mends memories.",
    REVIEWER: "Reads everything but prompts, reviews proposals, and writes into channels.",
    OBSERVER: "Reads everything but prompts, people and their mail.",
}

_ALL: Final = "view add change delete"
_MAY: Final[dict[str, dict[str, str]]] = {
    # What everybody may look at, and operators may set up.
    "cohorts.agent": {OPERATOR: _ALL},
    "cohorts.cohort": {OPERATOR: _ALL},
    "cohorts.membership": {OPERATOR: _ALL},
    "engine.simulation": {OPERATOR: _ALL},
    "engine.rosterentry": {OPERATOR: _ALL},
    "engine.channel": {OPERATOR: _ALL},
    "engine.channelmember": {OPERATOR: _ALL},
    "engine.subscription": {OPERATOR: _ALL},
    "engine.runschedule": {OPERATOR: _ALL},
    "engine.run": {OPERATOR: "view add"},
    "engine.runcontrol": {OPERATOR: "view change"},
    # What people say and decide.
    "engine.message": {OPERATOR: "view add", REVIEWER: "view add"},
    "engine.proposal": {REVIEWER: "view change"},
    "engine.memory": {OPERATOR: "view change"},
    # History: everybody may look.
    "cohorts.agentversion": {},
    "cohorts.topologyversion": {},
    "cohorts.topologychange": {},
    "engine.houserules": {},
    "engine.runlease": {},
    "engine.turn": {},
    "engine.llmcall": {},
    "engine.topologysnapshot": {},
    "engine.occasion": {},
    "engine.alert": {},
    "engine.workerbeat": {},
    "engine.agentstate": {},
    "engine.invitation": {},
    "engine.inbox": {},
    "engine.modelprice": {},
    "engine.daycap": {},
    "engine.purse": {},
    "engine.thread": {},
    "engine.decision": {},
    "engine.ticket": {},
}
"""What the groups may do with the rows of a model, beyond looking, which all of them may."""
_FOR_SOME: Final[dict[str, dict[str, str]]] = {
    # Prompts hold private instructions; acts and mail are about people.
    "engine.calltext": {OPERATOR: "view"},
    "admin.logentry": {OPERATOR: "view"},
    "engine.alertreader": {},
    "engine.alertmail": {},
    "auth.user": {},
    "auth.group": {},
}
"""The same for models that not everybody may look at."""
NOT_FOR_GROUPS: Final = frozenset({"auth", "contenttypes", "sessions", "django_q"})
"""Applications whose other models are for superusers alone."""


def rights_of(group: str) -> frozenset[str]:
    """Return the rights of a group as `app.action_model`."""
    found: set[str] = set()
    for table, everybody in ((_MAY, "view"), (_FOR_SOME, "")):
        for label, may in table.items():
            app, model = label.split(".")
            actions = _ALL if group == OWNER else may.get(group, everybody)
            found |= {f"{app}.{action}_{model}" for action in actions.split()}
    return frozenset(found)


def models_without_rights() -> list[str]:
    """Return the models that the table forgets."""
    labels = {
        model._meta.label_lower
        for model in apps.get_models()
        if model._meta.app_label not in NOT_FOR_GROUPS
    }
    return sorted(labels - _MAY.keys() - _FOR_SOME.keys())
