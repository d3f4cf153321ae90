/* foreign_file.c — see file.h.
 *
 *   zip, gzip     signatures "PK\3\4" and 1F 8B (APPNOTE.TXT 4.3.7, RFC 1952). torch.save writes zip archives since
 *                 PyTorch 1.6, and so do torch.export and TorchScript
 *   pickle        opcode PROTO, 0x80, and the protocol 2 to 5 (pickletools.py); torch.save before 1.6
 *   safetensors   the size of the header as u64, then a JSON object (safetensors, README.md, "Format")
 *   GGUF          "GGUF" (ggml, docs/gguf.md)
 *   HDF5          "\211HDF\r\n\032\n" (HDF5 file format specification, III.A); Keras
 *   TFLite        "TFL3" at offset 4 (the file_identifier of its FlatBuffers schema)
 *   NumPy         "\x93NUMPY" (numpy.lib.format)
 */
#include "base/file.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { CLASS_BYTES = 96, PICKLE_PROTO = 0x80, GZIP_1 = 0x1f, GZIP_2 = 0x8b };

static const char from_torch[] =
    "use mdot.Job.from_torch(model, (example,)) in Python, or export the network with "
    "torch.onnx.export(model.train(), (example,), \"job.onnx\", dynamo=True, optimize=False)";
static const char from_transformers[] =
    "use mdot.Job.from_transformers(CLASS, CONFIG) in Python with the config.json of the network";
static const char to_compile[] = "export the network with torch.onnx.export(model, (example,), \"model.onnx\")";

typedef struct content {
    const unsigned char *bytes;
    size_t size;
    bool is_job; /* a training job is expected */
} content;

static bool has(const content *c, size_t offset, const char *magic, size_t length)
{
    return c->size >= offset + length && memcmp(c->bytes + offset, magic, length) == 0;
}

#define HAS(c, at, magic) has(c, at, magic, sizeof(magic) - 1)

static size_t skip_blanks(const content *c, size_t offset)
{
    while (offset < c->size && strchr(" \t\r\n", c->bytes[offset]) != NULL && c->bytes[offset] != '\0') offset++;
    return offset;
}

/* Returns the remedy for a file that holds a network's weights or code. */
static const char *remedy(const content *c) { return c->is_job ? from_torch : to_compile; }

static void recognise_torch(const content *c, bs_foreign *out)
{
    snprintf(out->text, sizeof out->text,
             "a file of torch.save, torch.export or TorchScript, which mdot cannot read; load it in Python and %s",
             remedy(c));
}

static void recognise_weights(const content *c, const char *kind, bs_foreign *out)
{
    snprintf(out->text, sizeof out->text, "a %s file, which holds weights without the network's graph; %s", kind,
             c->is_job ? from_transformers : to_compile);
}

/* Copies the first class in "architectures": ["LlamaForCausalLM"] in a configuration of transformers. Returns false if
 * the text lacks it. */
static bool read_class(const content *c, char class[CLASS_BYTES])
{
    static const char key[] = "\"architectures\"";
    const unsigned char *found = memmem(c->bytes, c->size, key, sizeof key - 1);
    if (found == NULL) return false;
    size_t offset = (size_t)(found - c->bytes) + sizeof key - 1;
    for (const char *expected = ":[\""; *expected != '\0'; expected++) {
        offset = skip_blanks(c, offset);
        if (offset == c->size || c->bytes[offset++] != (unsigned char)*expected) return false;
    }
    size_t length = 0;
    for (; offset + length < c->size && length < CLASS_BYTES - 1 && c->bytes[offset + length] != '"'; length++) {
        unsigned char letter = c->bytes[offset + length];
        bool is_word = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                       (letter >= '0' && letter <= '9') || letter == '_';
        if (!is_word) return false;
        class[length] = (char)letter;
    }
    class[length] = '\0';
    return length > 0 && offset + length < c->size && c->bytes[offset + length] == '"';
}

