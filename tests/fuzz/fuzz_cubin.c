/* fuzz_cubin.c — libFuzzer on the reader of cubins. Any bytes are refused with a message, or describe kernels with
 * ranges inside the file. If the input has a NUL, the compiler's log follows the last one.
 *
 *     scripts/fuzz.sh 600 cubin
 */
#include "codegen/cuda/nvrtc.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = memrchr(data, '\0', size);
    size_t log_bytes = end != NULL ? size - (size_t)(end - data) - 1 : 0;
    char *log = calloc(log_bytes + 1, 1);
    ir_arena *arena = ir_arena_create(0);
    if (log == NULL || arena == NULL) abort();
    if (log_bytes > 0) memcpy(log, end + 1, log_bytes);
    cu_cubin cubin;
    mdot_error err = {0};
    if (cu_cubin_read(data, size, log, arena, &cubin, &err) == MDOT_OK) {
        for (int i = 0; i < cubin.kernel_count; i++)
            if (cubin.kernels[i].registers == 0 || cubin.kernels[i].code_bytes > size ||
                cu_cubin_find(&cubin, cubin.kernels[i].name) == NULL)
                abort();
    } else if (err.message[0] == '\0') {
        abort();
    }
    ir_arena_destroy(arena);
    free(log);
    return 0;
}
