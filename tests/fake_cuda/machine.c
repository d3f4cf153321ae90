/* machine.c — the state of the fake library: objects, faults, counts, complaints. */
#include "tests/fake_cuda/machine.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FAULTS = 8, MAX_DEPTH = 8 };

fake_cuda_machine machine = {.device_count = 1, .major = 9, .multiprocessors = 132, .blocks_per_multiprocessor = 1};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t unblocked = PTHREAD_COND_INITIALIZER;
static const char *blocked; /* function whose calls hang, from a certain call on */
static int blocked_from;
static object *objects;

typedef struct fault {
    const char *function;
    int call, result;
    bool is_sticky;
} fault;
static fault faults[MAX_FAULTS];
static int fault_count, sticky_result;

static const char *const functions[] = {
#define FUNCTION_NAME(name, suffix, parameters) #name,
    RT_CUDA_SYMBOL_MAP(FUNCTION_NAME)
#undef FUNCTION_NAME
        "cuOccupancyMaxActiveClusters",
};
enum { FUNCTION_COUNT = sizeof functions / sizeof functions[0] };
static int calls[FUNCTION_COUNT];
static char complaint[256];
static bool is_excused;

static __thread object *stack[MAX_DEPTH];
static __thread int depth;

void fake_cuda_reset(const fake_cuda_machine *m)
{
    pthread_mutex_lock(&lock);
    machine = *m;
    fault_count = sticky_result = 0;
    memset(calls, 0, sizeof calls);
    complaint[0] = '\0';
    is_excused = false;
    while (objects != NULL) {
        launch_forget(objects);
        machine_remove(objects);
    }
    driver_reset();
    launch_reset();
    pthread_mutex_unlock(&lock);
}

static int function_index(const char *function)
{
    for (int i = 0; i < FUNCTION_COUNT; i++)
        if (strcmp(functions[i], function) == 0) return i;
    fprintf(stderr, "the fake libcuda has no function %s\n", function);
    abort();
}

void fake_cuda_fail(const char *function, int call, int result, bool is_sticky)
{
    pthread_mutex_lock(&lock);
    if (fault_count == MAX_FAULTS) abort();
    faults[fault_count++] = (fault){functions[function_index(function)], call, result, is_sticky};
    pthread_mutex_unlock(&lock);
}

void fake_cuda_block(const char *function, int call)
{
    pthread_mutex_lock(&lock);
    blocked_from = call;
    blocked = function != NULL ? functions[function_index(function)] : NULL;
    pthread_cond_broadcast(&unblocked);
    pthread_mutex_unlock(&lock);
}

void fake_cuda_end_now(void)
{
    pthread_mutex_lock(&lock);
    for (object *o = objects; o != NULL; o = o->next)
        if (o->kind == STREAM) launch_end(o);
    pthread_mutex_unlock(&lock);
}

int fake_cuda_calls(const char *function)
{
    pthread_mutex_lock(&lock);
    int count = calls[function_index(function)];
    pthread_mutex_unlock(&lock);
    return count;
}

int fake_cuda_alive(void)
{
    pthread_mutex_lock(&lock);
    int count = 0;
    for (const object *o = objects; o != NULL; o = o->next) count += o->kind == CONTEXT ? o->references : 1;
    pthread_mutex_unlock(&lock);
    return count;
}

const char *fake_cuda_complaint(void) { return complaint[0] != '\0' ? complaint : NULL; }

void machine_complain(const char *format, ...)
{
    if (complaint[0] != '\0') return;
    va_list args;
    va_start(args, format);
    vsnprintf(complaint, sizeof complaint, format, args);
    va_end(args);
}

int machine_enter(const char *function)
{
    pthread_mutex_lock(&lock);
    int index = function_index(function);
    int call = ++calls[index];
    while (blocked == functions[index] && call >= blocked_from) pthread_cond_wait(&unblocked, &lock);
    for (int i = 0; i < fault_count; i++) {
        if (faults[i].function != functions[index] || faults[i].call != call) continue;
        if (faults[i].is_sticky) sticky_result = faults[i].result;
        return faults[i].result;
    }
    return sticky_result;
}

int machine_enter_context(const char *function)
{
    int result = machine_enter(function);
    if (result != RT_CU_SUCCESS || depth > 0) return result;
    machine_complain("%s without a current context", function);
    return INVALID_CONTEXT;
}

int machine_leave(int result)
{
    pthread_mutex_unlock(&lock);
    return result;
}

object *machine_add(object_kind kind)
{
    object *o = calloc(1, sizeof *o);
    if (o == NULL) abort();
    o->kind = kind;
    o->next = objects;
    objects = o;
    return o;
}

void machine_remove(object *o)
{
    object **link = &objects;
    while (*link != o) link = &(*link)->next;
    *link = o->next;
    free(o->memory);
    free(o);
}

void machine_remove_functions(const object *module)
{
    for (object *o = objects, *next; o != NULL; o = next) {
        next = o->next;
        if (o->kind == FUNCTION && o->module == module) machine_remove(o);
    }
}

void machine_excuse(void) { is_excused = true; }

void machine_end_context(void)
{
    for (object *o = objects, *next; o != NULL; o = next) {
        next = o->next;
        if (o->kind == CONTEXT) continue;
        if (!is_excused) machine_complain("a context released with an object (kind %d) in it", (int)o->kind);
        launch_forget(o);
        machine_remove(o);
    }
}

object *machine_find(object_kind kind, const void *handle)
{
    for (object *o = objects; o != NULL; o = o->next)
        if (o == handle && o->kind == kind) return o;
    machine_complain("a handle that is none, or was ended before (kind %d)", (int)kind);
    return NULL;
}

object *machine_find_address(uint64_t address, size_t size_bytes)
{
    for (object *o = objects; o != NULL; o = o->next)
        if (o->memory != NULL && address >= o->address && address - o->address <= o->size_bytes &&
            size_bytes <= o->size_bytes - (address - o->address))
            return o;
    machine_complain("%zu bytes at address %#llx are in no allocation", size_bytes, (unsigned long long)address);
    return NULL;
}

size_t machine_used_bytes(void)
{
    size_t bytes = 0;
    for (const object *o = objects; o != NULL; o = o->next) bytes += o->kind == DEVICE_BLOCK ? o->size_bytes : 0;
    return bytes;
}

bool machine_is_stuck(void)
{
    for (const object *o = objects; o != NULL; o = o->next)
        if (o->kind == STREAM && o->launch.is_there && o->launch.queries < 0) return true;
    return false;
}

object *machine_current(void) { return depth > 0 ? stack[depth - 1] : NULL; }

bool machine_push(object *context)
{
    if (depth == MAX_DEPTH) {
        machine_complain("%d contexts on a thread's stack: is none popped?", MAX_DEPTH);
        return false;
    }
    stack[depth++] = context;
    return true;
}

object *machine_pop(void)
{
    if (depth == 0) {
        machine_complain("a context popped that was not pushed");
        return NULL;
    }
    return stack[--depth];
}
