"""The engine's pages in the admin: set-up, transcripts, reviews and history.

A page shows rows and calls functions of the layers below; it holds no rule of its own.
"""

from __future__ import annotations

from engine.admin.agent.agents import AgentAdmin, AgentVersionAdmin
from engine.admin.agent.memories import MemoryAdmin
from engine.admin.alerts import AlertAdmin, AlertReaderAdmin
from engine.admin.money import DayCapAdmin, ModelPriceAdmin
from engine.admin.report.history import LlmCallAdmin, MessageAdmin, TurnAdmin
from engine.admin.report.runs import RunAdmin
from engine.admin.review.proposals import ProposalAdmin
from engine.admin.schedule.queue import OurScheduleAdmin
from engine.admin.schedule.schedules import RunScheduleAdmin
from engine.admin.setup.simulations import SimulationAdmin
from engine.admin.topology.cohorts import CohortAdmin, TopologyChangeAdmin

__all__ = [
    "AgentAdmin",
    "AgentVersionAdmin",
    "AlertAdmin",
    "AlertReaderAdmin",
    "CohortAdmin",
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
    "TopologyChangeAdmin",
    "TurnAdmin",
]
