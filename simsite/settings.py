"""Settings: the only place where the environment is read. docs/operations.md has the table."""

from __future__ import annotations

import os
from math import ceil
from pathlib import Path

from csp.constants import NONE, SELF

from simsite.environment import Environment, RefusedEnvironment
from simsite.keys import load_or_make
from simsite.version import code_version

BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = BASE_DIR / "var"
SECRETS_FILE = VAR_DIR / "secrets.env"
SIM_NAMES = (
    "SIM_ANTHROPIC_API_KEY",
    "SIM_ANTHROPIC_BASE_URL",
    "SIM_ANTHROPIC_EFFORT",
    "SIM_ANTHROPIC_LARGE_MODEL",
    "SIM_ANTHROPIC_SMALL_MODEL",
    "SIM_ANTHROPIC_TIMEOUT_SECONDS",
    "SIM_BEHIND_PROXY",
    "SIM_FIELD_KEY",
    "SIM_HTTPS_ONLY",
    "SIM_LEASE_RENEW_SECONDS",
    "SIM_LEASE_SECONDS",
    "SIM_LLM",
    "SIM_LOG_FORMAT",
    "SIM_MAIL_FROM",
    "SIM_MAIL_URL",
    "SIM_MAX_CALLS_IN_FLIGHT",
    "SIM_MAX_RUNS",
    "SIM_MAX_RUNS_PER_HOST",
    "SIM_METRICS_TOKEN",
    "SIM_PULSE_SECONDS",
    "SIM_RECORD_CALLS",
    "SIM_SITE_URL",
)

env = Environment(os.environ, own_names=SIM_NAMES)
DEBUG = env.flag("DEBUG", default=True)


def secret(name: str) -> str:
    """The secret `name`: from the environment, or made once while DEBUG is on."""
    value = env.text(name)
    if value:
        return value
    if not DEBUG:
        raise RefusedEnvironment(
            f"{name} is not set: with DEBUG off it must be; see docs/operations.md."
        )
    return load_or_make(SECRETS_FILE)[name]


SECRET_KEY = secret("SECRET_KEY")
SIM_FIELD_KEY = secret("SIM_FIELD_KEY")
SIM_LLM = env.choice("SIM_LLM", default="offline", choices=("offline", "anthropic"))
SIM_ANTHROPIC_API_KEY = env.text("SIM_ANTHROPIC_API_KEY")
SIM_ANTHROPIC_BASE_URL = env.text("SIM_ANTHROPIC_BASE_URL", "https://api.anthropic.com")
SIM_ANTHROPIC_SMALL_MODEL = env.text("SIM_ANTHROPIC_SMALL_MODEL", "claude-haiku-5-5")
SIM_ANTHROPIC_LARGE_MODEL = env.text("SIM_ANTHROPIC_LARGE_MODEL", "claude-sonnet-5-5")
SIM_ANTHROPIC_EFFORT = env.choice(
    "SIM_ANTHROPIC_EFFORT", default="low", choices=("low", "medium", "high", "default")
)
SIM_ANTHROPIC_TIMEOUT_SECONDS = env.seconds("SIM_ANTHROPIC_TIMEOUT_SECONDS", default=300.0)
SIM_RECORD_CALLS = env.flag("SIM_RECORD_CALLS", default=True)
SIM_LEASE_SECONDS = env.seconds("SIM_LEASE_SECONDS", default=30.0)
SIM_LEASE_RENEW_SECONDS = env.seconds("SIM_LEASE_RENEW_SECONDS", default=5.0)
SIM_PULSE_SECONDS = env.seconds("SIM_PULSE_SECONDS", default=0.5)
SIM_MAX_RUNS_PER_HOST = env.count("SIM_MAX_RUNS_PER_HOST", default=2)
SIM_MAX_RUNS = env.count("SIM_MAX_RUNS", default=20)
SIM_MAX_CALLS_IN_FLIGHT = env.count("SIM_MAX_CALLS_IN_FLIGHT", default=100)

ALLOWED_HOSTS = env.words("ALLOWED_HOSTS", default=["127.0.0.1", "localhost", "[::1]"])
TIME_ZONE = env.time_zone("TIME_ZONE", default="UTC")
USE_TZ = True
CODE_VERSION = code_version(BASE_DIR)
LANGUAGE_CODE = "en-gb"
FORMAT_MODULE_PATH = ["simsite.formats"]

