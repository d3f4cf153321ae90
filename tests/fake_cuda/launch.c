/* launch.c — kernels. Launches are compared with the rules in mdot_abi.h, and registered functions compute them. */
#include "tests/fake_cuda/machine.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_KERNELS = 64 }; /* buckets of all entries */

typedef struct kernel {
    const char *name;
    mdot_abi_cuda_kernel abi;
    fake_cuda_body *body;
    void *user;
} kernel;

static kernel kernels[MAX_KERNELS];
static int kernel_count;
static fake_cuda_end end_mode;
static uint32_t answered_items;
static fake_cuda_launch last;
static fake_cuda_launcher *launcher;
static void *launcher_user;

void launch_reset(void)
{
    kernel_count = 0;
    end_mode = FAKE_CUDA_AT_ONCE;
    answered_items = 0;
    last = (fake_cuda_launch){0};
    launcher = NULL;
}

void fake_cuda_set_launcher(fake_cuda_launcher *l, void *user)
{
    launcher = l;
    launcher_user = user;
}

void fake_cuda_register(const char *name, const mdot_abi_cuda_kernel *abi, fake_cuda_body *body, void *user)
{
    if (kernel_count == MAX_KERNELS) abort();
    kernels[kernel_count++] = (kernel){name, *abi, body, user};
}

void fake_cuda_end_launches(fake_cuda_end end, uint32_t answered)
{
    end_mode = end;
    answered_items = answered;
}

fake_cuda_launch fake_cuda_last_launch(void) { return last; }

static const kernel *find_kernel(const char *name)
{
    for (int i = 0; i < kernel_count; i++)
        if (strcmp(kernels[i].name, name) == 0) return &kernels[i];
    return NULL;
}

/* Returns NULL with a complaint if the bytes cross a device allocation's bounds. */
static void *at(uint64_t address, uint64_t offset, size_t size_bytes)
{
    const object *o = machine_find_address(address + offset, size_bytes);
    return o != NULL ? machine_pointer(o, address + offset) : NULL;
}

/* The counter must have the launch's value. Waiting blocks advance it. */
static void pass_barriers(const kernel *k, const mdot_abi_cuda_call *call, uint32_t blocks, uint32_t item)
{
    uint32_t *counter = at(call->barrier, item * sizeof *counter, sizeof *counter);
    if (counter == NULL) return;
    if (*counter != call->barrier_base)
        machine_complain("item %u: the barrier stands at %u, the launch says %u", item, *counter, call->barrier_base);
    *counter += k->abi.grid_barriers * blocks;
}

static void kernel_precision(const kernel *k, const mdot_abi_cuda_call *call, const unsigned char *inline_inputs,
                             uint32_t item)
{
    const unsigned char *input =
        call->inline_input ? inline_inputs : at(call->input, item * call->input_stride, call->input_stride);
    unsigned char *output = at(call->output, item * call->output_stride, call->output_stride);
    unsigned char *scratch = at(call->scratch, item * call->scratch_stride, k->abi.scratch_bytes);
    const unsigned char *weights = at(call->weights, 0, 1);
    if (input == NULL || output == NULL || scratch == NULL || weights == NULL) return;
    memset(scratch, (int)item, k->abi.scratch_bytes);
    const void *inputs[MDOT_ABI_CUDA_MAX_TENSORS];
    void *outputs[MDOT_ABI_CUDA_MAX_TENSORS];
    for (int i = 0; i < MDOT_ABI_CUDA_MAX_TENSORS; i++) {
        if ((call->input_at[i] | call->output_at[i]) % 16 != 0) machine_complain("tensor %d is not aligned to 16", i);
        inputs[i] = input + call->input_at[i];
        outputs[i] = output + call->output_at[i];
    }
    if (k->body != NULL) k->body(k->user, call->length, weights, inputs, outputs);
}

static void answer(const object *function, const unsigned char *parameter, uint32_t blocks, uint32_t item)
{
    const mdot_abi_cuda_call *call = (const mdot_abi_cuda_call *)parameter;
    const kernel *k = find_kernel(function->name);
    if (k != NULL) {
        pass_barriers(k, call, blocks, item);
        kernel_precision(k, call, parameter + sizeof *call, item);
    }
    uint32_t *done = at(call->done, item * sizeof *done, sizeof *done);
    if (done == NULL) return;
    if (*done == call->ticket) machine_complain("ticket %u was used before", call->ticket);
    __atomic_store_n(done, call->ticket, __ATOMIC_RELEASE);
}

