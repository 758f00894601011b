"""`Q_CLUSTER_NAME=runs python -m tests.clusters.eager_cluster`: a cluster of django-q2 that drives
runs, with a model that never tires of talking."""

from __future__ import annotations

from django.core.management import call_command

from tests.eager_run import set_up

if __name__ == "__main__":
    set_up()
    call_command("qcluster")
