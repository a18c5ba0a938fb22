"""Mutations of ONNX files: of their bytes, and of their fields."""

import random

__all__ = ["mutated"]

SIZES = [
    0, 1, -1, 2, 3, 7, 255, 1 << 16, 1 << 31, (1 << 31) - 1, 1 << 40, (1 << 63) - 1, -(1 << 63),
]


def mutated(data: bytes, seed: int) -> bytes:
    """The file with some mutations; the seed alone chooses them."""
    rng = random.Random(seed)
    if rng.random() < 0.5:
        data = _fields(data, rng)
    else:
        for _ in range(rng.randint(1, 4)):
            data = _bytes(data, rng)
    return data


def _bytes(data, rng):
    """Some bytes changed, removed, repeated or inserted."""
    if not data:
        return data
    start = rng.randrange(len(data))
    end = min(len(data), start + rng.choice([1, 1, 2, 8, 100]))
    choice = rng.randrange(5)
    if choice == 0:
        flipped = bytes([data[start] ^ (1 << rng.randrange(8))])
        return data[:start] + flipped + data[start + 1 :]
    if choice == 1:
        return data[:start] + rng.randbytes(end - start) + data[end:]
    if choice == 2:
        return data[:start] + data[end:]
    if choice == 3:
        return data[:end] + data[start:]
    return data[:start] if rng.random() < 0.3 else data[:start] + b"\xff" * 9 + b"\x7f" + data[end:]


def _fields(data, rng):
    """Some fields of the parsed model set to other values of their type."""
    import onnx

    model = onnx.ModelProto.FromString(data)
    for _ in range(rng.randint(1, 3)):
        messages = [message for message in _messages(model) if message.ListFields()]
        if messages:
            _change(rng.choice(messages), messages, rng)
    return model.SerializeToString()


def _messages(message):
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for part in value if field.is_repeated else [value]:
                yield from _messages(part)


def _change(message, messages, rng):
    field, value = rng.choice(message.ListFields())
    if field.is_repeated:
        place = rng.randrange(len(value)) if len(value) else None
        choice = rng.randrange(3)
        if choice == 0 and place is not None:
            del value[place]
        elif choice == 1 and place is not None:
            value.append(value[place])
        elif field.message_type is None and place is not None:
            value[place] = _other(field, value[place], messages, rng)
    elif field.message_type is not None:
        message.ClearField(field.name)
    else:
        setattr(message, field.name, _other(field, value, messages, rng))


def _other(field, value, messages, rng):
    """Another value of the type of a field."""
    if isinstance(value, bytes):
        return _bytes(value, rng)
    if isinstance(value, str):
        return rng.choice(_names(messages) + ["", "x" * 300])
    if isinstance(value, float):
        return rng.choice([0.0, -1.0, 1e38, float("nan"), float("inf")])
    if field.enum_type is not None:
        return rng.choice([number.number for number in field.enum_type.values])
    limit = 31 if "32" in _kind(field) else 63
    fits = [size for size in SIZES if -(1 << limit) <= size < 1 << limit]
    if "uint" in _kind(field):
        fits = [size for size in fits if size >= 0]
    return rng.choice(fits)


def _kind(field):
    """Name of the integer type of a field."""
    return {3: "int64", 4: "uint64", 5: "int32", 13: "uint32"}.get(field.type, "int64")


def _names(messages):
    """Names and operators in a model."""
    found = set()
    for message in messages:
        for _, value in message.ListFields():
            values = [value] if isinstance(value, str) else value
            if isinstance(values, list) or hasattr(values, "append"):
                found.update(v for v in values if isinstance(v, str))
    return sorted(found)
