"""Rows of an export to JSON text and back, by the types that `schema` writes down.

A codec per type is built once; what does not fit is a `FormatError` that names the field.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from operator import attrgetter
from types import MappingProxyType, NoneType, UnionType
from typing import Literal, TypeVar, cast, get_args, get_origin, get_type_hints

import orjson

from engine.export.schema import NanoUsd, Row

NANO = 1_000_000_000

# What the annotations of `schema` name, wherever that module imports it for.
_TYPES = {"Mapping": Mapping, "datetime": datetime}

AnyRow = TypeVar("AnyRow", bound=Row)
Decode = Callable[[object], object]
Encode = Callable[[object], object]


class FormatError(ValueError):
    """A line that is not what the format says; the message is a sentence without full stop."""


def encode_row(row: Row) -> bytes:
    """Return `row` as one line of JSON, in UTF-8, with its line break."""
    values = _object_encoder(cast("Hashable", type(row)))(row)
    return orjson.dumps(values, option=orjson.OPT_APPEND_NEWLINE)


def decode_row(row_type: type[AnyRow], line: str) -> AnyRow:
    """Return the row that a line of JSON holds, or raise `FormatError`."""
    try:
        value = _JSON.decode(line)
    except FormatError:
        raise
    except (ValueError, RecursionError) as exc:
        raise FormatError(f"not JSON ({exc})") from exc
    return cast("AnyRow", _decoder(cast("Hashable", row_type))(value))


def time_text(moment: datetime) -> str:
    """Return a moment as ISO 8601 in UTC with microseconds."""
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    return moment.isoformat(timespec="microseconds")


def _no_constant(name: str) -> object:
    raise FormatError(f"not JSON ({name} is no number)")


_JSON = json.JSONDecoder(parse_float=Decimal, parse_constant=_no_constant)


@cache
def _encoder(kind: object) -> Encode | None:
    """Return the function that turns a value of the type `kind` into what `json` writes, None if
    it is that already; it is not asked about None."""
    if kind is datetime:
        return _moment_encoder
    if kind is NanoUsd:
        return lambda value: cast("int", value) / NANO
    if is_dataclass(kind):
        return _object_encoder(cast("Hashable", kind))
    arguments = get_args(kind)
    if NoneType in arguments:
        (inner,) = (argument for argument in arguments if argument is not NoneType)
        return _encoder(inner)
    origin = get_origin(kind)
    if origin is tuple:
        return _list_encoder(_encoder(arguments[0]))
    if origin is Mapping:
        return lambda value: dict(sorted(cast("Mapping[str, object]", value).items()))
    return None


def _moment_encoder(value: object) -> object:
    """Leave to orjson, which is quicker, the moments that it writes as we do."""
    moment = cast("datetime", value)
    return moment if moment.microsecond and moment.tzinfo is UTC else time_text(moment)


@cache
def _object_encoder(row_type: Hashable) -> Encode:
    hints = _hints(row_type)
    names = [name for name, _ in hints]
    values_of = attrgetter(*names)
    special = [(name, encode) for name, hint in hints if (encode := _encoder(hint)) is not None]

    def encode_object(value: object) -> object:
        found = dict(zip(names, values_of(value), strict=True))
        for name, encode in special:
            if found[name] is not None:
                found[name] = encode(found[name])
        return found

    return encode_object


def _list_encoder(inner: Encode | None) -> Encode:
    if inner is None:
        return lambda value: list(cast("tuple[object, ...]", value))
    return lambda value: [inner(item) for item in cast("tuple[object, ...]", value)]


@cache
def _hints(row_type: Hashable) -> tuple[tuple[str, object], ...]:
    return tuple(get_type_hints(row_type, localns=_TYPES).items())


@cache
def _decoder(kind: object) -> Decode:
    """Return the function that turns plain JSON into a value of the type `kind`."""
    if kind in _SCALARS:
        return _SCALARS[kind]
    if is_dataclass(kind):
        return _object_decoder(cast("type", kind))
    arguments = get_args(kind)
    origin = get_origin(kind)
    if origin is UnionType or NoneType in arguments:
        (inner,) = (argument for argument in arguments if argument is not NoneType)
        return _nullable(_decoder(inner))
    if origin is Literal:
        return _choice(arguments)
    if origin is tuple:
        return _list_decoder(_decoder(arguments[0]))
    return _mapping_decoder(_decoder(arguments[0]), _decoder(arguments[1]))


def _object_decoder(row_type: type) -> Decode:
    decoders = {name: _decoder(hint) for name, hint in _hints(row_type)}
    required = frozenset(
        item.name
        for item in fields(row_type)
        if item.default is MISSING and item.default_factory is MISSING
    )

    def decode(value: object) -> object:
        given = _expect(value, dict, "an object")
        if given.keys() != decoders.keys():
            _check_names(given.keys(), required, decoders.keys())
        name, found = "", {}
        try:
            for name in given:
                found[name] = decoders[name](given[name])
        except FormatError as exc:
            raise FormatError(f"field {name}: {exc}") from None
        except ArithmeticError:
            raise FormatError(f"field {name}: the number is out of range") from None
        return row_type(**found)

    return decode


def _check_names(
    given: AbstractSet[str], required: AbstractSet[str], known: AbstractSet[str]
) -> None:
    if missing := sorted(required - given):
        raise FormatError(f"field {missing[0]} is missing")
    if unknown := sorted(given - known):
        raise FormatError(f"field {unknown[0]} is not of the format")


def _nullable(inner: Decode) -> Decode:
    return lambda value: None if value is None else inner(value)


def _choice(choices: tuple[str, ...]) -> Decode:
    allowed = frozenset(choices)

    def decode(value: object) -> object:
        if not isinstance(value, str) or value not in allowed:
            raise FormatError(f"{value!r} is not one of {', '.join(choices)}")
        return value

    return decode


def _list_decoder(inner: Decode) -> Decode:
    return lambda value: tuple(inner(item) for item in _expect(value, list, "a list"))


def _mapping_decoder(key: Decode, inner: Decode) -> Decode:
    def decode(value: object) -> object:
        given = _expect(value, dict, "an object")
        return MappingProxyType({key(name): inner(given[name]) for name in given})

    return decode


Kind = TypeVar("Kind")


def _expect(value: object, kind: type[Kind], words: str) -> Kind:
    """Return a value of just that type (true is no whole number), or raise."""
    if type(value) is not kind:
        raise FormatError(f"{value!r:.80} is not {words}")
    return value


def _integer(value: object) -> object:
    return _expect(value, int, "a whole number")


def _number(value: object) -> object:
    if isinstance(value, Decimal):
        return float(value)
    return float(_expect(value, int, "a number"))


def _nano_usd(value: object) -> object:
    """Return USD as nano-USD; finer amounts do not exist, so they are refused, not rounded."""
    amount = value if isinstance(value, Decimal) else Decimal(_expect(value, int, "a number"))
    nano = amount * NANO
    if nano != nano.to_integral_value():
        raise FormatError(f"{value} USD is finer than a nano-USD")
    return NanoUsd(int(nano))


def _moment(value: object) -> object:
    text = _expect(value, str, "a time")
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise FormatError(f"{text!r:.80} is not an ISO 8601 time") from None
    if moment.utcoffset() is None:
        raise FormatError(f"{text!r} names no time zone")
    return moment.astimezone(UTC)


_SCALARS: dict[object, Decode] = {
    int: _integer,
    float: _number,
    NanoUsd: _nano_usd,
    str: lambda value: _expect(value, str, "a text"),
    bool: lambda value: _expect(value, bool, "true or false"),
    datetime: _moment,
}
