/* foreign_file.h — recognise files that users mistake for ONNX models or .job files, by their content. */
#ifndef BS_FOREIGN_FILE_H
#define BS_FOREIGN_FILE_H

#include <stddef.h>

/* How a message about a file continues behind "FILE: ", for example "a GGUF file, which holds weights without a
 * graph; …". Empty if the content is not recognised. */
typedef struct bs_foreign {
    char text[512];
} bs_foreign;

/* The expected file, which determines the remedy. */
typedef enum bs_expected {
    BS_EXPECT_JOB,   /* a training job: an ONNX or .job file */
    BS_EXPECT_MODEL, /* a model to compile: an ONNX file */
} bs_expected;

/* A sufficient number of bytes. */
enum { BS_FOREIGN_BYTES = 1 << 16 };

/* Looks at the first bytes of a file. Recognised are files of PyTorch (zip archives and pickles), safetensors, GGUF,
 * JSON (with the class of a configuration of transformers), HDF5, TensorFlow Lite, NumPy, gzip, ELF, HTML, Git LFS
 * pointers and mdot's .job files. None of them is valid ONNX. */
bs_foreign bs_recognise_foreign(const void *bytes, size_t size_bytes, bs_expected expected);

#endif
