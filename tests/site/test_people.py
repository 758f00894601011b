"""People and their groups: what the groups hold, and that somebody can always give rights."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission, User
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.urls import reverse

from simsite.people import NoOwnerLeft, an_owner_left, owners
from simsite.rights import GROUP_WORDS, GROUPS, models_without_rights, rights_of

if TYPE_CHECKING:
    from django.db.models import Model

pytestmark = pytest.mark.django_db

PEOPLE = "admin:auth_user_changelist"


def owner(name: str) -> User:
    person = User.objects.create(username=name, is_staff=True)
    person.groups.add(Group.objects.get(name="Owner"))
    return person


def signed_in(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


def form_of(person: User, **changed: object) -> dict[str, object]:
    """Return what the form of a person sends."""
    groups = [group.pk for group in person.groups.all()]
    form: dict[str, object] = {"username": person.username, "is_active": "on", "groups": groups}
    return {name: value for name, value in (form | changed).items() if value is not None}


def change(client: Client, person: User, **changed: object) -> str:
    """Send the form of a person and return the page that follows."""
    page = reverse("admin:auth_user_change", args=[person.pk])
    answer = client.post(page, form_of(person, **changed), follow=True)
    assert answer.status_code == 200
    return answer.content.decode()


def test_migrate_gives_the_groups_what_the_table_says_and_no_more() -> None:
    observer = Group.objects.get(name="Observer")
    observer.permissions.add(Permission.objects.get(codename="delete_run"))
    Group.objects.get(name="Reviewer").delete()
    guests = Group.objects.create(name="Guests")
    guests.permissions.add(Permission.objects.get(codename="view_run"))

    call_command("migrate", verbosity=0)

    for name in GROUPS:
        held = Group.objects.get(name=name).permissions.values_list(
            "content_type__app_label", "codename"
        )
        assert {f"{app}.{codename}" for app, codename in held} == rights_of(name)
    assert guests.permissions.count() == 1


def test_every_model_is_in_the_table_and_every_right_exists() -> None:
    assert models_without_rights() == []
    assert GROUP_WORDS.keys() == set(GROUPS)
    known = {
        f"{app}.{codename}"
        for app, codename in Permission.objects.values_list("content_type__app_label", "codename")
    }
    assert set().union(*map(rights_of, GROUPS)) <= known


def test_model_that_the_table_forgets_is_told_by_a_check(monkeypatch: pytest.MonkeyPatch) -> None:
    models: list[type[Model]] = [*apps.get_models()]

    class Stray:
        class _meta:  # noqa: N801 – as Django names it
            label_lower = "engine.stray"
            app_label = "engine"

    monkeypatch.setattr(apps, "get_models", lambda: [*models, Stray])
    assert models_without_rights() == ["engine.stray"]


@pytest.mark.parametrize("changed", [{"is_active": None}, {"groups": None}])
def test_last_owner_cannot_lock_everybody_out(changed: dict[str, None]) -> None:
    last = owner("ada")
    page = change(signed_in(last), last, **changed)
    assert "nobody would be left who may give rights" in page
    assert list(owners()) == [last]


def test_owner_may_go_when_another_is_left() -> None:
    ada, bob = owner("ada"), owner("bob")
    page = reverse("admin:auth_user_change", args=[ada.pk])
    assert signed_in(ada).post(page, form_of(ada, groups=None))["Location"] == reverse(PEOPLE)
    assert list(owners()) == [bob]


@pytest.mark.parametrize("way", ["page", "list"])
def test_last_owner_is_not_deleted(way: str) -> None:
    last = owner("ada")
    clerk = User.objects.create(username="clerk", is_staff=True)
    clerk.user_permissions.set(
        Permission.objects.filter(codename__in=["view_user", "change_user", "delete_user"])
    )
    client = signed_in(clerk)
    if way == "page":
        page = reverse("admin:auth_user_delete", args=[last.pk])
        answer = client.post(page, {"post": "yes"}, follow=True)
    else:
        chosen = {"action": "delete_selected", "_selected_action": [last.pk], "post": "yes"}
        answer = client.post(reverse(PEOPLE), chosen, follow=True)
    assert "nobody would be left who may give rights" in answer.content.decode()
    assert list(owners()) == [last]


def test_the_four_groups_are_neither_changed_nor_deleted() -> None:
    client = signed_in(owner("ada"))
    group = Group.objects.get(name="Owner")
    for part, form in (("change", {"name": "Mine"}), ("delete", {"post": "yes"})):
        page = reverse(f"admin:auth_group_{part}", args=[group.pk])
        assert client.post(page, form).status_code == 403
    assert Group.objects.get(pk=group.pk).name == "Owner"
    assert client.get(reverse("admin:auth_group_change", args=[group.pk])).status_code == 200


def test_owner_does_not_touch_a_superuser_nor_becomes_one() -> None:
    ada = owner("ada")
    client = signed_in(ada)
    root = User.objects.create(username="root", is_staff=True, is_superuser=True)
    assert client.post(reverse("admin:auth_user_change", args=[root.pk]), {}).status_code == 403
    password = reverse("admin:auth_user_password_change", args=[root.pk])
    assert client.post(password, {"password1": "x", "password2": "x"}).status_code == 403
    change(client, ada, is_superuser="on")
    assert not User.objects.get(pk=ada.pk).is_superuser


def test_new_person_may_enter_and_has_the_groups_that_were_chosen() -> None:
    client = signed_in(owner("ada"))
    form = {
        "username": "bob",
        "usable_password": "true",
        "password1": "a-long-one-7",
        "password2": "a-long-one-7",
        "groups": [Group.objects.get(name="Reviewer").pk],
    }
    client.post(reverse("admin:auth_user_add"), form, follow=True)
    bob = User.objects.get(username="bob")
    assert (bob.is_staff, [group.name for group in bob.groups.all()]) == (True, ["Reviewer"])
    listed = client.get(reverse(PEOPLE)).content.decode()
    assert "Reviewer" in listed


def test_list_of_acts_says_who_did_what() -> None:
    ada, bob = owner("ada"), owner("bob")
    change(signed_in(ada), bob, first_name="Robert")
    listed = signed_in(ada).get(reverse("admin:admin_logentry_changelist")).content.decode()
    assert "Changed First name." in listed


@pytest.mark.both_databases
@pytest.mark.django_db(transaction=True)
def test_two_owners_who_leave_at_once_do_not_both() -> None:
    call_command("migrate", verbosity=0)  # the groups went with the last test's rows
    people = [owner("ada"), owner("bob")]
    barrier, refused = threading.Barrier(2), []

    def leave(person: User) -> None:
        try:
            barrier.wait(timeout=10)
            with an_owner_left():
                person.groups.clear()
        except NoOwnerLeft:
            refused.append(person)
        finally:
            connection.close()

    threads = [threading.Thread(target=leave, args=(person,)) for person in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert len(refused) == 1
    assert list(owners()) == refused
