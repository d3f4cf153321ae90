/* mdot_base.h — status codes, error messages and element types for all mdot libraries.
 *
 * mdot.h, mdotc.h and mdot_abi.h include this header; include one of them instead.
 *
 * Errors: every function that can fail returns an mdot_status and takes an optional mdot_error as its last argument. On
 * failure, results stay as they were, and the error (if given) holds the reason as one line of text without a newline.
 * The libraries never print, exit or abort. */
#ifndef MDOT_BASE_H
#define MDOT_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The declarations of every header stand between these two: C names in C++, exported by the libraries. */
#if defined(__GNUC__)
#define MDOT_PUSH_VISIBILITY _Pragma("GCC visibility push(default)")
#define MDOT_POP_VISIBILITY _Pragma("GCC visibility pop")
#else
#define MDOT_PUSH_VISIBILITY
#define MDOT_POP_VISIBILITY
#endif
#ifdef __cplusplus
#define MDOT_BEGIN_DECLARATIONS                                                                                        \
    extern "C" {                                                                                                       \
    MDOT_PUSH_VISIBILITY
#define MDOT_END_DECLARATIONS                                                                                          \
    MDOT_POP_VISIBILITY                                                                                                \
    }
#else
#define MDOT_BEGIN_DECLARATIONS MDOT_PUSH_VISIBILITY
#define MDOT_END_DECLARATIONS MDOT_POP_VISIBILITY
#endif

MDOT_BEGIN_DECLARATIONS

/* Header version; mdot_version, mdotjob_version and mdotc_version return the version of the library in use. As one
 * number, 1.2.3 is 1002003. The build reads the version from here. */
#define MDOT_VERSION_MAJOR 0
#define MDOT_VERSION_MINOR 4
#define MDOT_VERSION_PATCH 0
#define MDOT_VERSION_NUMBER (MDOT_VERSION_MAJOR * 1000000 + MDOT_VERSION_MINOR * 1000 + MDOT_VERSION_PATCH)
#define MDOT_VERSION_STRING "0.4.0"

/* ---- How this interface grows -------------------------------------------------------------------------------------
 *
 * A program built against one version of the libraries runs with every later one with the same SOVERSION.
 *
 * Structs that begin with struct_size may get more fields, always at the end. The program that creates such a struct
 * sets struct_size to sizeof the struct and unused fields to zero, which always selects the default:
 *
 *     mdot_configuration c = {.struct_size = sizeof c, .batch = 64, .gpu = "A100"};
 *     mdot_predictor_info info = MDOT_INIT(mdot_predictor_info);
 *
 *   passed in   Fields missing in an older program count as zero. A newer program's additional bytes must be zero.
 *               Otherwise the result is INCOMPATIBLE, because they request an unknown feature.
 *   filled      The library fills the first struct_size bytes, and writes zero to bytes beyond its own struct.
 *               struct_size keeps its value.
 *   arrays      The first struct_size is the distance between elements. In an array passed in, each element has the
 *               same struct_size. In an array to be filled, the first one counts and the library writes the others.
 *
 * A struct_size that is zero or otherwise invalid is INVALID_ARGUMENT, with the struct's name; the library makes no
 * guess.
 *
 * All other structs stay as they are: mdot_error, mdot_dim, mdot_dim_floor, mdot_dim_binding, mdot_load, mdot_input,
 * mdot_output, mdot_operator_traits, mdot_peak_moment, mdot_recorded_memory. Fields called reserved must be zero. Enum
 * values and rows of maps are appended. A changed function gets another name. docs/contributing/interface.md explains
 * the rest: the meaning of SOVERSION and the comparisons in a test. */

/* name, value, description. Values are part of the ABI: append only. */
#define MDOT_STATUS_MAP(X)                                                                                             \
    X(OK, 0, "success")                                                                                                \
    X(INVALID_ARGUMENT, 1, "an argument is wrong")                                                                     \
    X(NOT_FOUND, 2, "a file or a name does not exist")                                                                 \
    X(IO, 3, "reading or writing failed")                                                                              \
    X(MALFORMED, 4, "a file breaks the rules of its format")                                                           \
    X(UNSUPPORTED, 5, "valid, but beyond what mdot handles")                                                           \
    X(INCOMPATIBLE, 6, "made for another version or another machine")                                                  \
    X(CORRUPT, 7, "a checksum differs: the file is damaged")                                                           \
    X(OUT_OF_RANGE, 8, "a length or an index is outside its bounds")                                                   \
    X(OUT_OF_MEMORY, 9, "memory ran out")                                                                              \
    X(TOOLCHAIN, 10, "LLVM, the linker or NVRTC failed")                                                               \
    X(DEVICE, 11, "an accelerator failed")

