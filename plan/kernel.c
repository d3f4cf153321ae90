/* kernel.c — adds buffers and kernels to the plan, and names them. */
#include "plan/plan_builder.h"

#include "plan/kernel_kind.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const void *pl_reject(pl_builder *b, const ir_node *node, const char *format, ...)
{
    if (b->status != MDOT_OK) return NULL; /* keep the first error */
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
    if (b->status == MDOT_OK) b->status = BS_OUT_OF_MEMORY(b->err, "the plan of %s", b->graph->name);
    return b->status;
}

/* Size in bytes at the length that maximises it, dimension by dimension; -1 on overflow. */
static int64_t most_bytes(const pl_builder *b, const ir_type *type)
{
    int64_t bytes = (int64_t)mdot_dtype_size_bytes(type->dtype);
    for (int d = 0; d < type->rank; d++) {
        int64_t minimum, maximum;
        if (ir_dim_is_number(type->dim[d]))
            maximum = type->dim[d].offset;
        else
            ir_dim_bounds(b->graph, type->dim[d], &minimum, &maximum);
        if (__builtin_mul_overflow(bytes, maximum, &bytes)) return -1;
    }
    return bytes;
}

int pl_add_buffer(pl_builder *b, pl_buffer_kind kind, const char *name, const ir_type *type)
{
    pl_plan *plan = b->plan;
    pl_buffer *array =
        ir_arena_grow(b->arena, plan->buffers, plan->buffer_count, &b->buffer_capacity, sizeof *plan->buffers);
    if (array == NULL) return -1;
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
    uint64_t hash = ir_hash_bytes(&constant, sizeof constant);
    const ir_hash_entry *entry = ir_hash_map_first(&b->constants[use], hash);
    while (entry != NULL && entry->key != constant) entry = ir_hash_map_next(entry);
    if (entry != NULL) return entry->number;
    ir_type type = {.dtype = constant->dtype, .rank = constant->rank};
    for (int d = 0; d < constant->rank; d++) type.dim[d] = ir_dim_number(constant->dims[d]);
    int k = pl_add_buffer(b, PL_WEIGHT, name, &type);
    if (k < 0 || !ir_hash_map_add(&b->constants[use], hash, constant, k)) return -1;
    b->plan->buffers[k].constant = constant;
    b->plan->buffers[k].use = use;
    return k;
}

static int order_of(const pl_builder *b, const ir_node *node)
{
    for (int k = 0; k < node->output_count; k++)
        if (node->outputs[k] != NULL) return pl_info(b, node->outputs[k])->order;
    return 0;
}

/* Origins before `node` in the graph. */
static int origins_before(const pl_builder *b, const ir_node *node)
{
    int order = order_of(b, node), low = 0, high = b->origin_count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (order_of(b, b->origins[middle]) < order)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void pl_note_origin(pl_builder *b, const ir_node *node)
{
    int index = origins_before(b, node);
    for (int k = index; k < b->origin_count && order_of(b, b->origins[k]) == order_of(b, node); k++)
        if (b->origins[k] == node) return;
    const ir_node **array =
        ir_arena_grow(b->arena, b->origins, b->origin_count, &b->origin_capacity, sizeof *b->origins);
    if (array == NULL) return;
    b->origins = array;
    memmove(&b->origins[index + 1], &b->origins[index], (size_t)(b->origin_count - index) * sizeof *b->origins);
    b->origins[index] = node;
    b->origin_count++;
}

void pl_begin_kernel(pl_builder *b, const ir_node *node)
{
    b->acc_value = NULL;
    b->acc_expr = NULL;
    b->origin_count = 0;
    b->memo_count = 0;
    if (node != NULL) pl_note_origin(b, node);
}

/* "/layers.0/f1/MatMul" becomes "layers_0_f1": exporters put the operator last, and the module before it is more
 * informative. */
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
    ir_hash_entry *taken = first != NULL ? ir_hash_map_find_text(&b->names, first) : NULL;
    for (const ir_hash_entry *found = taken; found != NULL; found = ir_hash_map_find_text(&b->names, name)) {
        name = ir_arena_printf(b->arena, "%s_%d", first, ++taken->number); /* all numbers up to this one are taken */
        if (name == NULL) return NULL;
    }
    return name != NULL && ir_hash_map_add_text(&b->names, name, 1) ? name : NULL;
}

/* Joins the nodes' names in the graph's order; consecutive nodes of one name are listed once. */
static const char *join_origins(pl_builder *b)
{
    if (b->origin_count == 0) return "";
    if (b->origin_count == 1) return b->origins[0]->name;
    size_t length = 0;
    for (int k = 0; k < b->origin_count; k++) length += strlen(b->origins[k]->name) + 1;
    char *text = ir_arena_alloc(b->arena, length, 1), *end = text;
    if (text == NULL) return NULL;
    for (int k = 0; k < b->origin_count; k++) {
        const char *name = b->origins[k]->name;
        if (k > 0 && strcmp(name, b->origins[k - 1]->name) == 0) continue;
        if (k > 0) *end++ = ' ';
        end = stpcpy(end, name);
    }
    return text;
}

/* Inlined values count in each kernel that computes them. */
static bool describe(pl_builder *b, pl_kernel *kernel)
{
    for (int k = 0; k < b->origin_count; k++) kernel->flops += ir_node_cost(b->origins[k], b->plan->max_length).flops;
    kernel->origin = join_origins(b);
    return kernel->origin != NULL;
}

mdot_status pl_end_kernel(pl_builder *b, pl_kind kind, const char *name, const pl_kernel *specification)
{
    pl_plan *plan = b->plan;
    if (b->status != MDOT_OK || ir_arena_failed(b->arena)) return pl_fault(b);
    pl_kernel *array =
        ir_arena_grow(b->arena, plan->kernels, plan->kernel_count, &b->kernel_capacity, sizeof *plan->kernels);
    if (array == NULL) return pl_fault(b);
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

mdot_status pl_end_steps(pl_builder *b, const ir_node *node, ir_dim steps, int first)
{
    pl_plan *plan = b->plan;
    int count = plan->kernel_count - first;
    pl_kernel *kernels = IR_NEW_ARRAY(b->arena, pl_kernel, count + 1);
    double repeats = (double)ir_dim_at(steps, plan->max_length), flops = 0;
    if (kernels == NULL) return pl_fault(b);
    for (int k = 0; k < count; k++) {
        kernels[k] = plan->kernels[first + k];
        kernels[k].is_step = true;
        flops += kernels[k].flops;
    }
    plan->kernel_count = first;
    pl_begin_kernel(b, node);
    pl_recurrence recurrence = {.steps = steps, .kernel_count = count, .kernels = kernels};
    BS_TRY(pl_end_kernel(b, PL_RECURRENCE, node->name, &(pl_kernel){.recurrence = recurrence}));
    plan->kernels[first].flops += repeats * flops;
    plan->flops += (repeats - 1) * flops; /* each kernel has been counted once */
    return MDOT_OK;
}
