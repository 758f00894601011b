"""The JSON schemas of structured output and strict tools: a subset of the standard.

https://platform.claude.com/docs/en/build-with-claude/structured-outputs (limitations, limits of
complexity). A keyword that the page does not name as supported is refused here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.anthropic_api import shapes
from tests.anthropic_api.refusal import Json, Refusal, invalid

TYPES = {"object", "array", "string", "integer", "number", "boolean", "null"}
FORMATS = set("date-time time date duration email hostname uri ipv4 ipv6 uuid".split())
KEYWORDS = set(
    "type enum const anyOf allOf $ref $defs definitions default required additionalProperties "
    "properties items minItems format pattern title description $schema".split()
)
MAX_STRICT_TOOLS = 20
MAX_OPTIONAL = 24
MAX_UNIONS = 16


@dataclass(slots=True)
class Complexity:
    """What all strict schemas of a request add up to."""

    n_optional: int = 0
    n_unions: int = 0

    def check(self) -> None:
        if self.n_optional > MAX_OPTIONAL:
            raise Refusal(400, f"{self.n_optional} optional parameters; {MAX_OPTIONAL} are allowed")
        if self.n_unions > MAX_UNIONS:
            raise Refusal(400, f"{self.n_unions} union types; {MAX_UNIONS} are allowed")


def target(root: Json, reference: object, where: str) -> Any:
    """Return what a local reference such as `#/$defs/Move` names."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        raise invalid(where, "only references into the schema itself are supported")
    found: Any = root
    for name in reference[2:].split("/"):
        if not isinstance(found, dict) or name not in found:
            raise invalid(where, f"{reference} names nothing")
        found = found[name]
    return found


@dataclass(slots=True, kw_only=True)
class StrictSchema:
    """Checks one schema from its root down, and adds to the request's complexity."""

    root: Json
    complexity: Complexity

    def check(self, value: object, where: str, inside: tuple[str, ...] = ()) -> None:
        """Refuse what is not supported. `inside`: the references that led here, for recursion."""
        schema = shapes.fields(value, where, required=(), optional=KEYWORDS)
        if not schema.keys() & {"type", "enum", "const", "anyOf", "allOf", "$ref"}:
            raise invalid(where, "a type is needed")
        self._check_values(schema, where)
        self._check_unions(schema, where, inside)
        self._check_reference(schema, where, inside)
        types = _types(schema, where)
        if "object" in types or "properties" in schema:
            self._check_object(schema, where, inside)
        if "array" in types:
            self._check_array(schema, where, inside)

    def _check_values(self, schema: Json, where: str) -> None:
        for value in shapes.items(schema.get("enum", []), f"{where}.enum"):
            if isinstance(value, dict | list):
                raise invalid(f"{where}.enum", "values must be simple")
        if "enum" in schema and not schema["enum"]:
            raise invalid(f"{where}.enum", "a value is needed")
        if "format" in schema:
            shapes.one_of(schema["format"], f"{where}.format", FORMATS)

    def _check_unions(self, schema: Json, where: str, inside: tuple[str, ...]) -> None:
        self.complexity.n_unions += "anyOf" in schema or isinstance(schema.get("type"), list)
        for word in ("anyOf", "allOf"):
            for number, part in enumerate(shapes.items(schema.get(word, []), f"{where}.{word}")):
                place = f"{where}.{word}.{number}"
                if word == "allOf" and isinstance(part, dict) and "$ref" in part:
                    raise invalid(place, "allOf with a reference is not supported")
                self.check(part, place, inside)

    def _check_reference(self, schema: Json, where: str, inside: tuple[str, ...]) -> None:
        if "$ref" not in schema:
            return
        found = target(self.root, schema["$ref"], f"{where}.$ref")
        if schema["$ref"] in inside:
            raise invalid(f"{where}.$ref", "recursive schemas are not supported")
        self.check(found, where, (*inside, schema["$ref"]))

    def _check_object(self, schema: Json, where: str, inside: tuple[str, ...]) -> None:
        if schema.get("additionalProperties") is not False:
            raise invalid(f"{where}.additionalProperties", "must be false for every object")
        properties = schema.get("properties", {})
        if not isinstance(properties, dict):
            raise invalid(f"{where}.properties", "an object is needed")
        required = shapes.items(schema.get("required", []), f"{where}.required")
        for name in required:
            if name not in properties:
                raise invalid(f"{where}.required", f"{name} is no property")
        self.complexity.n_optional += len(properties) - len(set(required))
        for name, part in properties.items():
            self.check(part, f"{where}.properties.{name}", inside)

    def _check_array(self, schema: Json, where: str, inside: tuple[str, ...]) -> None:
        shapes.whole(schema.get("minItems", 0), f"{where}.minItems", most=1)
        if "items" not in schema:
            raise invalid(f"{where}.items", "Field required")
        self.check(schema["items"], f"{where}.items", inside)


def _types(schema: Json, where: str) -> list[str]:
    value = schema.get("type", [])
    names: list[Any] = value if isinstance(value, list) else [value]
    return [shapes.one_of(name, f"{where}.type", TYPES) for name in names]


def check_strict(schema: object, where: str, complexity: Complexity) -> None:
    """Refuse a schema that cannot be compiled; its root is an object."""
    root = shapes.fields(schema, where, required=("type",), optional=KEYWORDS)
    if root["type"] != "object":
        raise invalid(f"{where}.type", "must be object")
    StrictSchema(root=root, complexity=complexity).check(root, where)
