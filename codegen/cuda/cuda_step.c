/* cuda_step.c — parameters of a step's function: named pointers passed as offsets (see cuda_step.h). */
#include "codegen/cuda/cuda_step.h"

#include "codegen/byte_pool.h"
#include "codegen/cuda/cuda_text.h"
#include "codegen/cuda/memory_placement.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *cu_type_name(mdot_dtype dtype)
{
    switch (dtype) {
    case MDOT_DTYPE_F32: return "float";
    case MDOT_DTYPE_I64: return "long long";
    case MDOT_DTYPE_I32: return "int";
    case MDOT_DTYPE_BOOL: return "bool";
    default: return NULL;
    }
}

static char form_of(const cu_function *f, int buffer, const cu_location *location)
{
    const cu_placement *placement = cu_placement_of(f, buffer);
    return location == &placement->half ? 'h' : location == &placement->output ? 'o' : 'p';
}

const char *cu_location_name(const cu_layout *layout, ir_arena *arena, int buffer, const cu_location *location)
{
    const char *name = layout->stages->buffers[buffer].name;
    while (*name && !cu_is_name_char(*name)) name++;
    const char *suffix = location->is_half ? "_half" : "";
    if (location == &layout->placements[buffer].output) suffix = "_result";
    return ir_arena_printf(arena, "b%d_%.40s%s", buffer, cu_identifier(arena, name), suffix);
}

static const char *element_type(const pl_buffer *buffer, const cu_location *location)
{
    return location->is_half ? "half_t" : cu_type_name(buffer->type.dtype);
}

void cu_refuse(cu_function *f, const char *format, ...)
{
    char reason[256];
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    if (f->status != MDOT_OK) return;
    f->status = mdot_fail(f->err, MDOT_UNSUPPORTED, "kernel %s (%s): %s", f->step->kernel->name,
                          f->step->kernel->origin, reason);
}

static const char *find_parameter(const cu_function *f, const char *key)
{
    for (int k = 0; k < f->parameter_count; k++)
        if (strcmp(f->parameters[k].key, key) == 0) return f->parameters[k].name;
    return NULL;
}

/* A new parameter's name: `name_hint`, with a number if that is taken. */
static const char *add_parameter(cu_function *f, const char *key, const char *name_hint)
{
    if (f->parameter_count == CU_MAX_PARAMETERS) {
        cu_refuse(f, "more than %d buffers", CU_MAX_PARAMETERS);
        return "";
    }
    bool is_taken = false;
    for (int k = 0; k < f->parameter_count; k++) is_taken = is_taken || strcmp(f->parameters[k].name, name_hint) == 0;
    cu_parameter *p = &f->parameters[f->parameter_count];
    snprintf(p->key, sizeof p->key, "%s", key);
    if (is_taken)
        snprintf(p->name, sizeof p->name, "%s_%d", name_hint, f->parameter_count);
    else
        snprintf(p->name, sizeof p->name, "%s", name_hint);
    f->parameter_count++;
    return p->name;
}

static bool is_written(const cu_step *step, int buffer)
{
    for (int k = 0; k < step->access_count; k++)
        if (step->accesses[k].buffer == buffer && step->accesses[k].is_written) return true;
    return false;
}

static const char *const memories[] = {
    [CU_SHARED] = "dynamic_shared", [CU_SCRATCH] = "scratch_memory", [CU_OUTPUT] = "output_memory"};

/* A step receives offsets and converts them to pointers. Inputs are passed as pointers, because they may be in the
 * parameter. */
static void put_pointer(cu_function *f, cu_memory_space kind, const char *qualifier, const char *type, const char *name)
{
    if (kind == CU_INPUT) {
        cu_put(&f->declarations, ", const %s *%s", type, name);
        return;
    }
    cu_put(&f->declarations, ", int %s_at", name);
    const char *memory = kind == CU_WEIGHTS ? cu_schedule_of(f)->weights : memories[kind];
    cu_put(&f->locals, "    %s%s *const %s = (%s%s *)(%s() + %s_at);\n", qualifier, type, name, qualifier, type, memory,
           name);
}