static void check_call(const kernel *k, const fake_cuda_grid *g, const object *function, const mdot_abi_cuda_call *call)
{
    if (g->threads != k->abi.threads || g->shared_bytes != k->abi.dynamic_shared_bytes ||
        function->shared_bytes < (int)g->shared_bytes)
        machine_complain("%s: %u threads and %u bytes of shared memory", k->name, g->threads, g->shared_bytes);
    if ((call->scratch_stride | call->input_stride | call->output_stride) % 16 != 0)
        machine_complain("%s: a stride is no multiple of 16", k->name);
    if ((call->weights | call->scratch) % MDOT_ABI_CUDA_ALIGNMENT != 0)
        machine_complain("%s: weights or scratch are not aligned", k->name);
    if (g->items > 1 && (call->scratch_stride < k->abi.scratch_bytes || call->inline_input))
        machine_complain("%s: %u items that share memory", k->name, g->items);
}

/* The driver copies the parameter, so a host may change it after a launch. The cubin gives the length. */
static unsigned char *copy_parameter(const kernel *k, const void *parameter)
{
    size_t size_bytes = sizeof(mdot_abi_cuda_call) + (k != NULL ? k->abi.inline_input_bytes : 0);
    unsigned char *copy = aligned_alloc(16, (size_bytes + 15) / 16 * 16);
    if (copy == NULL) abort();
    memcpy(copy, parameter, size_bytes);
    return copy;
}

/* Translates device addresses to host addresses. */
static void translate(const kernel *k, const fake_cuda_grid *g, mdot_abi_cuda_call *call)
{
    const struct {
        uint64_t *address, size_bytes;
    } parts[] = {{&call->weights, 1},
                 {&call->scratch, (g->items - 1) * call->scratch_stride + k->abi.scratch_bytes},
                 {&call->input, call->inline_input ? 0 : g->items * call->input_stride},
                 {&call->output, g->items * call->output_stride},
                 {&call->barrier, g->items * sizeof(uint32_t)},
                 {&call->done, g->items * sizeof(uint32_t)}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        *parts[i].address = (uint64_t)(uintptr_t)at(*parts[i].address, 0, (size_t)parts[i].size_bytes);
}

unsigned launch_cluster(const object *function)
{
    const kernel *k = find_kernel(function->name);
    return k != NULL ? k->abi.blocks_per_tile : 1;
}

int launch_start(object *function, const fake_cuda_grid *g, object *stream, const void *parameter)
{
    const mdot_abi_cuda_call *call = parameter;
    const kernel *k = find_kernel(function->name);
    if (g->blocks < 1 || g->items < 1 || g->items > 65535) return INVALID_VALUE;
    unsigned cluster = launch_cluster(function);
    if (g->blocks % cluster != 0) return INVALID_CLUSTER_SIZE;
    uint64_t clusters = (uint64_t)machine.multiprocessors / cluster * machine.blocks_per_multiprocessor;
    if ((uint64_t)g->blocks / cluster * g->items > clusters) return COOPERATIVE_LAUNCH_TOO_LARGE;
    if (k != NULL) check_call(k, g, function, call);
    if (stream->launch.is_there) machine_complain("a launch before the one before has ended");
    last = (fake_cuda_launch){last.count + 1, g->blocks, g->items, call->inline_input != 0};
    uint32_t at_once = end_mode == FAKE_CUDA_AT_ONCE ? g->items : answered_items;
    unsigned char *copy = copy_parameter(k, parameter);
    if (k != NULL && launcher != NULL) {
        translate(k, g, (mdot_abi_cuda_call *)copy);
        launcher(launcher_user, k->name, g, (const mdot_abi_cuda_call *)copy);
        free(copy);
        return RT_CU_SUCCESS;
    }
    for (uint32_t i = 0; i < g->items && i < at_once; i++) answer(function, copy, g->blocks, i);
    if (end_mode == FAKE_CUDA_AT_ONCE || end_mode == FAKE_CUDA_SILENT) {
        free(copy);
        return RT_CU_SUCCESS;
    }
    stream->launch = (pending){.is_there = true,
                               .queries = end_mode == FAKE_CUDA_LATE       ? 2
                                          : end_mode == FAKE_CUDA_AT_QUERY ? 1
                                                                           : -1,
                               .ends_at_query = end_mode == FAKE_CUDA_AT_QUERY,
                               .first_item = at_once,
                               .items = g->items,
                               .blocks = g->blocks,
                               .function = function,
                               .parameter = copy};
    return RT_CU_SUCCESS;
}

void launch_forget(object *stream)
{
    free(stream->launch.parameter);
    stream->launch = (pending){0};
}

void launch_end(object *stream)
{
    const pending *p = &stream->launch;
    for (uint32_t i = p->first_item; i < p->items; i++) answer(p->function, p->parameter, p->blocks, i);
    launch_forget(stream);
}

int launch_query(object *stream)
{
    pending *p = &stream->launch;
    if (!p->is_there) return RT_CU_SUCCESS;
    bool ends_at_query = p->ends_at_query;
    if (p->queries < 0 || --p->queries > 0) return RT_CU_NOT_READY;
    launch_end(stream);
    return ends_at_query ? RT_CU_SUCCESS : RT_CU_NOT_READY;
}
