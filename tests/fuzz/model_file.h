/* model_file.h — the model that bytes choose (random_model.h), as a file. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Returns the path of an ONNX file with the model, valid until the next call. */
const char *model_file(const uint8_t *data, size_t size);