INSTALLED_APPS = [
    "simsite.site.SocietyAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "csp",
    "django_q",
    "simsite",
    "cohorts",
    "engine",
]
MIDDLEWARE = [
    "simsite.health.HealthMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "simsite.unseen.UnseenMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "simsite.urls"
WSGI_APPLICATION = "simsite.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

# IMMEDIATE: a transaction that reads first and writes later would otherwise fail at once with
# "database is locked", whatever the timeout.
SQLITE = {
    "OPTIONS": {
        "timeout": 20,
        "transaction_mode": "IMMEDIATE",
        "init_command": "PRAGMA journal_mode=WAL;PRAGMA synchronous=NORMAL;",
    }
}
POSTGRESQL = {"CONN_MAX_AGE": 60, "CONN_HEALTH_CHECKS": True}
# A connection to a host that is gone must fail well within a lease, not in minutes (seconds; the
# last one milliseconds).
POSTGRESQL_OPTIONS = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 3,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
DATABASES = {
    "default": env.database("DATABASE_URL", base=BASE_DIR, default=VAR_DIR / "sim.sqlite3")
}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    DATABASES["default"] |= SQLITE
    Path(DATABASES["default"]["NAME"]).parent.mkdir(parents=True, exist_ok=True)
else:
    DATABASES["default"] |= POSTGRESQL
    DATABASES["default"]["OPTIONS"] = POSTGRESQL_OPTIONS | DATABASES["default"].get("OPTIONS", {})

# Short jobs and runs have a queue each. What a message may take is bounded for short jobs only: a
# run's own message says that it is not. A message whose worker died is seen again after `retry`
# seconds (see engine.tasks.broker); `timeout` is never above it, or django-q2 warns at each start.
RUN_RETRY_SECONDS = max(2, ceil(SIM_LEASE_SECONDS / 2))
Q_CLUSTER = {
    "name": "sim",
    "label": "Task queue",
    "orm": "default",
    "broker_class": "engine.tasks.broker.FairBroker",
    "workers": 2,
    "queue_limit": 1,
    "bulk": 1,
    "poll": 1,
    "guard_cycle": 0.5,
    "recycle": 50,
    "timeout": 60,
    "retry": 60,
    "ack_failures": True,
    "max_attempts": 1,
    "catch_up": False,
    "save_limit": 250,
    "ALT_CLUSTERS": {
        "runs": {
            "workers": SIM_MAX_RUNS_PER_HOST,
            "broker_class": "engine.tasks.broker.RunBroker",
            "timeout": RUN_RETRY_SECONDS,
            "retry": RUN_RETRY_SECONDS,
            "scheduler": False,
        }
    },
}

# Without a mail server alerts are shown in the admin only.
MAIL = env.mail("SIM_MAIL_URL")
EMAIL_BACKEND = f"django.core.mail.backends.{'smtp' if MAIL.host else 'dummy'}.EmailBackend"
EMAIL_HOST, EMAIL_PORT = MAIL.host, MAIL.port
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = MAIL.user, MAIL.password
EMAIL_USE_TLS, EMAIL_USE_SSL = MAIL.starts_tls, MAIL.uses_tls
EMAIL_TIMEOUT = 20
DEFAULT_FROM_EMAIL = SERVER_EMAIL = env.text("SIM_MAIL_FROM", "agents@localhost")
SIM_SITE_URL = env.text("SIM_SITE_URL", "http://127.0.0.1:8000").rstrip("/")

STATIC_URL = "static/"
STATIC_ROOT = VAR_DIR / "static"
STATICFILES_STORAGE = (
    "django.contrib.staticfiles.storage.StaticFilesStorage"
    if DEBUG
    else "whitenoise.storage.CompressedManifestStaticFilesStorage"
)
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": STATICFILES_STORAGE},
}
WHITENOISE_AUTOREFRESH = DEBUG
WHITENOISE_USE_FINDERS = DEBUG

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "img-src": [SELF, "data:"],
        "object-src": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_HTTPONLY = True
SIM_HTTPS_ONLY = env.flag("SIM_HTTPS_ONLY", default=not DEBUG)
SIM_BEHIND_PROXY = env.flag("SIM_BEHIND_PROXY", default=False)
SECURE_SSL_REDIRECT = SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SIM_HTTPS_ONLY
SECURE_HSTS_SECONDS = 31_536_000 if SIM_HTTPS_ONLY else 0
# What other names of the operator's domain do is not for this site to decide.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if SIM_BEHIND_PROXY else None

SIM_METRICS_TOKEN = env.text("SIM_METRICS_TOKEN")
SIM_LOG_FORMAT = env.choice("SIM_LOG_FORMAT", default="lines", choices=("lines", "json"))
SECRETS = [
    SECRET_KEY,
    SIM_FIELD_KEY,
    SIM_ANTHROPIC_API_KEY,
    SIM_METRICS_TOKEN,
    DATABASES["default"].get("PASSWORD") or "",
    EMAIL_HOST_PASSWORD,
]
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "lines": {"()": "simsite.logs.Lines", "secrets": SECRETS},
        "json": {"()": "simsite.logs.JsonLines", "secrets": SECRETS},
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": SIM_LOG_FORMAT}},
    "root": {"handlers": ["stderr"], "level": "WARNING"},
    "loggers": {
        "cohorts": {"level": "INFO"},
        "engine": {"level": "INFO"},
        # It tells of each message; what went wrong is enough. It has no handler of its own then.
        "django-q": {"handlers": [], "level": "WARNING", "propagate": True},
        # Django gives these a console handler of its own while DEBUG is on: one line is enough.
        "django": {"handlers": [], "level": "INFO"},
        "django.server": {"handlers": [], "level": "INFO", "propagate": True},
    },
}
