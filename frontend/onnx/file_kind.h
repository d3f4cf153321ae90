/* file_kind.h — files that are given as ONNX models although they have another format. */
#ifndef FE_FILE_KIND_H
#define FE_FILE_KIND_H

#include "mdot/mdot_base.h"

/* MALFORMED, naming the format and the remedy, if the bytes begin like a file of another common format. ONNX models
 * begin differently, because these bytes would be a field that ModelProto lacks. */
mdot_status fe_check_kind(const void *bytes, size_t size_bytes, const char *file, mdot_error *err);

#endif
