"""Proposals: the list, those that wait first, and the page to review one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin
from django.db.models import Case, When
from django.http import HttpResponseNotAllowed, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils import timezone

from engine.admin.pages import HistoryAdmin, badge, frame, person_of, seconds_in_words
from engine.admin.review.inbox import BatchForm, BoxFilter, assign, put_off, review_batch
from engine.admin.review.rests import rests_on
from engine.admin.talk.writing import may_read, may_review, review
from engine.admin.text import render_text
from engine.models import Proposal

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse
    from django.urls import URLPattern
    from django.utils.safestring import SafeString

STATE_WORDS = {
    "pending": "waits for review",
    "accepted": "accepted",
    "declined": "declined",
    "revised": "revision asked for",
}
_WAITS_FIRST = Case(When(state=Proposal.State.PENDING, then=0), default=1).asc()


@admin.register(Proposal)
class ProposalAdmin(HistoryAdmin):
    list_display = (
        "title",
        "state_word",
        "simulation",
        "proposed_at",
        "waits_for",
        "assigned_to",
        "snoozed_until",
        "reviewed_by",
    )
    list_filter = (BoxFilter, "state", "simulation")
    action_form = BatchForm
    actions = ("accept", "decline", "take", "hand_back", "put_off_a_day", "put_off_a_week", "wake")
    list_select_related = ("simulation", "proposer", "confirmer")
    search_fields = ("=proposer__slug", "=confirmer__slug")
    search_help_text = "The id of one of the two agents."
    ordering = (_WAITS_FIRST, "proposed_at", "pk")
    empty_hint = "No proposal yet: agents make them at the end of a thread, during a run."

    @admin.display(description="proposal")
    def title(self, proposal: Proposal) -> str:
        return f"{proposal.proposer.slug} and {proposal.confirmer.slug}"

    @admin.display(description="state")
    def state_word(self, proposal: Proposal) -> SafeString:
        return badge(proposal.state, STATE_WORDS[proposal.state])

    @admin.display(description="waits")
    def waits_for(self, proposal: Proposal) -> str:
        if proposal.state != Proposal.State.PENDING:
            return "–"
        return seconds_in_words((timezone.now() - proposal.proposed_at).total_seconds())

    def has_review_permission(self, request: HttpRequest) -> bool:
        return may_review(request)

    @admin.action(description="Accept", permissions=["review"])
    def accept(self, request: HttpRequest, chosen: QuerySet[Proposal]) -> None:
        review_batch(self, request, chosen, "accepted")

    @admin.action(description="Decline", permissions=["review"])
    def decline(self, request: HttpRequest, chosen: QuerySet[Proposal]) -> None:
        review_batch(self, request, chosen, "declined")

    @admin.action(description="I look after them", permissions=["review"])
    def take(self, request: HttpRequest, chosen: QuerySet[Proposal]) -> None:
        assign(request, chosen, person=person_of(request))

    @admin.action(description="Nobody in particular looks after them", permissions=["review"])
    def hand_back(self, request: HttpRequest, chosen: QuerySet[Proposal]) -> None:
        assign(request, chosen, person="")

    @admin.action(description="Put off for a day", permissions=["review"])
    def put_off_a_day(self, request: HttpRequest, chosen: QuerySet[Proposal]) -> None:
        put_off(request, chosen, days=1)

    @admin.action(description="Put off for a week", permissions=["review"])
    def put_off_a_week(self, request: HttpRequest, chosen: QuerySet[Proposal]) -> None:
        put_off(request, chosen, days=7)

    @admin.action(description="Back into the inbox", permissions=["review"])
    def wake(self, request: HttpRequest, chosen: QuerySet[Proposal]) -> None:
        put_off(request, chosen, days=0)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.review_view)
        own = path("<int:proposal_id>/review/", view, name="engine_proposal_review")
        return [own, *super().get_urls()]

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, object] | None = None,
    ) -> HttpResponse:
        """Show a proposal with the form to review it."""
        proposal = self.find(request, object_id)
        context = frame(
            self,
            request,
            f"Proposal of {self.title(proposal)}",
            proposal=proposal,
            html=render_text(proposal.summary.text),
            may_read=may_read(request),
            rests_on=rests_on(proposal),
            may_review=may_review(request),
        )
        return TemplateResponse(request, "admin/engine/proposal.html", context)

    def review_view(self, request: HttpRequest, proposal_id: int) -> HttpResponse:
        """Carry out a review and lead back to where its form was."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        proposal = get_object_or_404(Proposal, pk=proposal_id)
        if review(request, proposal):
            self.log_change(request, proposal, f"Reviewed: {proposal.state}.")
        if "from_thread" in request.POST:
            keys = [proposal.simulation_id, proposal.thread_id]
            return HttpResponseRedirect(reverse("admin:engine_thread", args=keys))
        return HttpResponseRedirect(reverse("admin:engine_proposal_change", args=[proposal.pk]))
