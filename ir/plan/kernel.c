/* kernel.c — buffers and kernels join the plan here, and get their names. */
#include "ir/plan/planner.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- Faults ------------------------------------------------------------------------------------------------------ */

const void *pl_reject(pl_builder *b, const ir_node *node, const char *format, ...)
{
    if (b->status != MDOT_OK) return NULL; /* the first fault counts */
    char reason[512];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    b->status = mdot_fail(b->err, MDOT_UNSUPPORTED, "%s: node \"%s\" (%s): %s", b->graph->name, node->name,
                          node->op->name, reason);
    return NULL;
}

mdot_status pl_fault(pl_builder *b)
{
    if (b->status == MDOT_OK)
        b->status = mdot_fail(b->err, MDOT_OUT_OF_MEMORY, "%s: memory ran out in planning", b->graph->name);
    return b->status;
}

/* ---- Buffers ----------------------------------------------------------------------------------------------------- */

/* Room for one more element in an arena array; the old array stays behind in the arena. */
static bool reserve(ir_arena *arena, void **array, int count, int *capacity, size_t element_bytes)
{
    if (count < *capacity) return true;
    int larger = *capacity ? 2 * *capacity : 32;
    void *grown = ir_arena_alloc(arena, (size_t)larger, element_bytes);
    if (grown == NULL) return false;
    if (count) memcpy(grown, *array, (size_t)count * element_bytes);
    *array = grown;
    *capacity = larger;
    return true;
}

/* Bytes at the length at which they are most, dimension by dimension; -1 on overflow. */
static int64_t most_bytes(const pl_builder *b, const ir_type *type)
{
    int64_t bytes = (int64_t)mdot_dtype_size_bytes(type->dtype);
    for (int d = 0; d < type->rank; d++) {
        int64_t least, most;
        if (ir_dim_is_number(type->dim[d]))
            most = type->dim[d].offset;
        else
            ir_dim_bounds(b->graph, type->dim[d], &least, &most);
        if (__builtin_mul_overflow(bytes, most, &bytes)) return -1;
    }
    return bytes;
}

int pl_add_buffer(pl_builder *b, pl_buffer_kind kind, const char *name, const ir_type *type)
{
    pl_plan *plan = b->plan;
    void *array = plan->buffers;
    if (!reserve(b->arena, &array, plan->buffer_count, &b->buffer_capacity, sizeof *plan->buffers)) return -1;
    plan->buffers = array;
    int64_t bytes = most_bytes(b, type);
    if (bytes < 0) {
        b->status = mdot_fail(b->err, MDOT_OUT_OF_RANGE, "%s: tensor \"%s\" is too large", b->graph->name, name);
        return -1;
    }
    plan->buffers[plan->buffer_count] =
        (pl_buffer){.kind = kind, .name = name, .type = *type, .max_bytes = bytes, .first_use = -1, .last_use = -1};
    return plan->buffer_count++;
}

int pl_constant_buffer(pl_builder *b, const ir_tensor *constant, const char *name, pl_weight_use use)
{
    for (int k = 0; k < b->plan->buffer_count; k++) {
        const pl_buffer *buffer = &b->plan->buffers[k];
        if (buffer->kind == PL_WEIGHT && buffer->constant == constant && buffer->use == use) return k;
    }
    ir_type type = {.dtype = constant->dtype, .rank = constant->rank};
    for (int d = 0; d < constant->rank; d++) type.dim[d] = ir_dim_number(constant->dims[d]);
    int k = pl_add_buffer(b, PL_WEIGHT, name, &type);
    if (k < 0) return -1;
    b->plan->buffers[k].constant = constant;
    b->plan->buffers[k].use = use;
    return k;
}

/* ---- Kernels ----------------------------------------------------------------------------------------------------- */

const char *pl_kind_name(pl_kind kind)
{
    static const char *const names[] = {"linear", "attention", "norm", "nest", "sequential", "recurrence"};
    return names[kind];
}

void pl_begin_kernel(pl_builder *b)
{
    b->acc_value = NULL;
    b->acc_expr = NULL;
    b->origin_count = 0;
    b->memo_count = 0;
}

static int order_of(const pl_builder *b, const ir_node *node)
{
    for (int k = 0; k < node->output_count; k++)
        if (node->outputs[k] != NULL) return pl_info(b, node->outputs[k])->order;
    return 0;
}

void pl_note_origin(pl_builder *b, const ir_node *node)
{
    for (int k = 0; k < b->origin_count; k++)
        if (b->origins[k] == node) return;
    void *array = b->origins;
    if (!reserve(b->arena, &array, b->origin_count, &b->origin_capacity, sizeof *b->origins)) return;
    b->origins = array;
    int at = b->origin_count++;
    for (; at > 0 && order_of(b, b->origins[at - 1]) > order_of(b, node); at--) b->origins[at] = b->origins[at - 1];
    b->origins[at] = node;
}

/* "/layers.0/f1/MatMul" becomes "layers_0_f1": exporters put the operator last, and the module before it says more. */
static const char *plain_name(pl_builder *b, const char *name)
{
    while (*name == '/') name++;
    const char *end = strrchr(name, '/');
    if (end == NULL) end = name + strlen(name);
    char *plain = ir_arena_strndup(b->arena, name, (size_t)(end - name));
    for (char *c = plain; c != NULL && *c; c++)
        if (!isalnum((unsigned char)*c)) *c = '_';
    return plain;
}

static const char *unique_name(pl_builder *b, pl_kind kind, const char *wanted)
{
    const char *plain = plain_name(b, wanted);
    if (plain == NULL) return NULL;
    const char *first = ir_arena_printf(b->arena, "%s.%s", pl_kind_name(kind), plain), *name = first;
    for (int number = 2, k = 0; name != NULL && k < b->plan->kernel_count; k++) {
        if (strcmp(b->plan->kernels[k].name, name) != 0) continue;
        name = ir_arena_printf(b->arena, "%s_%d", first, number++);
        k = -1;
    }
    return name;
}

/* Names of the nodes in the graph's order, and their work. Inlined values that several kernels compute count in each.
 */
static bool describe(pl_builder *b, pl_kernel *kernel)
{
    const char *origin = NULL;
    for (int k = 0; k < b->origin_count; k++) {
        const ir_node *node = b->origins[k];
        bool is_repeated = k > 0 && strcmp(node->name, b->origins[k - 1]->name) == 0;
        ir_cost cost = {0};
        node->op->cost(node, b->plan->max_length, &cost);
        kernel->flops += cost.flops;
        if (origin == NULL)
            origin = node->name;
        else if (!is_repeated && (origin = ir_arena_printf(b->arena, "%s %s", origin, node->name)) == NULL)
            return false;
    }
    kernel->origin = origin != NULL ? origin : "";
    return true;
}

mdot_status pl_end_kernel(pl_builder *b, pl_kind kind, const char *name, const pl_kernel *specification)
{
    pl_plan *plan = b->plan;
    void *array = plan->kernels;
    if (b->status != MDOT_OK || ir_arena_failed(b->arena)) return pl_fault(b);
    if (!reserve(b->arena, &array, plan->kernel_count, &b->kernel_capacity, sizeof *plan->kernels)) return pl_fault(b);
    plan->kernels = array;
    pl_kernel *kernel = &plan->kernels[plan->kernel_count];
    *kernel = *specification;
    kernel->kind = kind;
    kernel->flops = 0;
    kernel->name = unique_name(b, kind, name);
    if (kernel->name == NULL || !describe(b, kernel)) return pl_fault(b);
    plan->flops += kernel->flops;
    plan->kernel_count++;
    return MDOT_OK;
}
