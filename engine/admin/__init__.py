"""The engine's pages in the admin: set-up, transcripts, reviews and history.

A page shows rows and calls functions of the layers below; it holds no rule of its own.
"""

from __future__ import annotations

from django.contrib import admin

from engine.admin.alerts import AlertAdmin, AlertReaderAdmin
from engine.admin.history import LlmCallAdmin, MessageAdmin, TurnAdmin
from engine.admin.memories import MemoryAdmin
from engine.admin.money import DayCapAdmin, ModelPriceAdmin
from engine.admin.proposals import ProposalAdmin
from engine.admin.queue import OurScheduleAdmin
from engine.admin.runs import RunAdmin
from engine.admin.schedules import RunScheduleAdmin
from engine.admin.simulations import SimulationAdmin

# The admin is the whole site: there is nothing else to view.
admin.site.site_url = None

__all__ = [
    "AlertAdmin",
    "AlertReaderAdmin",
    "DayCapAdmin",
    "LlmCallAdmin",
    "MemoryAdmin",
    "MessageAdmin",
    "ModelPriceAdmin",
    "OurScheduleAdmin",
    "ProposalAdmin",
    "RunAdmin",
    "RunScheduleAdmin",
    "SimulationAdmin",
    "TurnAdmin",
]
