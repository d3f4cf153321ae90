/* cuda_generate.c — entries → a program: what each bucket does in stages, every step a call, equal steps one function.
 */
#include "codegen/cuda/cuda_generate.h"

#include "codegen/cuda/cuda_emit.h"
#include "codegen/cuda/sync.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A kernel's parameters are 4 KB, from sm_70 and driver 530 (CUDA 12.1) on nearly 32 KB (CUDA C++ Programming Guide,
 * "Function Parameters"); a multiple of 16 of it. */
enum { MOST_PARAMETER_BYTES = 32764 / 16 * 16, WEIGHT_ALIGNMENT = 256 };

typedef struct function {
    const char *name, *text; /* text: declarations and body */
    struct function *next;
} function;

typedef struct generator {
    cu_mode mode;
    ir_arena *arena;
    mdot_error *err;
    cu_program *program;
    function *functions;
    cu_text functions_text, kernels_text;
} generator;

typedef struct bucket { /* being written */
    generator *g;
    const char *name;
    const cg_entry *entry;
    const cu_stages *stages;
    const cu_layout *layout;
    const bool *before, *again; /* sync.h */
    cu_text calls;
} bucket;

const char *cu_mode_name(cu_mode mode)
{
    return mode == CU_FP32 ? "fp32" : mode == CU_BF16 ? "bf16" : "fp16";
}

/* ---- Names ------------------------------------------------------------------------------------------------------- */

/* Not isalnum, which is the locale's. */
static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static char *identifier(ir_arena *arena, const char *text)
{
    char *copy = ir_arena_strdup(arena, text);
    for (char *c = copy; c && *c; c++)
        if (!is_name_char(*c)) *c = '_';
    return copy;
}

/* For a comment: a name from a file may hold anything, and byte 255 is the end of the source for NVRTC. */
static const char *plain(ir_arena *arena, const char *text)
{
    char *copy = ir_arena_strdup(arena, text);
    for (char *c = copy; c && *c; c++)
        if (*c < ' ' || *c > '~' || *c == '\\') *c = '?';
    return copy ? copy : "";
}

static char form_of(const cu_function *f, int buffer, const cu_place *place)
{
    const cu_home *home = cu_home_of(f, buffer);
    return place == &home->half ? 'h' : place == &home->output ? 'o' : 'p';
}

/* What a place is called in the kernel. */
static const char *place_name(const cu_layout *layout, ir_arena *arena, int buffer, const cu_place *place)
{
    const char *name = layout->stages->buffers[buffer].name;
    while (*name && !is_name_char(*name)) name++;
    const char *suffix = place->is_half ? "_half" : "";
    if (place == &layout->homes[buffer].output) suffix = "_result";
    return ir_arena_printf(arena, "b%d_%.40s%s", buffer, identifier(arena, name), suffix);
}

static const char *element_type(const pl_buffer *buffer, const cu_place *place)
{
    return place->is_half ? "half_t" : cu_type_name(buffer->type.dtype);
}

/* ---- Parameters of a step ---------------------------------------------------------------------------------------- */

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

/* A new parameter's name: `wanted`, with a number where that is taken. */
static const char *add_parameter(cu_function *f, const char *key, const char *wanted)
{
    if (f->parameter_count == CU_MAX_PARAMETERS) {
        cu_refuse(f, "more than %d buffers", CU_MAX_PARAMETERS);
        return "";
    }
    bool is_taken = false;
    for (int k = 0; k < f->parameter_count; k++) is_taken = is_taken || strcmp(f->parameters[k].name, wanted) == 0;
    cu_parameter *p = &f->parameters[f->parameter_count];
    snprintf(p->key, sizeof p->key, "%s", key);
    if (is_taken)
        snprintf(p->name, sizeof p->name, "%s_%d", wanted, f->parameter_count);
    else
        snprintf(p->name, sizeof p->name, "%s", wanted);
    f->parameter_count++;
    return p->name;
}

static bool is_written(const cu_step *step, int buffer)
{
    for (int k = 0; k < step->access_count; k++)
        if (step->accesses[k].buffer == buffer && step->accesses[k].is_written) return true;
    return false;
}

static const char *const memories[] = {[CU_SHARED] = "dynamic_shared",
                                       [CU_SCRATCH] = "scratch_memory",
                                       [CU_OUTPUT] = "output_memory",
                                       [CU_WEIGHTS] = "weights_memory"};

