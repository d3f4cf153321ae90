/* machine.h — what the fake library's files share: objects, and how a function begins and ends. */
#ifndef FAKE_CUDA_MACHINE_H
#define FAKE_CUDA_MACHINE_H

#include "runtime/cuda/cuda_driver.h"
#include "tests/fake_cuda/fake_cuda.h"

enum { /* CUresult, beside those of cuda_driver.h */
       INVALID_VALUE = 1,
       INVALID_DEVICE = 101,
       INVALID_CONTEXT = 201,
       INVALID_HANDLE = 400,
       NOT_FOUND = 500,
       COOPERATIVE_LAUNCH_TOO_LARGE = 720
};
enum { NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14 }; /* CUfunction_attribute */

typedef enum object_kind { CONTEXT, MODULE, FUNCTION, STREAM, DEVICE_BLOCK, HOST_BLOCK } object_kind;

/* A launch that has not ended. */
typedef struct pending {
    bool is_there;
    int queries; /* after which it ends, negative: never */
    bool tells;  /* the last of them hears of the end */
    uint32_t first_item, items, blocks;
    struct object *function;
    unsigned char *parameter; /* a copy, for the launch's own */
} pending;

typedef struct object {
    object_kind kind;
    int references;        /* of a context */
    unsigned char *memory; /* of a block */
    size_t size_bytes;
    uint64_t address;      /* of memory, for the device */
    char name[64];         /* of a function */
    int shared_bytes;      /* that a function may have */
    pending launch;        /* in a stream */
    struct object *module; /* of a function */
    struct object *next;
} object;

/* Locks, counts the call, and gives the result that a fault wants, 0 where none does. */
int machine_enter(const char *function);
int machine_leave(int result);
/* The same for functions that need a current context. */
int machine_enter_context(const char *function);

object *machine_add(object_kind kind);
void machine_remove(object *o);
/* NULL, with a complaint, when `handle` is no object of the kind. */
object *machine_find(object_kind kind, const void *handle);
/* The object that a device address lies in with `size_bytes` behind it; NULL with a complaint. */
object *machine_find_address(uint64_t address, size_t size_bytes);
static inline void *machine_pointer(const object *o, uint64_t address)
{
    return o->memory + (address - o->address);
}
void machine_remove_functions(const object *module);
/* The last reference to a context is gone, and with it go the objects. A complaint when any was left, unless excused:
 * a context that cannot be made current leaves no other way to end them. */
void machine_end_context(void);
void machine_excuse(void);
/* Of all devices' memory. */
size_t machine_used_bytes(void);
/* Whether anything in any stream goes on forever. */
bool machine_is_stuck(void);

__attribute__((format(printf, 1, 2))) void machine_complain(const char *format, ...);

/* The contexts that a thread has made current, the last one on top. */
object *machine_current(void);
bool machine_push(object *context);
object *machine_pop(void);

extern fake_cuda_machine machine;

/* ---- launch.c ---------------------------------------------------------------------------------------------------- */

int launch_start(object *function, const fake_cuda_grid *g, object *stream, const void *parameter);
/* What asking a stream does: a late launch comes to its end. */
int launch_query(object *stream);
void launch_end(object *stream);
void launch_forget(object *stream);

/* ---- At a reset -------------------------------------------------------------------------------------------------- */

void driver_reset(void);
void launch_reset(void);

#endif
