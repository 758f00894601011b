"""Reports installed packages whose licence is not known to be fine for us.

A package offered under several licences is fine when one of them is. Copyleft that reaches only
the package's own files (MPL) or its linking (LGPL) is fine, too: we change neither.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import Distribution, distributions

ALLOWED = re.compile(
    r"\b(MIT|MIT-0|BSD|Apache|ISC|PSF|Python Software Foundation|Unlicense|Zlib"
    r"|MPL|Mozilla Public|LGPL|Lesser General Public)\b",
    re.IGNORECASE,
)


def stated_licences(package: Distribution) -> list[str]:
    """What a package says of itself, the most exact statement first; else its licence's title."""
    metadata = package.metadata
    classifiers = metadata.get_all("Classifier") or []
    return [
        *(metadata.get_all("License-Expression") or []),
        *(line for line in classifiers if line.startswith("License ::")),
        *(line for text in metadata.get_all("License") or [] for line in text.splitlines()[:1]),
    ] or [
        title
        for name in metadata.get_all("License-File") or []
        for title in (package.read_text(f"licenses/{name}") or "").splitlines()[:1]
    ]


def is_allowed(licences: list[str]) -> bool:
    """Whether one of the stated licences is fine."""
    return any(ALLOWED.search(licence) for licence in licences)


def main() -> int:
    """Report to stdout; 1 when a licence is not allowed."""
    refused = [
        f"{package.metadata['Name']}: {', '.join(licences) or 'no licence stated'}"
        for package in distributions()
        if not is_allowed(licences := stated_licences(package))
    ]
    for line in sorted(refused):
        print(f"Licence not allowed: {line}")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
