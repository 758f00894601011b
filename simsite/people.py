"""People and their groups as they are stored: kept after each `migrate`, never without an owner."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.contrib.auth.models import Group, Permission, User
from django.db import transaction
from django.db.models import Q

from simsite.rights import GROUPS, OWNER, rights_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db.models import QuerySet


class NoOwnerLeft(Exception):
    """A change after which nobody could give rights any more; its text is for a person."""

    def __init__(self) -> None:
        super().__init__(
            "Nothing was changed: nobody would be left who may give rights. "
            f"Make somebody else a member of the group {OWNER} first."
        )


def keep_groups(using: str, **_: object) -> None:
    """Make the four groups, with what the table says, no less and no more; after `migrate`."""
    keys = {
        f"{app}.{codename}": pk
        for pk, app, codename in Permission.objects.using(using).values_list(
            "pk", "content_type__app_label", "codename"
        )
    }
    wanted = {name: {keys[right] for right in rights_of(name) if right in keys} for name in GROUPS}
    with transaction.atomic(using):
        rows = Group.objects.using(using)
        rows.bulk_create([Group(name=name) for name in GROUPS], ignore_conflicts=True)
        groups = dict(rows.filter(name__in=GROUPS).values_list("name", "pk"))
        holding = Group.permissions.through.objects.using(using)
        ours = holding.filter(group_id__in=groups.values())
        present = set(ours.values_list("group_id", "permission_id"))
        asked = {(groups[name], key) for name, held in wanted.items() for key in held}
        for group, key in present - asked:
            ours.filter(group_id=group, permission_id=key).delete()
        holding.bulk_create(
            [Group.permissions.through(group_id=g, permission_id=key) for g, key in asked - present]
        )


def owners() -> QuerySet[User]:
    """Return who can give rights: superusers and members of the group Owner who may sign in."""
    may = Q(is_superuser=True) | Q(groups__name=OWNER)
    return User.objects.filter(may, is_active=True, is_staff=True).distinct()


@contextmanager
def an_owner_left() -> Iterator[None]:
    """Undo what is done inside and raise NoOwnerLeft if it leaves nobody who can give rights.

    Two who do it at once wait for each other at the row of the group.
    """
    with transaction.atomic():
        list(Group.objects.select_for_update().filter(name=OWNER))
        had_one = owners().exists()
        yield
        if had_one and not owners().exists():
            raise NoOwnerLeft
