"""URLs of the site: the admin for people, the metrics for a collector."""

from __future__ import annotations

from django.contrib import admin
from django.urls import path

from simsite.metrics import metrics

urlpatterns = [path("admin/", admin.site.urls), path("metrics", metrics)]
