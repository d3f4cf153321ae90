/* hooks.c — the sanitizers' entry points, linked into every kernel's shared object and hidden there. The compiler calls
 * __tsan_* before each access visible to another thread. It calls __ubsan_* if a typed access is misaligned or leaves
 * an array. The names come from the run-time libraries of compiler-rt and GCC, which are not linked. */
#include "tests/cuda_host/device_calls.h"

extern char __start_ch_static_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_ch_static_shared[] __attribute__((weak, visibility("hidden")));

void ch_module_section(ch_section *out) { *out = (ch_section){__start_ch_static_shared, __stop_ch_static_shared}; }

#define HOOK __attribute__((visibility("hidden")))
#define CALLER __builtin_return_address(0)

#define ACCESS(name, bytes, writes)                                                                                    \
    HOOK void __tsan_##name(void *address);                                                                            \
    void __tsan_##name(void *address) { ch_access(address, bytes, writes, CALLER); }
#define ACCESSES(bytes)                                                                                                \
    ACCESS(read##bytes, bytes, 0)                                                                                      \
    ACCESS(write##bytes, bytes, 1)                                                                                     \
    ACCESS(unaligned_read##bytes, bytes, 0)                                                                            \
    ACCESS(unaligned_write##bytes, bytes, 1)                                                                           \
    ACCESS(volatile_read##bytes, bytes, 0)                                                                             \
    ACCESS(volatile_write##bytes, bytes, 1)
ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

#define RANGE(name, writes)                                                                                            \
    HOOK void __tsan_##name(void *address, size_t bytes);                                                              \
    void __tsan_##name(void *address, size_t bytes) { ch_access(address, bytes, writes, CALLER); }
RANGE(read_range, 0)
RANGE(write_range, 1)

HOOK void *__tsan_memcpy(void *to, const void *from, size_t bytes);
void *__tsan_memcpy(void *to, const void *from, size_t bytes)
{
    ch_access(from, bytes, 0, CALLER);
    ch_access(to, bytes, 1, CALLER);
    return __builtin_memcpy(to, from, bytes);
}

HOOK void *__tsan_memset(void *to, int value, size_t bytes);
void *__tsan_memset(void *to, int value, size_t bytes)
{
    ch_access(to, bytes, 1, CALLER);
    return __builtin_memset(to, value, bytes);
}

/* Hooks without a use here: calls and the start of the library. */
HOOK void __tsan_init(void);
void __tsan_init(void) {}
HOOK void __tsan_func_entry(void *caller);
void __tsan_func_entry(void *caller) { (void)caller; }
HOOK void __tsan_func_exit(void);
void __tsan_func_exit(void) {}

HOOK void __ubsan_handle_type_mismatch_v1(void *data, void *pointer);
void __ubsan_handle_type_mismatch_v1(void *data, void *pointer)
{
    (void)data;
    ch_misuse(pointer ? "misaligned access" : "access through a null pointer", CALLER);
}

HOOK void __ubsan_handle_out_of_bounds(void *data, void *index);
void __ubsan_handle_out_of_bounds(void *data, void *index)
{
    (void)data;
    (void)index;
    ch_misuse("index out of the array's bounds", CALLER);
}
