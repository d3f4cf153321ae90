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

static const char from_torch[] =
    "use mdot.Job.from_torch(model, (example,)) in Python, or export the network with "
    "torch.onnx.export(model.train(), (example,), \"job.onnx\", dynamo=True, optimize=False)";
static const char from_transformers[] =
    "use mdot.Job.from_transformers(CLASS, CONFIG) in Python with the config.json of the network";
static const char to_compile[] = "export the network with torch.onnx.export(model, (example,), \"model.onnx\")";

typedef struct format {
    const char *magic;
    size_t size, offset; /* of the magic in the file */
    const char *text, *job_remedy, *model_remedy;
} format;

#define FORMAT(offset, magic, ...)                                                                                     \
    {                                                                                                                  \
        magic, sizeof(magic) - 1, offset, __VA_ARGS__                                                                  \
    }
#define PICKLE(protocol) FORMAT(0, "\x80" protocol, TORCH, from_torch, to_compile)
#define TORCH "a file of torch.save, torch.export or TorchScript, which mdot cannot read; load it in Python and "
#define WEIGHTS "file, which holds weights without the network's graph; "
static const format formats[] = {
    FORMAT(0, "PK\3\4", TORCH, from_torch, to_compile),
    PICKLE("\2"),
    PICKLE("\3"),
    PICKLE("\4"),
    PICKLE("\5"),
    FORMAT(0, "GGUF", "a GGUF " WEIGHTS, from_transformers, to_compile),
    FORMAT(0, "\x93NUMPY", "a NumPy " WEIGHTS, from_transformers, to_compile),
    FORMAT(0, "\211HDF\r\n\032\n", "an HDF5 file, for example of Keras; export the network as ONNX", "", ""),
    FORMAT(4, "TFL3", "a TensorFlow Lite file; convert it to ONNX with tf2onnx", "", ""),
    FORMAT(0, "version https://git-lfs", "a pointer of Git LFS in place of the file; run `git lfs pull`", "", ""),
    FORMAT(0, "MDOTJOB", "a job file of mdot, ", "whose name must end in .job",
           "which only `mdot predict` and `mdot report` read"),
    FORMAT(0, "\177ELF", "an ELF file, for example a compiled predictor; ",
           "pass a predictor with --model and a network as the job", to_compile),
    FORMAT(0, "\x1f\x8b", "compressed by gzip; decompress it with `gunzip`", "", ""),
};
static const format safetensors = {NULL, 0, 0, "a safetensors " WEIGHTS, from_transformers, to_compile};
static const format html = {NULL, 0, 0, "an HTML or XML page, for example a failed download; download the file again",
                            "",   ""};
static const format text = {NULL,
                            0,
                            0,
                            "a text, no ONNX or .job file; ",
                            "pass another program's configuration beside the job, by --config FILE of `python -m mdot`",
                            to_compile};

static bool is_safetensors(const unsigned char *bytes, size_t size)
{
    uint64_t header_bytes = 0;
    for (size_t i = 0; size > sizeof header_bytes && i < sizeof header_bytes; i++)
        header_bytes |= (uint64_t)bytes[i] << (8 * i);
    return header_bytes >= 2 && size > sizeof header_bytes && header_bytes < UINT32_MAX &&
           bytes[sizeof header_bytes] == '{';
}

static bool is_blank(unsigned char letter) { return letter == ' ' || (letter >= '\t' && letter <= '\r'); }

/* A cut job file is no text. */
static const format *format_of_text(const unsigned char *bytes, size_t size)
{
    static const char job[] = "MDOTJOB";
    size_t first = 0;
    if (size == 0 || memcmp(bytes, job, size < sizeof job ? size : sizeof job) == 0) return NULL;
    for (size_t i = 0; i < size; i++)
        if (bytes[i] < ' ' && !is_blank(bytes[i])) return NULL;
    while (first < size && is_blank(bytes[first])) first++;
    return first == size ? NULL : bytes[first] == '<' ? &html : &text;
}

bs_foreign bs_recognise_foreign(const void *content, size_t size_bytes, bs_expected expected)
{
    const unsigned char *bytes = content;
    size_t size = size_bytes < BS_FOREIGN_BYTES ? size_bytes : BS_FOREIGN_BYTES;
    bs_foreign out = {""};
    const format *found = is_safetensors(bytes, size) ? &safetensors : NULL;
    for (size_t i = 0; found == NULL && i < sizeof formats / sizeof *formats; i++) {
        const format *f = &formats[i];
        if (size >= f->offset + f->size && memcmp(bytes + f->offset, f->magic, f->size) == 0) found = f;
    }
    if (found == NULL) found = format_of_text(bytes, size);
    if (found != NULL)
        snprintf(out.text, sizeof out.text, "%s%s", found->text,
                 expected == BS_EXPECT_JOB ? found->job_remedy : found->model_remedy);
    return out;
}
