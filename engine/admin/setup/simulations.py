"""Simulations in the admin: set-up, channels, roster, and the way to transcripts and runs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count
from django.shortcuts import get_object_or_404
from django.urls import path, reverse
from django.utils.html import format_html

from cohorts.models import Agent
from engine import simulations
from engine.admin.keep.page import keep_view
from engine.admin.pages import HistoryAdmin, ReadOnly, frame, person_of
from engine.admin.setup.forms import ChannelForm, SimulationForm
from engine.admin.setup.picking import Group, change_group, show_group
from engine.admin.setup.settings import GROUPS
from engine.admin.start.page import start_view
from engine.admin.talk import channel_page, thread_page
from engine.admin.talk.search import search_view
from engine.admin.topology.asking import ask
from engine.admin.topology.urls import topology_urls
from engine.foresee import Edit
from engine.models import Channel, HouseRules, Simulation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db import models
    from django.db.models import QuerySet
    from django.forms import ModelForm
    from django.http import HttpRequest, HttpResponse
    from django.urls import URLPattern

_NOT_CHOSEN = (
    "All active agents take part now. This list counts once the simulation is set to “Only the "
    "agents that you choose”."
)
_PRIVATE = "The members of a private channel deal with each other there, whatever their cohorts."
_FORWARD_ONLY = "An agent that joins starts at the newest message: it does not go through old ones."


class ChannelInline(admin.StackedInline):  # type: ignore[type-arg]
    model = Channel
    form = ChannelForm
    extra = 1
    can_delete = False
    fields = (("name", "visibility", "members_link"), "topic")
    readonly_fields = ("members_link",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Channel]:
        rows: QuerySet[Channel] = super().get_queryset(request)
        return rows.annotate(n_members=Count("channel_members"))

    @admin.display(description="members")
    def members_link(self, channel: Channel) -> str:
        if not channel.name:  # the empty row for a new one
            return "after saving"
        if channel.visibility == Channel.Visibility.PUBLIC:
            return "everybody"
        url = reverse("admin:engine_channel_members", args=[channel.simulation_id, channel.pk])
        n_members = channel.n_members  # type: ignore[attr-defined]
        return format_html('<a href="{}">{} (add, remove)</a>', url, n_members)


class HouseRulesInline(ReadOnly, admin.TabularInline):  # type: ignore[type-arg]
    model = HouseRules
    fields = readonly_fields = ("number", "saved_at", "saved_by")
    show_change_link = True
    ordering = ("-number",)
    verbose_name_plural = "versions of the house rules"


@admin.register(HouseRules)
class HouseRulesAdmin(HistoryAdmin):
    list_display = ("simulation", "number", "saved_at", "saved_by")
    list_select_related = ("simulation",)
    search_fields = ("=simulation__name",)
    search_help_text = "The name of a simulation."
    empty_hint = "No house rules yet. They are written on the page of a simulation."


@admin.register(Simulation)
class SimulationAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    form = SimulationForm
    inlines = (ChannelInline, HouseRulesInline)
    change_form_template = "admin/engine/simulation.html"
    actions = None
    list_display = ("name", "short_description", "policy_word", "roster_word", "transcript_link")
    search_fields = ("name", "description")
    empty_hint = "No simulation yet. Add one, or load a roster with manage.py loadroster."
    fieldsets: ClassVar[Any] = (
        (None, {"fields": ("name", "description", "house_rules")}),
        (
            "Who deals with whom",
            {
                "fields": ("roster_chosen", "policy"),
                "description": "Agents that share a cohort deal with each other. Under “open”, "
                "taking an agent out of its last cohort frees it to deal with everyone.",
            },
        ),
        *((title, {"fields": names, "classes": ("collapse",)}) for title, names in GROUPS),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Simulation]:
        rows: QuerySet[Simulation] = super().get_queryset(request)
        return rows.annotate(n_chosen=Count("roster_entries"))

    @admin.display(description="description")
    def short_description(self, simulation: Simulation) -> str:
        return simulation.description[:80]

    @admin.display(description="house rules")
    def house_rules(self, simulation: Simulation) -> str:
        """Show the newest text to who may only look."""
        return simulations.house_rules_of(simulation).text

    @admin.display(description="agents in no cohort", ordering="policy")
    def policy_word(self, simulation: Simulation) -> str:
        return simulation.get_policy_display()

    @admin.display(description="roster")
    def roster_word(self, simulation: Simulation) -> str:
        n_chosen = simulation.n_chosen  # type: ignore[attr-defined]
        return f"{n_chosen} chosen" if simulation.roster_chosen else "all active agents"

    @admin.display(description="transcript")
    def transcript_link(self, simulation: Simulation) -> str:
        url = reverse("admin:engine_simulation_talk", args=[simulation.pk])
        return format_html('<a href="{}">read {}</a>', url, simulation.name)

    def get_readonly_fields(
        self, request: HttpRequest, obj: Simulation | None = None
    ) -> tuple[str, ...]:
        return ("name",) if obj else ()

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        """A simulation holds what was said and decided: it stays."""
        return False

    def save_model(
        self,
        request: HttpRequest,
        obj: Simulation,
        form: ModelForm[Simulation],
        change: bool,  # noqa: FBT001 - Django's signature
    ) -> None:
        """Save all but another policy, which waits for a yes to what it would do."""
        if change:
            stored = Simulation.objects.values_list("policy", flat=True).get(pk=obj.pk)
            asked, obj.policy = obj.policy, stored
            if asked != stored:
                request.topology_edit = Edit(policies=((obj.pk, asked),))  # type: ignore[attr-defined]
        simulations.save_simulation(obj)
        simulations.save_house_rules(obj, form.cleaned_data["house_rules"], who=person_of(request))

    def response_change(self, request: HttpRequest, obj: Simulation) -> HttpResponse:
        """Ask about another policy, with the rest saved."""
        edit: Edit | None = getattr(request, "topology_edit", None)
        if edit is None:
            page: HttpResponse = super().response_change(request, obj)
            return page
        messages.info(request, f"The rest of {obj} is saved; its policy waits for your yes.")
        return ask(self, request, edit, back=request.path)

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        channel = "<int:simulation_id>/channels/<int:channel_id>/"
        own = [
            path(
                "<int:simulation_id>/talk/",
                wrap(partial(channel_page.first_channel_view, self)),
                name="engine_simulation_talk",
            ),
            path(
                f"{channel}talk/",
                wrap(partial(channel_page.channel_view, self)),
                name="engine_channel_talk",
            ),
            path(f"{channel}members/", wrap(self.members_view), name="engine_channel_members"),
            path(
                "<int:simulation_id>/threads/<int:root_id>/",
                wrap(partial(thread_page.thread_view, self)),
                name="engine_thread",
            ),
            path("<int:simulation_id>/roster/", wrap(self.roster_view), name="engine_roster"),
        ]
        own += [
            path(f"<int:simulation_id>/{name}/", wrap(partial(view, self)), name=f"engine_{name}")
            for name, view in (("start", start_view), ("search", search_view))
        ]
        own.append(path("keep/", wrap(partial(keep_view, self)), name="engine_keep"))
        return [*own, *topology_urls(self), *super().get_urls()]

    def roster_view(self, request: HttpRequest, simulation_id: int) -> HttpResponse:
        """Show who was chosen for a simulation to who may view it, and change it for who may."""
        simulation = get_object_or_404(Simulation, pk=simulation_id)
        agents = Agent.objects.filter(roster_entries__simulation=simulation)
        group = Group(
            name=f"the roster of {simulation}",
            agents=agents,
            edit=partial(_roster_edit, simulation),
            notes=(_FORWARD_ONLY,) if simulation.roster_chosen else (_NOT_CHOSEN, _FORWARD_ONLY),
            empty_hint="Nobody is chosen yet. Search for agents above and add them.",
        )
        return self._group_page(request, simulation, group, f"Roster of {simulation}")

    def members_view(
        self, request: HttpRequest, simulation_id: int, channel_id: int
    ) -> HttpResponse:
        """Show who is in a private channel to who may view it, and change it for who may."""
        channel = get_object_or_404(
            Channel.objects.select_related("simulation"),
            pk=channel_id,
            simulation=simulation_id,
            visibility=Channel.Visibility.PRIVATE,
        )
        who = person_of(request)
        group = Group(
            name=str(channel),
            agents=Agent.objects.filter(channel_members__channel=channel),
            add=partial(simulations.add_channel_members, channel, who=who),
            remove=partial(simulations.remove_channel_members, channel, who=who),
            notes=(_PRIVATE, _FORWARD_ONLY),
            empty_hint="Nobody is in this channel yet. Search for agents above and add them.",
        )
        return self._group_page(request, channel.simulation, group, f"Members of {channel}")

    def _group_page(
        self, request: HttpRequest, simulation: Simulation, group: Group, title: str
    ) -> HttpResponse:
        may_change = self.has_change_permission(request, simulation)
        if not (may_change if request.method == "POST" else self.has_view_permission(request)):
            raise PermissionDenied
        if request.method == "POST":
            return change_group(self, request, group)
        context = frame(self, request, title, simulation=simulation, may_change=may_change)
        return show_group(request, group, context)


def _roster_edit(simulation: Simulation, agents: Sequence[Agent], *, adds: bool) -> Edit:
    """Return the change that adds agents to a roster or takes them off; those as they are, no."""
    present = set(
        simulation.roster_entries.filter(agent__in=agents).values_list("agent", flat=True)
    )
    pairs = tuple(
        (simulation.pk, agent.pk) for agent in agents if (agent.pk in present) is not adds
    )
    return Edit(join=pairs) if adds else Edit(leave=pairs)