/* A step is given offsets, which become pointers in it; but pointers to inputs, which may be in the parameter. */
static void put_pointer(cu_function *f, cu_space_kind kind, const char *qualifier, const char *type, const char *name)
{
    if (kind == CU_INPUT) {
        cu_put(&f->declarations, ", const %s *%s", type, name);
        return;
    }
    cu_put(&f->declarations, ", int %s_at", name);
    cu_put(&f->locals, "    %s%s *const %s = (%s%s *)(%s() + %s_at);\n", qualifier, type, name, qualifier, type,
           memories[kind], name);
}

const char *cu_pointer(cu_function *f, int buffer, const cu_place *place, const char *wanted)
{
    const pl_buffer *b = cu_buffer(f, buffer);
    const char *type = element_type(b, place);
    char key[32];
    if (!type) {
        cu_refuse(f, "values of type %s have no CUDA code", mdot_dtype_name(b->type.dtype));
        return "";
    }
    if (place->kind == CU_WEIGHTS) {
        const ir_tensor *constant = b->constant;
        return cu_weight_pointer(f, wanted, type, constant->data,
                                 (size_t)constant->count * mdot_dtype_size_bytes(constant->dtype));
    }
    snprintf(key, sizeof key, "%d%c", buffer, form_of(f, buffer, place));
    const char *name = find_parameter(f, key);
    if (name) return name;
    name = add_parameter(f, key, wanted);
    const char *qualifier = is_written(f->step, buffer) ? "" : "const ";
    put_pointer(f, place->kind, qualifier, type, name);
    const char *place_text = place_name(f->layout, f->arena, buffer, place);
    if (place->kind == CU_INPUT)
        cu_put(&f->arguments, ", (const %s *)(input + %s)", type, place_text);
    else
        cu_put(&f->arguments, ", %s", place_text);
    return name;
}

const char *cu_weight_pointer(cu_function *f, const char *wanted, const char *type, const void *bytes,
                              size_t size_bytes)
{
    char key[32];
    size_t offset = cg_pool_share(f->weights, bytes, size_bytes, WEIGHT_ALIGNMENT);
    if (f->weights->failed && f->status == MDOT_OK)
        f->status = mdot_fail(f->err, MDOT_OUT_OF_MEMORY, "no memory to pack the weights");
    snprintf(key, sizeof key, "w%zu", offset);
    const char *name = find_parameter(f, key);
    if (name) return name;
    name = add_parameter(f, key, wanted);
    put_pointer(f, CU_WEIGHTS, "const ", type, name);
    cu_put(&f->arguments, ", %zu", offset);
    return name;
}

void cu_work_pointer(cu_function *f, const char *type, const char *name)
{
    put_pointer(f, CU_SHARED, "", type, name);
    cu_put(&f->arguments, ", %zu", f->layout->work_offset[f->number]);
}

void cu_meet_first(cu_function *f, const char *condition)
{
    if (f->meets) cu_put(&f->body, "        %s__syncthreads(); // what earlier steps wrote\n", condition);
    f->meets = false;
}

const char *cu_dim_text(cu_function *f, ir_dim d)
{
    if (ir_dim_is_number(d)) return ir_arena_printf(f->arena, "%" PRId64, d.offset);
    if (d.scale == 1 && d.offset == 0) return "t.length";
    if (d.offset == 0) return ir_arena_printf(f->arena, "(t.length * %" PRId64 ")", d.scale);
    return ir_arena_printf(f->arena, "(t.length * %" PRId64 " + %" PRId64 ")", d.scale, d.offset);
}

/* ---- Steps ------------------------------------------------------------------------------------------------------- */

static void emit(cu_function *f)
{
    switch (f->step->kernel->kind) {
    case PL_LINEAR:
        cu_emit_linear(f);
        return;
    case PL_ATTENTION:
        cu_emit_attention(f);
        return;
    case PL_NORM:
        cu_emit_norm(f);
        return;
    default:
        cu_emit_nest(f);
        return;
    }
}

static bool is_name_taken(const generator *g, const char *name)
{
    for (const function *other = g->functions; other; other = other->next)
        if (strcmp(other->name, name) == 0) return true;
    return false;
}

static const char *new_name(const generator *g, const cu_step *step)
{
    static const char *const parts[] = {[CU_WHOLE] = "", [CU_PARTIAL] = "_partial", [CU_FINISH] = "_finish"};
    const char *wanted = ir_arena_printf(g->arena, "%s%s", step->kernel->name, parts[step->part]);
    const char *base = wanted ? identifier(g->arena, wanted) : NULL, *name = base;
    for (int number = 2; name && is_name_taken(g, name); number++)
        name = ir_arena_printf(g->arena, "%s_%d", base, number);
    return name;
}

