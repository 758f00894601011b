"""Tells people of what they should know without asking, once for each event.

`look` finds events and stores an alert for each, with the mails that it needs; `send_mails` sends
what waits. Both are called again and again, by as many processes as there are: a key that is unique
in the database makes an alert of an event once, and a mail is sent by who could mark it first.
"""

from __future__ import annotations

from engine.alerts.looking import look
from engine.alerts.mailing import send_mails

__all__ = ["look", "send_mails"]
