"""The rows of the engine, one file for each part of the world."""

from __future__ import annotations

from engine.models.alerts import Alert, AlertMail, AlertReader, WorkerBeat
from engine.models.desks import AgentState, Inbox, Invitation, Memory
from engine.models.messages import Message
from engine.models.money import DayCap, ModelPrice, Purse
from engine.models.runs import (
    CallText,
    LlmCall,
    Run,
    RunControl,
    RunLease,
    TopologySnapshot,
    Turn,
)
from engine.models.schedules import Occasion, RunSchedule
from engine.models.simulation import (
    Channel,
    ChannelMember,
    HouseRules,
    RosterEntry,
    Simulation,
    Subscription,
)
from engine.models.threads import Decision, Proposal, Thread
from engine.models.tickets import Ticket

__all__ = [
    "AgentState",
    "Alert",
    "AlertMail",
    "AlertReader",
    "CallText",
    "Channel",
    "ChannelMember",
    "DayCap",
    "Decision",
    "HouseRules",
    "Inbox",
    "Invitation",
    "LlmCall",
    "Memory",
    "Message",
    "ModelPrice",
    "Occasion",
    "Proposal",
    "Purse",
    "RosterEntry",
    "Run",
    "RunControl",
    "RunLease",
    "RunSchedule",
    "Simulation",
    "Subscription",
    "Thread",
    "Ticket",
    "TopologySnapshot",
    "Turn",
    "WorkerBeat",
]
