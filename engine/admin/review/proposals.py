"""Proposals: the list, those that wait first, and the page to review one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin
from django.db.models import Case, When
from django.http import HttpResponseNotAllowed, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import path, reverse

from engine.admin.pages import HistoryAdmin, badge, frame
from engine.admin.talk.writing import may_read, may_review, review
from engine.admin.text import render_text
from engine.models import Proposal

if TYPE_CHECKING:
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
    list_display = ("title", "state_word", "simulation", "proposed_at", "reviewed_by")
    list_filter = ("state", "simulation")
    list_select_related = ("simulation", "proposer", "confirmer")
    search_fields = ("=proposer__slug", "=confirmer__slug")
    search_help_text = "The id of one of the two agents."
    ordering = (_WAITS_FIRST, "-pk")
    empty_hint = "No proposal yet: agents make them at the end of a thread, during a run."

    @admin.display(description="proposal")
    def title(self, proposal: Proposal) -> str:
        return f"{proposal.proposer.slug} and {proposal.confirmer.slug}"

    @admin.display(description="state")
    def state_word(self, proposal: Proposal) -> SafeString:
        return badge(proposal.state, STATE_WORDS[proposal.state])

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
            may_review=may_review(request),
        )
        return TemplateResponse(request, "admin/engine/proposal.html", context)

    def review_view(self, request: HttpRequest, proposal_id: int) -> HttpResponse:
        """Carry out a review and lead back to where its form was."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        proposal = get_object_or_404(Proposal, pk=proposal_id)
        review(request, proposal)
        if "from_thread" in request.POST:
            keys = [proposal.simulation_id, proposal.thread_id]
            return HttpResponseRedirect(reverse("admin:engine_thread", args=keys))
        return HttpResponseRedirect(reverse("admin:engine_proposal_change", args=[proposal.pk]))
