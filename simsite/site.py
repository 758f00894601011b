"""The admin as one site: its pages in plain groups, and a first page that says what goes on."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from django.contrib.admin import AdminSite
from django.contrib.admin.apps import AdminConfig
from django.urls import path, reverse

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.template.response import TemplateResponse
    from django.urls import URLPattern, URLResolver

#: The groups of pages, each with its models, and pages of our own by address and right.
GROUPS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("Society", ("cohorts.Agent", "cohorts.Cohort", "engine.Simulation")),
    ("Runs", ("engine.Run", "engine.RunSchedule", "engine.Alert", "engine.AlertReader")),
    ("Talks and results", ("engine.Proposal", "engine.Message", "engine.Memory")),
    ("Money", ("engine.DayCap", "engine.ModelPrice")),
    (
        "What happened",
        (
            "cohorts.TopologyChange",
            "cohorts.AgentVersion",
            "engine.HouseRules",
            "engine.Turn",
            "engine.LlmCall",
            "admin.LogEntry",
        ),
    ),
    ("People", ("auth.User", "auth.Group")),
)
OWN: Final[dict[str, tuple[tuple[str, str, str], ...]]] = {
    "Society": (
        ("Matrix of cohorts", "admin:engine_matrix", "cohorts.view_cohort"),
        ("Who deals with whom", "admin:engine_pairs", "engine.view_simulation"),
    ),
    "What happened": (("Keep and prune", "admin:engine_keep", "engine.view_run"),),
}


class SocietySite(AdminSite):
    """The built-in admin, sorted for those who run a society."""

    index_template = "admin/home.html"
    index_title = "What goes on"
    # The admin is the whole site: there is nothing else to view.
    site_url = None

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        """Return the pages that somebody may see, in plain groups; others follow as they come."""
        apps: list[dict[str, Any]] = super().get_app_list(request, app_label)
        if app_label is not None:
            return apps
        models = {
            f"{app['app_label']}.{model['object_name']}": model
            for app in apps
            for model in app["models"]
        }
        groups = []
        for title, names in GROUPS:
            shown = [models.pop(name) for name in names if name in models]
            shown += [_own(*page) for page in OWN.get(title, ()) if request.user.has_perm(page[2])]
            if shown:
                groups.append(_group(title, shown))
        if models:
            groups.append(_group("Task queue", list(models.values())))
        return groups

    def index(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> TemplateResponse:
        """Show the first page, with what goes on."""
        return super().index(request, {**_page().home_of(request), **(extra_context or {})})

    def get_urls(self) -> list[URLResolver | URLPattern]:
        own = path("try/", self.admin_view(_page().try_view), name="engine_try")
        return [own, *super().get_urls()]


class SocietyAdminConfig(AdminConfig):
    """The built-in admin as an application, with this site in the place of its own."""

    default = False
    default_site = "simsite.site.SocietySite"


def _page() -> Any:
    """Return the module of the first page; it needs models, which are there after this one."""
    return import_module("engine.admin.home.page")


def _group(title: str, models: list[dict[str, Any]]) -> dict[str, Any]:
    label = title.lower().replace(" ", "-")
    return {
        "name": title,
        "app_label": label,
        "app_url": reverse("admin:index"),
        "has_module_perms": True,
        "models": models,
    }


def _own(name: str, address: str, _right: str) -> dict[str, Any]:
    return {
        "name": name,
        "object_name": address.partition(":")[2],
        "admin_url": reverse(address),
        "add_url": None,
        "view_only": True,
        "perms": {},
        "model": None,
    }