/* The function that does a step; a new one where no equal one is there. */
static const char *share_function(generator *g, const cu_function *f)
{
    const char *text = ir_arena_printf(g->arena, "(const tile t%s)\n{\n%s%s}\n\n", cu_text_get(&f->declarations),
                                       cu_text_get(&f->locals), cu_text_get(&f->body));
    if (!text) return NULL;
    for (const function *other = g->functions; other; other = other->next)
        if (strcmp(other->text, text) == 0) return other->name;
    function *made = IR_NEW(g->arena, function);
    const char *name = new_name(g, f->step);
    if (!made || !name) return NULL;
    *made = (function){name, text, g->functions};
    g->functions = made;
    cu_put(&g->functions_text, "__device__ __noinline__ void %s%s", name, text);
    return name;
}

static mdot_status put_call(bucket *b, int number, bool meets)
{
    const cu_step *step = &b->stages->steps[number];
    cu_function f = {.layout = b->layout,
                     .step = step,
                     .number = number,
                     .meets = meets,
                     .weights = &b->g->program->weights,
                     .arena = b->g->arena,
                     .err = b->g->err};
    emit(&f);
    bool failed = f.declarations.failed || f.arguments.failed || f.locals.failed || f.body.failed;
    const char *name = f.status == MDOT_OK && !failed ? share_function(b->g, &f) : NULL;
    if (f.status == MDOT_OK && !name) f.status = mdot_fail(f.err, MDOT_OUT_OF_MEMORY, "memory ran out");
    if (name && f.meets) cu_put(&b->calls, "        __syncthreads();\n");
    if (name)
        cu_put(&b->calls, "        // %s: %s\n        %s(t%s);\n", plain(b->g->arena, step->kernel->name),
               plain(b->g->arena, step->kernel->origin), name, cu_text_get(&f.arguments));
    cu_text_done(&f.declarations);
    cu_text_done(&f.arguments);
    cu_text_done(&f.locals);
    cu_text_done(&f.body);
    return f.status;
}

/* ---- Stages ------------------------------------------------------------------------------------------------------ */

/* The rows that a step without units deals out, CU_TILE_UNITS at a time. */
static const char *free_rows(bucket *b, const cu_step *step)
{
    const pl_kernel *k = step->kernel;
    cu_function f = {.arena = b->g->arena};
    if (k->kind == PL_LINEAR) return cu_dim_text(&f, k->linear.rows);
    if (k->kind == PL_NORM) return cu_dim_text(&f, k->norm.rows);
    return ir_arena_printf(f.arena, "%s * %s", cu_dim_text(&f, k->attention.batch),
                           cu_dim_text(&f, k->attention.queries));
}

static void put_loop_begin(bucket *b, const cu_step *step)
{
    if (step->spread == CU_SINGLE) {
        cu_put(&b->calls, "    if (blockIdx.x == 0) {\n        const tile t = {0, 1, whole.length};\n");
        return;
    }
    if (step->spread == CU_FREE && step->kernel->kind == PL_NEST) {
        cu_put(&b->calls, "    {\n        const tile t = whole;\n");
        return;
    }
    const char *count = step->spread == CU_TILED ? "whole.length" : free_rows(b, step);
    if (step->spread == CU_FREE)
        cu_put(&b->calls, "    { const tile t = whole; // rows, dealt out alone\n    const int rows = %s;\n", count);
    const char *rows = step->spread == CU_FREE ? "rows" : count;
    cu_put(&b->calls,
           "    for (int first = blockIdx.x * %d; first < %s; first += gridDim.x * %d) {\n"
           "        const tile t = {first, min(%d, %s - first), whole.length};\n",
           CU_TILE_UNITS, rows, CU_TILE_UNITS, CU_TILE_UNITS, rows);
}

static void put_loop_end(bucket *b, const cu_step *step, bool meets_again)
{
    if (meets_again) {
        const char *rows = step->spread == CU_FREE ? "rows" : "whole.length";
        cu_put(&b->calls, "        if (first + (int)gridDim.x * %d < %s) __syncthreads(); // another tile follows\n",
               CU_TILE_UNITS, rows);
    }
    bool has_scope = step->spread == CU_FREE && step->kernel->kind != PL_NEST;
    cu_put(&b->calls, has_scope ? "    }\n    }\n" : "    }\n");
}

