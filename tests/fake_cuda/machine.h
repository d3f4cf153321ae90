/* machine.h — shared by the fake library's files: objects, and the begin and end of each function. */
#pragma once

#include "runtime/cuda/cuda_driver.h"
#include "tests/fake_cuda/fake_cuda.h"

enum { /* CUresult values in addition to those of cuda_driver.h */
       INVALID_VALUE = 1,
       INVALID_DEVICE = 101,
       INVALID_CONTEXT = 201,
       INVALID_HANDLE = 400,
       NOT_FOUND = 500,
       COOPERATIVE_LAUNCH_TOO_LARGE = 720,
       INVALID_CLUSTER_SIZE = 912
};
enum { NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14 }; /* CUfunction_attribute */

typedef enum object_kind { CONTEXT, MODULE, FUNCTION, STREAM, DEVICE_BLOCK, HOST_BLOCK } object_kind;

/* A pending launch. */
typedef struct pending {
    bool is_there;
    int queries;        /* queries until the launch ends; negative = it hangs */
    bool ends_at_query; /* the last query reports the end */
    uint32_t first_item, items, blocks;
    struct object *function;
    unsigned char *parameter; /* the launch's own copy */
} pending;

typedef struct object {
    object_kind kind;
    int references;        /* references to a context */
    unsigned char *memory; /* memory of a block */
    size_t size_bytes;
    uint64_t address;      /* device address of memory */
    char name[64];         /* name of a function */
    int shared_bytes;      /* limit of a function */
    pending launch;        /* launch in a stream */
    struct object *module; /* module of a function */
    struct object *next;
} object;

/* Locks, counts the call, and returns the error of a scripted fault, or 0. */
int machine_enter(const char *function);
int machine_leave(int result);
/* The same for functions that need a current context. */
int machine_enter_context(const char *function);

object *machine_add(object_kind kind);
void machine_remove(object *o);
/* Returns NULL with a complaint if `handle` is not an object of this kind. */
object *machine_find(object_kind kind, const void *handle);
/* Returns the object that contains `size_bytes` bytes at a device address, or NULL with a complaint. */
object *machine_find_address(uint64_t address, size_t size_bytes);
static inline void *machine_pointer(const object *o, uint64_t address) { return o->memory + (address - o->address); }
void machine_remove_functions(const object *module);
/* Called when the last reference to a context ends, which destroys the objects. Remaining objects cause a complaint
 * unless excused, because a context that cannot be made current leaves no other way to destroy them. */
void machine_end_context(void);
void machine_excuse(void);
/* The used memory of all devices. */
size_t machine_used_bytes(void);
/* Whether a launch in any stream hangs. */
bool machine_is_stuck(void);

__attribute__((format(printf, 1, 2))) void machine_complain(const char *format, ...);

/* The current context: the top of the thread's context stack. */
object *machine_current(void);
bool machine_push(object *context);
object *machine_pop(void);

extern fake_cuda_machine machine;

/* ---- launch.c ---------------------------------------------------------------------------------------------------- */

/* The blocks of a registered kernel's clusters; 1 for others. */
unsigned launch_cluster(const object *function);
int launch_start(object *function, const fake_cuda_grid *g, object *stream, const void *parameter);
/* Queries a stream. A late launch ends during the query. */
int launch_query(object *stream);
void launch_end(object *stream);
void launch_forget(object *stream);

/* ---- Reset ------------------------------------------------------------------------------------------------------- */

void driver_reset(void);
void launch_reset(void);
