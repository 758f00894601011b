"""People and their rights in the admin, and the record of who did what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin, messages
from django.contrib.admin.models import LogEntry
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.http import HttpResponseRedirect

from simsite.people import NoOwnerLeft, an_owner_left
from simsite.rights import GROUP_WORDS, GROUPS

if TYPE_CHECKING:
    from django.forms import ModelForm
    from django.http import HttpRequest, HttpResponse


class KeepsAnOwner:
    """Pages of which no change may leave nobody who can give rights."""

    def changeform_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return self._kept(super().changeform_view, request, *args, **kwargs)  # type: ignore[misc]

    def changelist_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return self._kept(super().changelist_view, request, *args, **kwargs)  # type: ignore[misc]

    def delete_view(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        return self._kept(super().delete_view, request, *args, **kwargs)  # type: ignore[misc]

    def _kept(self, view: Any, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Show a page, or carry a change out unless nobody would be left."""
        if request.method != "POST":
            page: HttpResponse = view(request, *args, **kwargs)
            return page
        try:
            with an_owner_left():
                done: HttpResponse = view(request, *args, **kwargs)
                return done
        except NoOwnerLeft as refusal:
            messages.error(request, str(refusal))
            return HttpResponseRedirect(request.get_full_path())


class PeopleAdmin(KeepsAnOwner, UserAdmin):  # type: ignore[type-arg]
    """People who may sign in. Everybody here may enter the admin; groups say what they may do."""

    list_display = ("username", "first_name", "last_name", "in_groups", "is_active")
    list_filter = ("groups", "is_active")
    filter_horizontal = ()

    def get_fieldsets(self, request: HttpRequest, obj: User | None = None) -> Any:
        rights = ("is_active", "groups", *(["is_superuser"] if request.user.is_superuser else []))
        if obj is None:
            return (
                (None, {"fields": ("username", "usable_password", "password1", "password2")}),
                ("Rights", {"fields": ("groups",), "description": _words()}),
            )
        return (
            (None, {"fields": ("username", "password")}),
            ("Name", {"fields": ("first_name", "last_name", "email")}),
            ("Rights", {"fields": rights, "description": _words()}),
            ("Times", {"fields": ("last_login", "date_joined")}),
        )

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> Any:
        return ("last_login", "date_joined")

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return _may_touch(request, obj) and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        return _may_touch(request, obj) and super().has_delete_permission(request, obj)

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).prefetch_related("groups")

    @admin.display(description="groups")
    def in_groups(self, person: User) -> str:
        names = [group.name for group in person.groups.all()]
        if person.is_superuser:
            names.append("superuser")
        return ", ".join(names) or "none: may only sign in"

    def save_model(
        self,
        request: HttpRequest,
        obj: User,
        form: ModelForm[User],
        change: bool,  # noqa: FBT001 (called by Django)
    ) -> None:
        obj.is_staff = True
        super().save_model(request, obj, form, change)


class OurGroupAdmin(KeepsAnOwner, GroupAdmin):
    """The four groups are looked at; others may be made beside them."""

    list_display = ("name", "says")
    filter_horizontal = ()
    actions = None

    @admin.display(description="what its members may")
    def says(self, group: Group) -> str:
        return GROUP_WORDS.get(group.name, "What its page says.")

    def has_change_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        return _is_free(obj) and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Group | None = None) -> bool:
        return _is_free(obj) and super().has_delete_permission(request, obj)


@admin.register(LogEntry)
class ActAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Who did what through these pages; changes of cohorts have a record of their own."""

    list_display = ("action_time", "user", "content_type", "object_repr", "says")
    list_select_related = ("user", "content_type")
    list_filter = ("action_flag",)
    search_fields = ("user__username", "object_repr")
    actions = None
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER

    @admin.display(description="what")
    def says(self, entry: LogEntry) -> str:
        return entry.get_change_message() or entry.get_action_flag_display()

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: LogEntry | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: LogEntry | None = None) -> bool:
        return False


def _may_touch(request: HttpRequest, person: User | None) -> bool:
    """Tell whether somebody may change a person: a superuser's password is a superuser's matter."""
    return person is None or request.user.is_superuser or not person.is_superuser


def _is_free(group: Group | None) -> bool:
    return group is None or group.name not in GROUPS


def _words() -> str:
    return " ".join(f"{name}: {words}" for name, words in GROUP_WORDS.items())


for model, page in ((User, PeopleAdmin), (Group, OurGroupAdmin)):
    admin.site.unregister(model)
    admin.site.register(model, page)