static mdot_status put_stage(bucket *b, int *at)
{
    const cu_stages *stages = b->stages;
    int stage = stages->steps[*at].stage;
    while (*at < stages->step_count && stages->steps[*at].stage == stage) {
        int first = *at, end = cu_loop_end(stages, first);
        if (b->before[first]) cu_put(&b->calls, "    __syncthreads();\n");
        put_loop_begin(b, &stages->steps[first]);
        for (int s = first; s < end; s++) {
            mdot_status status = put_call(b, s, b->before[s] && s > first);
            if (status != MDOT_OK) return status;
        }
        put_loop_end(b, &stages->steps[first], b->again[end - 1]);
        *at = end;
    }
    return MDOT_OK;
}

static void put_barrier(bucket *b, int stage)
{
    const cu_barrier *why = &b->stages->barriers[stage];
    cu_put(&b->calls, "\n    // Stage %d: ", stage);
    if (why->before)
        cu_put(&b->calls, "%s needs b%d (%s) of other tiles, from %s.\n", why->after->kernel->name, why->buffer,
               plain(b->g->arena, b->stages->buffers[why->buffer].name), why->before->kernel->name);
    cu_put(&b->calls, "    grid_barrier(barrier, target += gridDim.x);\n");
}

/* ---- Kernels ----------------------------------------------------------------------------------------------------- */

static size_t round_up(size_t n)
{
    return (n + 15) / 16 * 16;
}

/* What the inputs take in the parameter, 0 where they don't fit. */
static size_t inline_input_bytes(const bucket *b)
{
    const pl_plan *plan = b->stages->plan;
    size_t sum = 0;
    for (int k = 0; k < plan->buffer_count; k++) {
        const pl_buffer *buffer = &plan->buffers[k];
        if (buffer->kind != PL_INPUT) continue;
        int64_t count = ir_type_count_at(&buffer->type, plan->max_length);
        if (count < 0 || count > MOST_PARAMETER_BYTES) return 0;
        sum += round_up((size_t)count * mdot_dtype_size_bytes(buffer->type.dtype));
    }
    return sum + sizeof(mdot_abi_cuda_call) <= MOST_PARAMETER_BYTES ? sum : 0;
}

static void declare_parameter(bucket *b, size_t bytes)
{
    cu_text *to = &b->g->kernels_text;
    cu_put(to, "struct __align__(16) parameter_of_%s {\n    cuda_call call;\n", b->name);
    if (bytes > 0) cu_put(to, "    unsigned char input[%zu];\n", bytes);
    cu_put(to, "};\n\n");
}

/* Where each place begins in its memory, under its name. */
static void put_places(const bucket *b, cu_text *to)
{
    static const char *const where[] = {[CU_SHARED] = "shared", [CU_SCRATCH] = "scratch"};
    const cu_stages *stages = b->stages;
    for (int k = 0; k < stages->buffer_count; k++) {
        const cu_home *home = &b->layout->homes[k];
        const cu_place *places[] = {&home->plain, &home->half, &home->output};
        for (int i = 0; i < 3; i++) {
            const cu_place *p = places[i];
            if (p->kind == CU_NOWHERE || p->kind == CU_WEIGHTS) continue;
            const char *name = place_name(b->layout, b->g->arena, k, p);
            int index = stages->buffers[k].index;
            if (p->kind == CU_SHARED || p->kind == CU_SCRATCH)
                cu_put(to, "    const int %s = %zu; // %s\n", name, p->offset_bytes, where[p->kind]);
            else
                cu_put(to, "    const int %s = p.call.%s_at[%d];\n", name, p->kind == CU_INPUT ? "input" : "output",
                       index);
        }
    }
}

/* Whether thread 0 of block 0 writes all outputs: it takes the first element in every form of a step that block 0 does
 * alone. */
static bool is_result_of_one_thread(const cu_stages *stages)
{
    for (int k = 0; k < stages->plan->buffer_count; k++) {
        const pl_buffer *buffer = &stages->buffers[k];
        if (buffer->kind == PL_OUTPUT && ir_type_count_at(&buffer->type, stages->plan->max_length) != 1) return false;
    }
    return true;
}