/* Status of a call (MDOT_STATUS_MAP). */
typedef enum mdot_status {
#define MDOT_STATUS_ENUM(name, value, text) MDOT_##name = value,
    MDOT_STATUS_MAP(MDOT_STATUS_ENUM)
#undef MDOT_STATUS_ENUM
} mdot_status;

/* Returns the name of a status.
 *
 * @param status any number
 * @return for example "MDOT_CORRUPT"; "MDOT_?" for an unknown value; static, never NULL
 */
const char *mdot_status_name(mdot_status status);
/* Returns the description of a status (MDOT_STATUS_MAP).
 *
 * @param status any number
 * @return for example "a checksum differs: the file is damaged"; static, never NULL
 */
const char *mdot_status_text(mdot_status status);

/* Owned by the caller and with a fixed size, because error reports need no allocation then. */
typedef struct mdot_error {
    mdot_status status; /* the status that the function returned */
    char message[1024]; /* names the file, the node or option, the reason and the remedy; ends with NUL */
} mdot_error;

/* Fills *err (may be NULL) like printf and returns `status`, so that a caller can write `return mdot_fail(...)`. A
 * longer message is cut and ends in "...".
 *
 * @param err receives status and message; may be NULL
 * @param status the status to set and return
 * @param format as in printf, followed by its arguments; NULL: the description of the status
 * @return `status`
 * @threads any */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
mdot_status
mdot_fail(mdot_error *err, mdot_status status, const char *format, ...);

/* Element types: name, value, size in bytes, text. Values are those of ONNX's TensorProto.DataType (onnx.proto3). */
#define MDOT_DTYPE_MAP(X)                                                                                              \
    X(F32, 1, 4, "f32")                                                                                                \
    X(U8, 2, 1, "u8")                                                                                                  \
    X(I8, 3, 1, "i8")                                                                                                  \
    X(U16, 4, 2, "u16")                                                                                                \
    X(I16, 5, 2, "i16")                                                                                                \
    X(I32, 6, 4, "i32")                                                                                                \
    X(I64, 7, 8, "i64")                                                                                                \
    X(STRING, 8, 0, "string")                                                                                          \
    X(BOOL, 9, 1, "bool")                                                                                              \
    X(F16, 10, 2, "f16")                                                                                               \
    X(F64, 11, 8, "f64")                                                                                               \
    X(U32, 12, 4, "u32")                                                                                               \
    X(U64, 13, 8, "u64")                                                                                               \
    X(BF16, 16, 2, "bf16")

/* Element type of a tensor (MDOT_DTYPE_MAP). */
typedef enum mdot_dtype {
    MDOT_DTYPE_NONE = 0, /* no type: an absent or optional tensor */
#define MDOT_DTYPE_ENUM(name, value, size, text) MDOT_DTYPE_##name = value,
    MDOT_DTYPE_MAP(MDOT_DTYPE_ENUM)
#undef MDOT_DTYPE_ENUM
} mdot_dtype;

/* Returns the name of an element type.
 *
 * @param dtype any number
 * @return for example "f32"; "?" for an unknown value; static
 */
const char *mdot_dtype_name(mdot_dtype dtype);
/* Returns the size of one element.
 *
 * @param dtype any number
 * @return size in bytes; 0 for strings and unknown values
 */
size_t mdot_dtype_size_bytes(mdot_dtype dtype);

enum {
    MDOT_MAX_RANK = 8 /* most dimensions of a tensor */
};

/* Binds one named dimension of an ONNX model to `value`, at least 1, or to the dimension named `same_as` if that is
 * set. For a predictor, `value` may be 0: empty inputs, such as the keys and values of a past, are removed from the
 * artefact. */
typedef struct mdot_dim_binding {
    const char *name;    /* name of the dimension in the model, for example "sequence" */
    int64_t value;       /* its extent in elements; ignored if same_as is set */
    const char *same_as; /* name of another dimension with the same extent; NULL: `value` counts */
} mdot_dim_binding;

MDOT_END_DECLARATIONS

#ifdef __cplusplus
/* A struct with struct_size set and all other fields zero. */
template <typename type> inline type mdot_init()
{
    type value = type();
    value.struct_size = sizeof(type);
    return value;
}
#define MDOT_INIT(type) mdot_init<type>()
#else
#define MDOT_INIT(type) ((type){.struct_size = sizeof(type)})
#endif
#endif
