"""The two stores, by one name: a test that asks for `site` runs on each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.contract.site import DjangoSite, MemorySite, Site

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def django_site(transactional_db: None) -> Iterator[DjangoSite]:
    site = DjangoSite()
    yield site
    site.close()


# The mark, and not only the fixture: the kind of test decides before a fixture is asked for.
@pytest.fixture(
    params=["memory", pytest.param("django", marks=pytest.mark.django_db(transaction=True))]
)
def site(request: pytest.FixtureRequest) -> Site:
    if request.param == "memory":
        return MemorySite()
    made: DjangoSite = request.getfixturevalue("django_site")
    return made
