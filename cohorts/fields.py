"""A text column that is encrypted at rest and cannot be shown by accident."""

from __future__ import annotations

from dataclasses import dataclass

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import models


@dataclass(frozen=True, slots=True)
class Secret:
    """An encrypted text as it lies in the column; only `reveal` reads it."""

    ciphertext: str = ""

    def reveal(self) -> str:
        """Return the text; raise ImproperlyConfigured if no key of the settings opens it."""
        if not self.ciphertext:
            return ""
        try:
            return _cipher().decrypt(self.ciphertext.encode()).decode()
        except InvalidToken as exc:
            raise ImproperlyConfigured(
                "A stored secret does not open with SIM_FIELD_KEY: set the key it was stored "
                "with, or enter the secret again."
            ) from exc

    def __bool__(self) -> bool:
        return bool(self.ciphertext)

    def __str__(self) -> str:
        return "(set)" if self else ""

    def __repr__(self) -> str:
        return f"<Secret {self}>"


class EncryptedField(models.TextField):  # type: ignore[type-arg]
    """Stores what it is given encrypted (or "" as it is), and reads it back as a `Secret`."""

    def from_db_value(self, value: str | None, *_: object) -> Secret:
        return Secret(value or "")

    def to_python(self, value: object) -> object:
        return value

    def get_prep_value(self, value: object) -> str:
        if isinstance(value, Secret):
            return value.ciphertext
        text = str(value or "")
        return _cipher().encrypt(text.encode()).decode() if text else ""


def _cipher() -> MultiFernet:
    """Make the cipher of SIM_FIELD_KEY; older keys still read, and nothing is written with them."""
    fallbacks: list[str] = getattr(settings, "SIM_FIELD_KEY_FALLBACKS", [])
    return MultiFernet([Fernet(key) for key in (settings.SIM_FIELD_KEY, *fallbacks)])
