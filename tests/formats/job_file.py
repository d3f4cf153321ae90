"""A reader of `.job` files, written from docs/reference/formats/job.md alone, with Python's standard library."""
import struct

from mdot_file import checksum, require

REQUIRED = 1
PHASES, LOADS, SQUARES = 3, 6, 3


class Varints:
    """Numbers of a section or record."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def is_at_end(self):
        return self.at == len(self.data)

    def number(self):
        value = shift = 0
        while True:
            require(self.at < len(self.data), "a number is cut")
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                require(byte != 0 or shift == 7, "a number is not in its shortest form")
                return value

    def optional(self):
        """A number that older files lack."""
        return 0 if self.is_at_end() else self.number()

    def signed(self):
        value = self.number()
        return -(value + 1) // 2 if value & 1 else value // 2

    def raw(self):
        size = self.number()
        require(self.at + size <= len(self.data), "a record is cut")
        self.at += size
        return self.data[self.at - size:self.at]

    def text(self):
        return self.raw().decode()

    def record(self):
        return Varints(self.raw())


def sections(data):
    magic, version, operators, size, total, count, reserved = struct.unpack_from("<8sIIQQII", data, 0)
    require(magic == b"MDOTJOB\0", "the magic is wrong")
    require(version == 3, f"version {version}")
    require(size == len(data), "the size is wrong")
    require(reserved == 0, "the reserved field is set")
    require(checksum(data[32:], checksum(data[:24], 0)) == total, "the checksum is wrong")
    at, found, last = 40 + 16 * count, {}, 0
    for i in range(count):
        tag, flags, length = struct.unpack_from("<IIQ", data, 40 + 16 * i)
        require(tag > last, "tags do not ascend")
        require(tag <= 6 or not flags & REQUIRED, f"section {tag} is unknown and required")
        found[tag], last = Varints(data[at:at + length]), tag
        at += length
    require(at == len(data), "bytes are left behind the sections")
    return operators, found


def operator(record, index, types):
    kind = types[record.number()]
    parameters = record.number()
    mask = record.number()
    settings = {s: record.signed() for s in range(mask.bit_length()) if mask >> s & 1}
    mask = record.number()
    loads = [[0] * (LOADS + SQUARES) for _ in range(PHASES)]
    for k in range(mask.bit_length()):
        if mask >> k & 1:
            value = record.number()
            if k < PHASES * LOADS:
                loads[k // LOADS][k % LOADS] = value
            elif (k - PHASES * LOADS) // SQUARES < PHASES:
                loads[(k - PHASES * LOADS) // SQUARES][LOADS + k % SQUARES] = value
    inputs = [index - record.number() for _ in range(record.number())]
    return {"type": kind["name"], "known": kind["known"], "parameters": parameters, "settings": settings, "loads": loads,
            "inputs": inputs, "block": record.number(), "frozen_parameters": record.optional(), "flags": record.optional(),
            "batch_settings": record.optional(), "module": None}


def program(section):
    out = dict(zip(("precision", "attention", "has_loss", "trained_bytes", "frozen_bytes", "buffer_bytes"),
                   (section.number() for _ in range(6))))
    out["recorded"] = []
    for _ in range(section.number()):
        record = section.record()
        precision, recompute, analytic = record.number(), record.number(), record.number()
        moments = [dict(zip(("per_sample", "per_step", "weight_copies", "gradients", "logits"),
                            (record.number() for _ in range(5)))) for _ in range(record.number())]
        if not record.is_at_end():
            for moment in moments:
                moment["per_square"] = record.number()
        require(record.is_at_end(), "a record of memory has more numbers than the specification")
        out["recorded"].append({"precision": precision, "recompute": recompute, "analytic": analytic, "moments": moments})
    if not section.is_at_end():
        out["framework"] = section.number()
        out["check"] = dict(zip(("dispatched_forward", "dispatched_backward", "job_forward", "job_backward", "recorded_peak",
                                 "predicted_peak", "unpriced_bytes", "unpriced_operators"),
                                (section.number() for _ in range(8))))
        out["check"]["modules"] = section.text()
    return out


SETTING_SLOTS, MOMENT_FIELDS, MOMENTS = 48, 6, 16


def slot_name(owner, slot, operators):
    """The place of a number that varies with the length."""
    if owner < operators:
        if slot < SETTING_SLOTS:
            return "setting", slot
        names = {75: "parameters", 76: "frozen_parameters"}
        return (names[slot],) if slot in names else ("load", slot - SETTING_SLOTS)
    if slot < 3:
        return (("trained_bytes", "frozen_bytes", "buffer_bytes")[slot],)
    record, k = divmod(slot - 3, 1 + MOMENT_FIELDS * MOMENTS)
    return ("analytic", record) if k == 0 else ("moment", record, *divmod(k - 1, MOMENT_FIELDS))


def lengths(section, operators):
    out = {"name": section.text(), "current": section.number(), "lengths": [section.number() for _ in range(3)], "numbers": []}
    owner = 0
    for _ in range(section.number()):
        owner += section.number()
        slot = section.number()
        values = [section.signed() for _ in range(3)]
        out["numbers"].append({"owner": owner, "slot": slot_name(owner, slot, operators), "values": values})
    return out


def read(data):
    count, found = sections(data)
    job = dict(zip(("batch", "optimizer", "notes"), (found[1].optional() for _ in range(3))))
    types = []
    for _ in range(found[2].number()):
        record = found[2].record()
        types.append({"name": record.text(), "known": bool(record.number()), "traits": [record.number() for _ in range(7)]})
        require(record.is_at_end(), "a type has more numbers than the specification")
    job["operators"] = [operator(found[3].record(), i, types) for i in range(count)]
    require(found[3].is_at_end(), "bytes are left behind the operators")
    if 4 in found:
        modules = [found[4].text() for _ in range(found[4].number())]
        for op in job["operators"]:
            index = found[4].number()
            op["module"] = modules[index - 1] if index > 0 else None
    job["program"] = program(found[5]) if 5 in found else None
    job["lengths"] = lengths(found[6], count) if 6 in found else None
    return job
