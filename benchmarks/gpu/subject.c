/* subject.c — see subject.h. */
#include "benchmarks/gpu/subject.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A sanitizer makes a launch take a thousand times as long. */
enum { TIMEOUT_MS = 60000, ALIGNMENT = 64 };

mdot_status subject_open(subject *s, const char *path, mdot_error *err)
{
    *s = (subject){0};
    const mdot_open_options on_gpu = {.struct_size = sizeof on_gpu,
                                      .device = "cuda:0",
                                      .device_timeout_ms = TIMEOUT_MS},
                            on_cpu = {.struct_size = sizeof on_cpu, .device = "cpu"};
    mdot_status status = mdot_predictor_open(path, &on_gpu, &s->gpu, err);
    if (status == MDOT_OK) status = mdot_predictor_open(path, &on_cpu, &s->cpu, err);
    if (status == MDOT_OK) status = mdot_context_create(s->gpu, &s->gpu_context, err);
    if (status == MDOT_OK) status = mdot_context_create(s->cpu, &s->cpu_context, err);
    s->info = MDOT_INIT(mdot_predictor_info);
    if (status == MDOT_OK) status = mdot_predictor_get_info(s->gpu, &s->info);
    if (status != MDOT_OK) return status;
    s->table = s->gpu->table;
    return MDOT_OK;
}

void subject_close(subject *s)
{
    mdot_context_destroy(s->gpu_context);
    mdot_context_destroy(s->cpu_context);
    mdot_predictor_close(s->gpu);
    mdot_predictor_close(s->cpu);
    *s = (subject){0};
}

mdot_status subject_check(const subject *s, mdot_error *err)
{
    const char *message = "";
    mdot_status status = mdot_context_get_device_status(s->gpu_context, &message);
    return status == MDOT_OK ? MDOT_OK : mdot_fail(err, status, "the GPU failed: %s", message);
}

static size_t tensor_bytes(const mdot_abi_tensor *tensor, int64_t length)
{
    size_t bytes = (size_t)rt_tensor_bytes(tensor, length);
    return (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT;
}

static size_t all_bytes(const mdot_abi_tensor *tensors, uint32_t count, int64_t length)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < count; i++) bytes += tensor_bytes(&tensors[i], length);
    return bytes;
}

/* The multiplier comes from Knuth's MMIX generator (TAOCP 2, 3.3.4). The upper bits are the random ones. */
static uint32_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 40);
}

/* Kernels clamp indices to the tables, so table sizes are irrelevant here. A mask's first element is always true. */
static void fill(const mdot_abi_tensor *tensor, int64_t length, void *data, uint64_t *state)
{
    uint64_t count = rt_element_count(tensor, length);
    uint32_t character = next_random(state) % 8;
    double scale = ldexp(1, (int)character - 5) * 0x1p-24; /* up to 1/32 … 4 */
    for (uint64_t i = 0; i < count; i++) {
        uint32_t random = next_random(state);
        switch ((mdot_dtype)tensor->dtype) {
        case MDOT_DTYPE_F32: ((float *)data)[i] = (float)(random * scale); break;
        case MDOT_DTYPE_F64: ((double *)data)[i] = random * scale; break;
        case MDOT_DTYPE_I64: ((int64_t *)data)[i] = random % 64; break;
        case MDOT_DTYPE_I32: ((int32_t *)data)[i] = (int32_t)(random % 64); break;
        case MDOT_DTYPE_BOOL: ((bool *)data)[i] = i == 0 || random % 10 > character; break;
        default: /* zeros */ break;
        }
    }
}

static unsigned char *allocate(size_t bytes)
{
    unsigned char *memory = aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT) / ALIGNMENT * ALIGNMENT);
    if (memory != NULL) memset(memory, 0, bytes);
    return memory;
}

bool batch_make(batch *b, const mdot_abi_table *table, const mdot_abi_entry *entry, int64_t length, size_t count,
                uint64_t seed)
{
    const mdot_abi_tensor *inputs = rt_inputs(table, entry), *outputs = rt_outputs(table, entry);
    size_t tensors = entry->input_count + entry->output_count;
    *b = (batch){.table = table, .entry = entry, .length = length, .count = count};
    b->output_bytes = count * all_bytes(outputs, entry->output_count, length);
    b->inputs = allocate(count * all_bytes(inputs, entry->input_count, length));
    b->outputs = allocate(b->output_bytes);
    b->items = calloc(count, sizeof *b->items);
    b->pointers = calloc(count * tensors, sizeof *b->pointers);
    if (b->inputs == NULL || b->outputs == NULL || b->items == NULL || b->pointers == NULL) {
        batch_free(b);
        return false;
    }
    unsigned char *input = b->inputs, *output = b->outputs;
    void **pointer = b->pointers;
    for (size_t item = 0; item < count; item++) {
        b->items[item] = (rt_item){(const void *const *)pointer, pointer + entry->input_count};
        for (uint32_t i = 0; i < entry->input_count; i++) {
            fill(&inputs[i], length, input, &seed);
            *pointer++ = input;
            input += tensor_bytes(&inputs[i], length);
        }
        for (uint32_t i = 0; i < entry->output_count; i++) {
            *pointer++ = output;
            output += tensor_bytes(&outputs[i], length);
        }
    }
    return true;
}

void batch_free(batch *b)
{
    free(b->inputs);
    free(b->outputs);
    free(b->items);
    free(b->pointers);
    *b = (batch){0};
}
