"""Where the pages of who deals with whom are."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from django.urls import path

from engine.admin.topology.asking import apply_view
from engine.admin.topology.matrix import matrix_view
from engine.admin.topology.pairs import pairs_view, picture_view
from engine.admin.topology.use import in_use_view

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin
    from django.urls import URLPattern


def topology_urls(model_admin: ModelAdmin[Any]) -> list[URLPattern]:
    """Return the addresses, which stand among those of simulations."""
    wrap = model_admin.admin_site.admin_view
    return [
        path("cohorts/", wrap(partial(matrix_view, model_admin)), name="engine_matrix"),
        path("cohorts/in-use/", wrap(in_use_view), name="engine_in_use"),
        path(
            "cohorts/apply/", wrap(partial(apply_view, model_admin)), name="engine_topology_apply"
        ),
        path("pairs/", wrap(partial(pairs_view, model_admin)), name="engine_pairs"),
        path("<int:simulation_id>/pairs.svg", wrap(picture_view), name="engine_pairs_picture"),
    ]
