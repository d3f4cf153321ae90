/* file_kind.c — recognises files of other formats by their first bytes, so that the message names the format. */
#include "frontend/onnx/file_kind.h"

#include <string.h>

#define KIND(bytes, format, remedy)                                                                                    \
    {                                                                                                                  \
        bytes, sizeof bytes - 1, format, remedy                                                                        \
    }

static const struct {
    const char *bytes;
    size_t count;
    const char *format, *remedy;
} kinds[] = {
    KIND("PK\3\4", "a zip archive, for example a PyTorch checkpoint",
         "export the module with torch.onnx.export, because a checkpoint holds no graph"),
    KIND("\x80\2", "a pickle, for example an old PyTorch checkpoint",
         "export the module with torch.onnx.export, because a checkpoint holds no graph"),
    KIND("\x7f"
         "ELF",
         "an ELF file, for example a compiled artefact", "give the ONNX model here"),
    KIND("\x89HDF", "an HDF5 file, for example a Keras model", "export it with tf2onnx"),
    KIND("\x1f\x8b", "a gzip archive", "unpack it"),
};

mdot_status fe_check_kind(const void *bytes, size_t size_bytes, const char *file, mdot_error *err)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (size_bytes >= kinds[i].count && memcmp(bytes, kinds[i].bytes, kinds[i].count) == 0)
            return mdot_fail(err, MDOT_MALFORMED, "%s: this is %s instead of an ONNX model; %s", file, kinds[i].format,
                             kinds[i].remedy);
    return MDOT_OK;
}
