/* model_file.c — see model_file.h. */
#include "tests/fuzz/model_file.h"
#include "tests/fuzz/memory_file.h"
#include "tests/support/random_model.h"

const char *model_file(const uint8_t *data, size_t size)
{
    pb_buffer bytes = random_model(data, size);
    const char *path = memory_file(bytes.data, bytes.size, "model.onnx");
    pb_free(&bytes);
    return path;
}