const char *cu_pointer(cu_function *f, int buffer, const cu_location *location, const char *name_hint)
{
    const pl_buffer *b = cu_buffer(f, buffer);
    const char *type = element_type(b, location);
    char key[32];
    if (type == NULL) {
        cu_refuse(f, "CUDA code does not support values of type %s", mdot_dtype_name(b->type.dtype));
        return "";
    }
    if (location->kind == CU_WEIGHTS) {
        const ir_tensor *constant = b->constant;
        return cu_weight_pointer(f, name_hint, type, constant->data,
                                 (size_t)constant->count * mdot_dtype_size_bytes(constant->dtype));
    }
    snprintf(key, sizeof key, "%d%c", buffer, form_of(f, buffer, location));
    const char *name = find_parameter(f, key);
    if (name != NULL) return name;
    name = add_parameter(f, key, name_hint);
    const char *qualifier = is_written(f->step, buffer) ? "" : "const ";
    put_pointer(f, location->kind, qualifier, type, name);
    const char *location_text = cu_location_name(f->layout, f->arena, buffer, location);
    if (location->kind == CU_INPUT)
        cu_put(&f->arguments, ", (const %s *)(input + %s)", type, location_text);
    else
        cu_put(&f->arguments, ", %s", location_text);
    return name;
}

const char *cu_weight_pointer(cu_function *f, const char *name_hint, const char *type, const void *bytes,
                              size_t size_bytes)
{
    char key[32];
    size_t offset = cg_pool_intern(f->weights, bytes, size_bytes, CU_WEIGHT_ALIGNMENT);
    if (f->weights->failed && f->status == MDOT_OK) f->status = mdot_fail(f->err, MDOT_OUT_OF_MEMORY, NULL);
    snprintf(key, sizeof key, "w%zu", offset);
    const char *name = find_parameter(f, key);
    if (name != NULL) return name;
    name = add_parameter(f, key, name_hint);
    put_pointer(f, CU_WEIGHTS, "const ", type, name);
    cu_put(&f->arguments, ", %zu", offset);
    return name;
}

void cu_work_pointer(cu_function *f, const char *type, const char *name)
{
    put_pointer(f, CU_SHARED, "", type, name);
    cu_put(&f->arguments, ", %zu", f->layout->work_offset[f->number]);
}

void cu_sync_first(cu_function *f, const char *condition)
{
    if (f->wait != CU_NO_WAIT)
        cu_put(&f->body, "        %s%s; // what earlier steps wrote\n", condition, cu_wait_text(f->wait));
    f->wait = CU_NO_WAIT;
}

const char *cu_store_text(cu_function *f, const cu_location *location, const char *element, const char *before,
                          const char *after, const char *indent)
{
    int split = cu_split(f->layout, f->step);
    bool is_shared = location->kind == CU_SHARED, is_common = cu_blocks_of(cu_schedule_of(f), f->step) > 1;
    if (is_shared && split > 1)
        return ir_arena_printf(f->arena, "%sfor (int block = 0; block < %d; block++) %sin_block(%s, block)%s;\n",
                               indent, split, before, element, after);
    const char *first = is_common && split == 1 && !is_shared ? "if (cluster_rank() == 0) " : "";
    return ir_arena_printf(f->arena, "%s%s%s%s%s;\n", indent, first, before, element, after);
}

const char *cu_dim_text(cu_function *f, ir_dim d)
{
    if (ir_dim_is_number(d)) return ir_arena_printf(f->arena, "%" PRId64, d.offset);
    if (!ir_dim_is_affine(d)) /* the dividend is never negative, so truncation rounds down */
        return ir_arena_printf(f->arena, "(%s + %d * ((t.length * %d + %d) / %d))",
                               cu_dim_text(f, ir_dim_affine(d.scale, d.offset)), (int)d.times, (int)d.step,
                               (int)d.start, (int)d.divisor);
    if (d.scale == 1 && d.offset == 0) return "t.length";
    if (d.offset == 0) return ir_arena_printf(f->arena, "(t.length * %" PRId64 ")", d.scale);
    return ir_arena_printf(f->arena, "(t.length * %" PRId64 " + %" PRId64 ")", d.scale, d.offset);
}

const char *cu_product_text(cu_function *f, const ir_type *type, int source, int target)
{
    const char *text = NULL;
    int64_t number = 1;
    for (int d = source; d < target; d++) {
        if (ir_dim_is_number(type->dim[d])) {
            number *= type->dim[d].offset;
            continue;
        }
        const char *dim = cu_dim_text(f, type->dim[d]);
        text = text != NULL ? ir_arena_printf(f->arena, "%s * %s", text, dim) : dim;
    }
    if (text == NULL) return ir_arena_printf(f->arena, "%" PRId64, number);
    return ir_arena_printf(f->arena, "(%s * %" PRId64 ")", text, number);
}