static void put_kernel(bucket *b, size_t inline_bytes)
{
    generator *g = b->g;
    declare_parameter(b, inline_bytes);
    cu_put(&g->kernels_text, "// Entry %s, lengths up to %" PRId64 ".\n", plain(g->arena, b->entry->name),
           b->stages->plan->max_length);
    cu_put(&g->kernels_text,
           "extern \"C\" __global__ void __launch_bounds__(%d, 1) %s(const __grid_constant__ parameter_of_%s p)\n{\n"
           "    if (threadIdx.x == 0) {\n"
           "        item.weights = (const unsigned char *)p.call.weights;\n"
           "        item.scratch = (unsigned char *)p.call.scratch + blockIdx.y * p.call.scratch_stride;\n"
           "        item.output = (unsigned char *)p.call.output + blockIdx.y * p.call.output_stride;\n"
           "    }\n"
           "    const unsigned char *const input =\n"
           "        %s(const unsigned char *)p.call.input + blockIdx.y * p.call.input_stride;\n"
           "    unsigned *const barrier = (unsigned *)p.call.barrier + blockIdx.y;\n"
           "    unsigned target = p.call.barrier_base;\n"
           "    const tile whole = {0, (int)p.call.length, (int)p.call.length};\n",
           CU_THREADS, b->name, b->name, inline_bytes > 0 ? "p.call.inline_input ? p.input : " : "");
    put_places(b, &g->kernels_text);
    cu_put(&g->kernels_text, "    __syncthreads(); // the item's memory\n%s", cu_text_get(&b->calls));
    if (b->stages->meets_at_end)
        cu_put(&g->kernels_text, "\n    // The result is there when all blocks have written theirs.\n"
                                 "    grid_barrier(barrier, target += gridDim.x);\n");
    else if (!is_result_of_one_thread(b->stages))
        cu_put(&g->kernels_text, "\n    __syncthreads(); // all of the result\n");
    cu_put(&g->kernels_text,
           "    if (blockIdx.x == 0 && threadIdx.x == 0)\n"
           "        store_release_system((unsigned *)p.call.done + blockIdx.y, p.call.ticket);\n}\n\n");
}

static mdot_status check_sizes(const pl_plan *plan, mdot_error *err)
{
    for (int k = 0; k < plan->buffer_count; k++) {
        int64_t count = ir_type_count_at(&plan->buffers[k].type, plan->max_length);
        if (count < 0 || count > INT32_MAX)
            return mdot_fail(err, MDOT_UNSUPPORTED, "buffer %s has more elements than CUDA code counts",
                             plan->buffers[k].name);
    }
    int inputs = 0, outputs = 0;
    for (int k = 0; k < plan->buffer_count; k++) {
        inputs += plan->buffers[k].kind == PL_INPUT;
        outputs += plan->buffers[k].kind == PL_OUTPUT;
    }
    if (inputs <= MDOT_ABI_CUDA_MAX_TENSORS && outputs <= MDOT_ABI_CUDA_MAX_TENSORS) return MDOT_OK;
    return mdot_fail(err, MDOT_UNSUPPORTED, "%d inputs and %d outputs; at most %d of each on CUDA", inputs, outputs,
                     MDOT_ABI_CUDA_MAX_TENSORS);
}

static bool is_kernel_taken(const cu_program *program, const char *name)
{
    for (int k = 0; k < program->kernel_count; k++)
        if (strcmp(program->kernels[k].name, name) == 0) return true;
    return false;
}

/* Of entry and bucket, behind a word of our own, since an entry may be called "8x" or "double"; with a number where
 * another's comes out the same, as those of "a-b" and "a_b" do. NULL when memory is out. */
static const char *kernel_name(const generator *g, const cg_entry *entry, int64_t max_length)
{
    const char *base = identifier(g->arena, entry->name);
    if (base && max_length > 0)
        base = ir_arena_printf(g->arena, "entry_%s_n%" PRId64, base, max_length);
    else if (base)
        base = ir_arena_printf(g->arena, "entry_%s", base);
    const char *name = base;
    for (int number = 2; name && is_kernel_taken(g->program, name); number++)
        name = ir_arena_printf(g->arena, "%s_%d", base, number);
    return name;
}

