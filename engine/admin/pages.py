"""What the engine's pages share: history that nobody edits, bounded lists, the frame of a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404, HttpResponseRedirect
from django.urls import reverse
from django.utils.functional import cached_property
from django.utils.html import format_html

from cohorts import operations
from engine.inbox import RefusedChangeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db import models
    from django.db.models import QuerySet
    from django.db.models.expressions import Combinable
    from django.http import HttpRequest, HttpResponse
    from django.utils.safestring import SafeString

    DeletedObjects = tuple[list[str], dict[str, int], set[str], list[str]]

PAGED_AT_MOST: Final = 5_000
"""Rows that a history list can be paged through; filters and search reach the older ones."""
_KEY_DIGITS: Final = 18


class BoundedPaginator(Paginator):  # type: ignore[type-arg]
    """Counts no further than it pages: a list costs the same over a thousand rows or a million."""

    @cached_property
    def count(self) -> int:
        """The number of rows, or `PAGED_AT_MOST` if there are more."""
        rows: QuerySet[Any] = self.object_list  # type: ignore[assignment]
        return rows[:PAGED_AT_MOST].count()


class ReadOnly:
    """What is history can be looked at, and neither made, changed nor deleted."""

    def has_add_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False


class OneByOne(admin.ModelAdmin):  # type: ignore[type-arg]
    """Deletes one row at a time, on its own page, where a refusal is told in a sentence."""

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        actions = super().get_actions(request)
        actions.pop("delete_selected", None)
        return actions

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, object] | None = None
    ) -> HttpResponse:
        try:
            page: HttpResponse = super().delete_view(request, object_id, extra_context)
        except operations.RefusedChangeError as refusal:
            messages.error(request, str(refusal))
            name = f"admin:cohorts_{self.opts.model_name}_change"
            return HttpResponseRedirect(reverse(name, args=[object_id]))
        return page


class HistoryAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Rows that tell what happened: everybody may only look, newest first."""

    actions: Sequence[str] | None = None
    paginator = BoundedPaginator
    show_full_result_count = False
    # Counting behind each filter would read the whole table for each.
    show_facets = admin.ShowFacets.NEVER
    list_per_page = 50
    ordering: ClassVar[tuple[str | Combinable, ...] | list[str | Combinable] | None] = ("-pk",)
    sortable_by = ()
    empty_hint = ""

    def find(self, request: HttpRequest, object_id: str) -> Any:
        """Return the row of a page of our own, for somebody who may look at it."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        row = self.get_object(request, object_id)
        if row is None:
            raise Http404
        return row

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False


def frame(
    model_admin: admin.ModelAdmin[Any], request: HttpRequest, title: str, **own: object
) -> dict[str, object]:
    """Return the context that a page of our own is rendered with."""
    return {
        **model_admin.admin_site.each_context(request),
        "opts": model_admin.opts,
        "title": title,
        **own,
    }


def number_of(text: str | None) -> int | None:
    """Return the number that a query or a form gives, or None for anything else."""
    if text and text.isascii() and text.isdecimal() and len(text) <= _KEY_DIGITS:
        return int(text)
    return None


def text_of(request: HttpRequest, name: str, *, at_most: int) -> str:
    """Return the text of a form; raise RefusedChangeError for one of more characters.

    A NUL, which no keyboard writes and PostgreSQL cannot store, is left out.
    """
    text = request.POST.get(name, "").replace("\0", "")
    if len(text) > at_most:
        raise RefusedChangeError(
            f"The text has {len(text):,} characters, and {at_most:,} are possible: shorten it."
        )
    return text


def person_of(request: HttpRequest) -> str:
    """Return the name under which what a person does is stored."""
    return request.user.get_username()


def badge(value: str, label: str) -> SafeString:
    """Return a state as words in a frame; its colour only repeats what the words say."""
    return format_html('<span class="sim-badge sim-badge-{}">{}</span>', value, label)


def seconds_in_words(seconds: float | None) -> str:
    """Return a length of time as a person says it: 0.4 s, 12 s, 3 min 5 s, 2 h 10 min."""
    if seconds is None:
        return "–"
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if not minutes:
        return f"{rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
