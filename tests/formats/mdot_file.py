"""A reader of `.mdot` files, written from docs/reference/formats/mdot.md alone, with Python's standard library."""
import struct

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
TYPES = {1: "f32", 2: "u8", 3: "i8", 4: "u16", 5: "i16", 6: "i32", 7: "i64", 9: "bool", 10: "f16", 11: "f64", 12: "u32",
         13: "u64", 16: "bf16"}


def rotl(x, n):
    return (x << n | x >> (64 - n)) & MASK


def checksum(piece, seed):
    lanes = [seed, seed ^ GOLDEN, (seed + GOLDEN) & MASK, ~seed & MASK]
    padded = bytes(piece) + bytes(-len(piece) % 32)
    for i, (word,) in enumerate(struct.iter_unpack("<Q", padded)):
        lanes[i % 4] = rotl((lanes[i % 4] ^ word) * GOLDEN & MASK, 29)
    total = len(piece)
    for lane in lanes:
        total = (total ^ lane) * GOLDEN & MASK
        total ^= total >> 32
    return total


class FormatError(Exception):
    pass


def require(condition, text):
    if not condition:
        raise FormatError(text)


def sections(data):
    """{name: (offset in the file, size)} of an ELF file."""
    require(data[:6] == b"\x7fELF\x02\x01", "no little-endian ELF file of 64 bits")
    table_at, = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<HHH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, table_at + i * size) for i in range(count)]
    text_at = headers[names][4]
    found = {}
    for header in headers:
        start = text_at + header[0]
        found[data[start:data.index(b"\0", start)].decode()] = (header[4], header[5])
    return found


class Table:
    """The section .mdot.table."""

    def __init__(self, data):
        at, size = sections(data)[".mdot.table"]
        self.bytes = data[at:at + size]
        (magic, self.abi_version, self.table_bytes, self.file_bytes, self.checksum, self.weights_bytes, name_at, compiler_at,
         self.entries_at, self.entry_count, self.images_at, self.image_count, self.bucket_count, self.code_count,
         ) = self.unpack("<8sIIQQQIIIIIIII", 0)
        require(magic == b"MDOTART\0", "the magic is wrong")
        require(self.abi_version == 10, f"version {self.abi_version}")
        require(self.file_bytes == len(data), "the size is wrong")
        head = bytearray(self.bytes[:32])
        head[24:32] = bytes(8)
        total = checksum(data[at + 32:], checksum(head, checksum(data[:at], 0)))
        require(total == self.checksum, "the checksum is wrong")
        self.name, self.compiler = self.text(name_at), self.text(compiler_at)

    def unpack(self, form, at):
        return struct.unpack_from(form, self.bytes, at)

    def text(self, at):
        return "" if at == 0 else self.bytes[at:self.bytes.index(b"\0", at)].decode()

    def tensor(self, at):
        name_at, dtype, rank = self.unpack("<III", at)
        dims = []
        for i in range(rank):
            scale, offset, *floor = self.unpack("<qqiiii", at + 16 + 32 * i)
            dims.append({"scale": scale, "offset": offset})
            if floor[0]:
                dims[-1].update(zip(("times", "step", "start", "divisor"), floor))
        columns_at, = self.unpack("<I", at + 280)
        return {"name": self.text(name_at), "dtype": TYPES[dtype], "dims": dims}, self.text(columns_at)

    def schema_hash(self, *lists):
        total = 0
        for tensors_at in lists:
            total = checksum(struct.pack("<I", len(tensors_at)), total)
            for at in tensors_at:
                kept = bytearray(self.bytes[at:at + 288])
                for field in (0, 12, 272, 276, 280, 284):
                    kept[field:field + 4] = bytes(4)
                total = checksum(self.tensor(at)[0]["name"].encode() + b"\0", checksum(kept, total))
        return total

    def bucket(self, at):
        max_length, flops, kernels_at, kernel_count, number, flops_at, most_items = self.unpack("<qdIIIII", at)
        kernels = []
        for i in range(kernel_count):
            name_at, kind_at, is_split, is_rowwise, _ = self.unpack("<IIIIq", kernels_at + 24 * i)
            kernel_flops, = self.unpack("<d", flops_at + 8 * i)
            kernels.append({"name": self.text(name_at), "kind": self.text(kind_at), "flops": kernel_flops})
        return {"max_length": max_length, "flops": flops, "kernels": kernels, "number": number, "most_items": most_items}

    def entries(self):
        for i in range(self.entry_count):
            (name_at, inputs_at, input_count, outputs_at, output_count, buckets_at, bucket_count, least_length,
             schema_hash) = self.unpack("<IIIIIIIIQ", self.entries_at + 40 * i)
            inputs = [inputs_at + 288 * k for k in range(input_count)]
            outputs = [outputs_at + 288 * k for k in range(output_count)]
            yield {"name": self.text(name_at), "min_length": least_length, "schema_hash": schema_hash,
                   "computed_hash": self.schema_hash(inputs, outputs),
                   "inputs": [self.tensor(at)[0] for at in inputs], "columns": [self.tensor(at)[1] for at in inputs],
                   "outputs": [self.tensor(at)[0] for at in outputs],
                   "buckets": [self.bucket(buckets_at + 48 * k) for k in range(bucket_count)]}

    def images(self):
        for i in range(self.image_count):
            (kind, number, variant, target_at, compute_at, kernels_at, kernel_count, _, _, code_bytes, _,
             weights_bytes) = self.unpack("<IIIIIIIIQQQQ", self.images_at + 64 * i)
            scratch = [self.unpack("<IIQQ", kernels_at + 24 * k)[2] for k in range(kernel_count)] if kind == 1 else []
            yield {"kind": {1: "cpu", 2: "cuda"}[kind], "target": self.text(target_at),
                   "kernel_precision": self.text(compute_at), "image_bytes": code_bytes, "weights_bytes": weights_bytes,
                   "scratch": scratch}