static mdot_status generate_bucket(generator *g, const cg_entry *entry, const pl_plan *plan, cu_kernel *out)
{
    cu_stages stages;
    cu_layout layout;
    bool *before, *again;
    mdot_status status = check_sizes(plan, g->err);
    if (status == MDOT_OK) status = cu_find_stages(plan, g->arena, &stages, g->err);
    if (status == MDOT_OK) status = cu_lay_out(&stages, g->mode, g->arena, &layout, g->err);
    if (status == MDOT_OK && layout.scratch_bytes > INT32_MAX)
        status = mdot_fail(g->err, MDOT_UNSUPPORTED, "%s: %zu bytes between kernels; CUDA code reaches 2 GB",
                           entry->name, layout.scratch_bytes);
    if (status == MDOT_OK) status = cu_find_syncs(&layout, g->arena, &before, &again, g->err);
    if (status != MDOT_OK) return status;
    bucket b = {.g = g, .entry = entry, .stages = &stages, .layout = &layout, .before = before, .again = again};
    b.name = kernel_name(g, entry, plan->max_length);
    if (!b.name) return mdot_fail(g->err, MDOT_OUT_OF_MEMORY, "memory ran out");
    cu_put(&b.calls, "\n    // Stage 0: what reads inputs and weights alone.\n");
    for (int at = 0; at < stages.step_count && status == MDOT_OK;) {
        if (at > 0) put_barrier(&b, stages.steps[at].stage);
        status = put_stage(&b, &at);
    }
    if (status == MDOT_OK) put_kernel(&b, inline_input_bytes(&b));
    if (status == MDOT_OK && b.calls.failed) status = mdot_fail(g->err, MDOT_OUT_OF_MEMORY, "memory ran out");
    cu_text_done(&b.calls);
    *out = (cu_kernel){.name = b.name,
                       .threads = CU_THREADS,
                       .tile_rows = plan->max_length > 0 ? CU_TILE_UNITS : 0,
                       .grid_barriers = stages.stage_count - 1 + stages.meets_at_end,
                       .dynamic_shared_bytes = layout.shared_bytes,
                       .inline_input_bytes = inline_input_bytes(&b),
                       .scratch_bytes = layout.scratch_bytes};
    return status;
}

/* ---- The program ------------------------------------------------------------------------------------------------- */

static mdot_status generate(generator *g, const cg_entry *entries, int entry_count, cu_program *program)
{
    int count = 0;
    for (int e = 0; e < entry_count; e++) count += entries[e].plan_count;
    program->kernels = IR_NEW_ARRAY(g->arena, cu_kernel, count + 1);
    if (!program->kernels) return mdot_fail(g->err, MDOT_OUT_OF_MEMORY, "memory ran out");
    for (int e = 0; e < entry_count; e++) {
        for (int k = 0; k < entries[e].plan_count; k++) {
            cu_kernel *kernel = &program->kernels[program->kernel_count];
            mdot_status status = generate_bucket(g, &entries[e], entries[e].plans[k], kernel);
            if (status != MDOT_OK) return status;
            kernel->entry = e;
            kernel->bucket = k;
            program->kernel_count++;
        }
    }
    cg_pool *weights = &program->weights;
    cg_pool_reserve(weights, 0, WEIGHT_ALIGNMENT);
    if (weights->size_bytes > INT32_MAX)
        return mdot_fail(g->err, MDOT_UNSUPPORTED, "%zu bytes of weights; CUDA code reaches 2 GB", weights->size_bytes);
    bool failed = weights->failed || g->functions_text.failed || g->kernels_text.failed;
    const char *mode = g->mode == CU_BF16 ? cu_bf16 : g->mode == CU_F16 ? cu_f16 : "";
    bool is_half = g->mode != CU_FP32;
    program->prelude = cu_prelude;
    program->source =
        ir_arena_printf(g->arena, "%s%s%s%s\n%s%s", mode, is_half ? cu_halves : "", cu_common,
                        is_half ? cu_fast : cu_exact, cu_text_get(&g->functions_text), cu_text_get(&g->kernels_text));
    if (failed || !program->source) return mdot_fail(g->err, MDOT_OUT_OF_MEMORY, "memory ran out");
    return MDOT_OK;
}

mdot_status cu_generate(const cg_entry *entries, int entry_count, cu_mode mode, ir_arena *arena,
                        cu_program *out_program, mdot_error *err)
{
    cu_program program = {0};
    generator g = {.mode = mode, .arena = arena, .err = err, .program = &program};
    mdot_status status = generate(&g, entries, entry_count, &program);
    cu_text_done(&g.functions_text);
    cu_text_done(&g.kernels_text);
    if (status == MDOT_OK)
        *out_program = program;
    else
        cu_program_done(&program);
    return status;
}

void cu_program_done(cu_program *program)
{
    cg_pool_done(&program->weights);
}