static void recognise_json(const content *c, bs_foreign *out)
{
    char class[CLASS_BYTES];
    if (!read_class(c, class))
        snprintf(out->text, sizeof out->text, "a JSON file, which holds no graph; %s", remedy(c));
    else if (c->is_job)
        snprintf(out->text, sizeof out->text,
                 "a configuration of transformers, which holds no graph; use mdot.Job.from_transformers(\"%s\", "
                 "transformers.AutoConfig.from_pretrained(FOLDER)) in Python",
                 class);
    else
        snprintf(out->text, sizeof out->text,
                 "a configuration of transformers (%s), which holds neither graph nor weights; %s", class, to_compile);
}

static bool is_safetensors(const content *c)
{
    uint64_t header_bytes = 0;
    for (size_t i = 0; c->size > sizeof header_bytes && i < sizeof header_bytes; i++)
        header_bytes |= (uint64_t)c->bytes[i] << (8 * i);
    return header_bytes >= 2 && c->size > sizeof header_bytes && header_bytes < UINT32_MAX &&
           c->bytes[sizeof header_bytes] == '{';
}

static bool is_json(const content *c)
{
    size_t offset = skip_blanks(c, 0), behind = skip_blanks(c, offset + 1);
    if (offset >= c->size || behind >= c->size) return false;
    unsigned char first = c->bytes[offset], second = c->bytes[behind];
    if (first == '{') return second == '"' || second == '}';
    return first == '[' && (second == '{' || second == '"' || second == '[' || second == ']');
}

static bool is_html(const content *c)
{
    size_t offset = skip_blanks(c, 0);
    return HAS(c, offset, "<!DOCTYPE") || HAS(c, offset, "<!doctype") || HAS(c, offset, "<html") ||
           HAS(c, offset, "<?xml");
}

bs_foreign bs_recognise_foreign(const void *bytes, size_t size_bytes, bs_expected expected)
{
    const content c = {.bytes = bytes,
                       .size = size_bytes < BS_FOREIGN_BYTES ? size_bytes : BS_FOREIGN_BYTES,
                       .is_job = expected == BS_EXPECT_JOB};
    bs_foreign out = {""};
    bool is_pickle = size_bytes > 2 && c.bytes[0] == PICKLE_PROTO && c.bytes[1] >= 2 && c.bytes[1] <= 5;
    if (HAS(&c, 0, "PK\3\4") || is_pickle)
        recognise_torch(&c, &out);
    else if (HAS(&c, 0, "GGUF"))
        recognise_weights(&c, "GGUF", &out);
    else if (is_safetensors(&c))
        recognise_weights(&c, "safetensors", &out);
    else if (HAS(&c, 0, "\x93NUMPY"))
        recognise_weights(&c, "NumPy", &out);
    else if (HAS(&c, 0, "\211HDF\r\n\032\n"))
        snprintf(out.text, sizeof out.text, "an HDF5 file, for example of Keras; export the network as ONNX");
    else if (HAS(&c, 4, "TFL3"))
        snprintf(out.text, sizeof out.text, "a TensorFlow Lite file; convert it to ONNX with tf2onnx");
    else if (HAS(&c, 0, "version https://git-lfs"))
        snprintf(out.text, sizeof out.text, "a pointer of Git LFS in place of the file; run `git lfs pull`");
    else if (HAS(&c, 0, "MDOTJOB"))
        snprintf(out.text, sizeof out.text, "a job file of mdot, %s",
                 c.is_job ? "whose name must end in .job" : "which only `mdot predict` and `mdot report` read");
    else if (HAS(&c, 0, "\177ELF"))
        snprintf(out.text, sizeof out.text, "an ELF file, for example a compiled predictor; %s",
                 c.is_job ? "pass a predictor with --model and a network as the job" : to_compile);
    else if (size_bytes > 2 && c.bytes[0] == GZIP_1 && c.bytes[1] == GZIP_2)
        snprintf(out.text, sizeof out.text, "compressed by gzip; decompress it with `gunzip`");
    else if (is_html(&c))
        snprintf(out.text, sizeof out.text,
                 "an HTML or XML page, for example a failed download; download the file again");
    else if (is_json(&c))
        recognise_json(&c, &out);
    return out;
}
