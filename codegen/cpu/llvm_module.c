/* llvm_module.c — plans → one LLVM module → one object: kernels of every level, entry functions, mdot_code.
 *
 * A kernel becomes a function of the buffers' addresses, its working memory and the call, which holds length and slice.
 * Therefore equal kernels (signatures.h) of other layers, buckets and entries are one function. Its symbol is `<kernel
 * name>.<level>`. Every other kernel that it represents has an alias of that symbol under its own name, so a debugger
 * finds all names of the artefact's table. Kernels of one name that differ between buckets have `.n<max_length>`
 * inserted from the second on. */
#include "codegen/cpu/cpu_images.h"

#include "base/elf_read.h"
#include "codegen/cpu/cpu_kind.h"
#include "codegen/cpu/cpu_target.h"
#include "codegen/cpu/dot_products.h"
#include "codegen/cpu/emit.h"
#include "codegen/cpu/object.h"
#include "codegen/cpu/signatures.h"
#include "codegen/subprocess.h"
#include "ir/hash_map.h"
#include "plan/kernel_kind.h"

/* Offset of the kernels' own working memory, after the plan's buffers. */
static int64_t private_scratch_offset(const pl_plan *plan)
{
    return (plan->scratch_bytes + MDOT_ABI_ALIGNMENT - 1) / MDOT_ABI_ALIGNMENT * MDOT_ABI_ALIGNMENT;
}

int64_t cg_cpu_worker_bytes(const pl_plan *plan, const cg_cpu_target *target)
{
    int64_t maximum = 0;
    for (int k = 0; k < plan->kernel_count; k++) {
        int64_t bytes = cg_kernel_scratch_bytes(plan, &plan->kernels[k], target);
        if (bytes > maximum) maximum = bytes;
    }
    return (maximum + MDOT_ABI_ALIGNMENT - 1) / MDOT_ABI_ALIGNMENT * MDOT_ABI_ALIGNMENT;
}

int64_t cg_cpu_scratch_bytes(const pl_plan *plan, const cg_cpu_target *target)
{
    return private_scratch_offset(plan) + cg_cpu_worker_bytes(plan, target);
}

typedef struct generated { /* one function */
    cg_signature signature;
    LLVMValueRef function;
} generated;

typedef struct alias { /* another name of a function */
    struct alias *next;
    const char *name;
    LLVMValueRef function;
} alias;

/* Per-buffer state while a plan's kernels are generated. One instance serves all kernels, because a plan may have as
 * many kernels as buffers. */
typedef struct plan_buffers {
    int *positions;        /* for cg_signature_of */
    LLVMValueRef *address; /* by buffer, in the kernel being generated */
} plan_buffers;

typedef struct generator {
    const cg_options *options;
    const cg_cpu_images *images;
    ir_arena *arena; /* holds signatures and names */
    LLVMContextRef context;
    LLVMModuleRef module;
    int code_count;
    LLVMValueRef *code;                       /* entry functions by code number */
    ir_hash_map kernels[MDOT_ABI_MAX_IMAGES]; /* `generated` by signature */
    ir_hash_map alias_names;                  /* `alias` by name */
    alias *first_alias, **next_alias;         /* list in order */
    const pl_kernel *too_many_operands;       /* a kernel with more operands than a function may have parameters;
                                            * otherwise NULL */
} generator;

static bool name_is_taken(const generator *g, const char *name)
{
    return LLVMGetNamedFunction(g->module, name) != NULL || ir_hash_map_find_text(&g->alias_names, name) != NULL;
}

/* Returns NULL if memory runs out. */
static const char *free_name(generator *g, const char *base, int64_t max_length, const char *suffix)
{
    const char *name = ir_arena_printf(g->arena, "%s.%s", base, suffix);
    if (name != NULL && name_is_taken(g, name))
        name = ir_arena_printf(g->arena, "%s.n%lld.%s", base, (long long)max_length, suffix);
    for (int i = 2; name != NULL && name_is_taken(g, name); i++)
        name = ir_arena_printf(g->arena, "%s.n%lld.%d.%s", base, (long long)max_length, i, suffix);
    return name;
}

static void keep_whole(cg_emitter *e, LLVMValueRef function) /* so that profilers see kernels by name */
{
    unsigned kind = LLVMGetEnumAttributeKindForName("noinline", strlen("noinline"));
    LLVMAddAttributeAtIndex(function, LLVMAttributeFunctionIndex, LLVMCreateEnumAttribute(e->context, kind, 0));
}

static LLVMValueRef generate_kernel(generator *g, cg_emitter *e, const pl_plan *plan, const pl_kernel *kernel,
                                    const plan_buffers *of_plan, const cg_signature *signature)
{
    const char *name = free_name(g, kernel->name, plan->max_length, e->target->suffix);
    if (name == NULL) return NULL;
    LLVMValueRef function = cg_begin_kernel(e, name, signature->buffer_count + 1);
    for (int b = 0; b < signature->buffer_count; b++) of_plan->address[signature->buffers[b]] = cg_pointer(e, b);
    cg_kinds[kernel->kind]->emit(e, plan, kernel, of_plan->address, cg_pointer(e, signature->buffer_count));
    for (int b = 0; b < signature->buffer_count; b++) of_plan->address[signature->buffers[b]] = NULL;
    cg_end_function(e);
    keep_whole(e, function);
    return function;
}

/* Adds an alias with the kernel's own name for a function that it shares with another kernel, if the name is free. */
static bool note_alias(generator *g, const pl_kernel *kernel, LLVMValueRef function, const char *suffix)
{
    const char *name = ir_arena_printf(g->arena, "%s.%s", kernel->name, suffix);
    if (name == NULL) return false;
    if (name_is_taken(g, name)) return true;
    alias *created = IR_NEW(g->arena, alias);
    if (created == NULL || !ir_hash_map_add_text(&g->alias_names, name, 0)) return false;
    *created = (alias){.name = name, .function = function};
    *g->next_alias = created;
    g->next_alias = &created->next;
    return true;
}

/* Runs after the optimiser, which would visit all uses of a function for each alias: quadratic for a chain of equal
 * kernels. */
static void add_aliases(void *user)
{
    const generator *g = user;
    for (const alias *a = g->first_alias; a != NULL; a = a->next) {
        LLVMValueRef added = LLVMAddAlias2(g->module, LLVMGlobalGetValueType(a->function), 0, a->function, a->name);
        LLVMSetVisibility(added, LLVMHiddenVisibility);
    }
}

/* The function of a kernel, generated or found. Returns NULL if memory runs out or the kernel has too many operands. */
static LLVMValueRef kernel_function(generator *g, cg_emitter *e, int image, const pl_plan *plan,
                                    const pl_kernel *kernel, const plan_buffers *of_plan, cg_signature *out_signature)
{
    if (!cg_signature_of(e->target, plan, kernel, of_plan->positions, g->arena, out_signature)) return NULL;
    if (out_signature->buffer_count >= CG_MAX_POINTERS) {
        g->too_many_operands = kernel;
        return NULL;
    }
    const ir_hash_entry *found = ir_hash_map_first(&g->kernels[image], out_signature->hash);
    for (; found != NULL; found = ir_hash_map_next(found)) {
        const generated *known = found->key;
        if (!cg_signature_equal(&known->signature, out_signature)) continue;
        return note_alias(g, kernel, known->function, e->target->suffix) ? known->function : NULL;
    }
    generated *created = IR_NEW(g->arena, generated);
    if (created == NULL || !ir_hash_map_add(&g->kernels[image], out_signature->hash, created, 0)) return NULL;
    *created = (generated){.signature = *out_signature};
    created->function = generate_kernel(g, e, plan, kernel, of_plan, out_signature);
    return created->function;
}

/* Call fields needed by all kernels of an entry, loaded at the function's start. */
typedef struct call_fields {
    LLVMValueRef call, inputs, outputs, weights, scratch;
    LLVMValueRef private_scratch; /* memory of the worker */
    LLVMValueRef kernel_begin, kernel_end, slice_begin;
    LLVMValueRef before[PL_MOST_LENGTHS + 1]; /* earlier items: count, length sum, sum of squared lengths */
} call_fields;

static call_fields load_call(cg_emitter *e, const pl_plan *plan)
{
    LLVMValueRef call = cg_pointer(e, 0);
    call_fields c = {
        .call = call,
        .inputs = cg_call_field(e, call, e->ptr, offsetof(mdot_abi_call, inputs)),
        .outputs = cg_call_field(e, call, e->ptr, offsetof(mdot_abi_call, outputs)),
        .weights = cg_call_field(e, call, e->ptr, offsetof(mdot_abi_call, weights)),
        .scratch = cg_call_field(e, call, e->ptr, offsetof(mdot_abi_call, scratch)),
        .kernel_begin = cg_call_field(e, call, e->i64, offsetof(mdot_abi_call, kernel_begin)),
        .kernel_end = cg_call_field(e, call, e->i64, offsetof(mdot_abi_call, kernel_end)),
        .slice_begin = cg_call_field(e, call, e->i64, offsetof(mdot_abi_call, share_begin)),
    };
    LLVMValueRef worker = cg_call_field(e, call, e->i64, offsetof(mdot_abi_call, worker));
    LLVMValueRef before = cg_imul(e, worker, cg_int(e, cg_cpu_worker_bytes(plan, e->target)));
    c.private_scratch = cg_at(e, e->i8, c.scratch, cg_iadd(e, before, cg_int(e, private_scratch_offset(plan))));
    if (plan->most_items == 0) return c;
    c.before[0] = cg_call_field(e, call, e->i64, offsetof(mdot_abi_call, before.count));
    c.before[1] = cg_call_field(e, call, e->i64, offsetof(mdot_abi_call, before.length));
    c.before[2] = cg_call_field(e, call, e->i64, offsetof(mdot_abi_call, before.square));
    return c;
}

/* The element count as a polynomial in the length. */
static void count_elements(const ir_type *type, int64_t out_coefficient[PL_MOST_LENGTHS + 1])
{
    int64_t *c = out_coefficient;
    c[0] = 1;
    for (int i = 1; i <= PL_MOST_LENGTHS; i++) c[i] = 0;
    for (int d = 0; d < type->rank; d++)
        for (int i = PL_MOST_LENGTHS; i >= 0; i--)
            c[i] = c[i] * type->dim[d].offset + (i > 0 ? c[i - 1] * type->dim[d].scale : 0);
}

/* A scratch buffer follows those of the preceding items. */
static LLVMValueRef scratch_offset(cg_emitter *e, const call_fields *c, const pl_plan *plan, int buffer)
{
    const pl_buffer *b = &plan->buffers[buffer];
    LLVMValueRef offset = cg_int(e, b->offset_bytes);
    if (plan->most_items == 0) return offset;
    int64_t coefficient[PL_MOST_LENGTHS + 1];
    int64_t element_bytes = (int64_t)mdot_dtype_size_bytes(cg_stored_dtype(e->target, b));
    count_elements(&b->type, coefficient);
    for (int i = 0; i <= PL_MOST_LENGTHS; i++) {
        if (coefficient[i] == 0) continue;
        offset = cg_iadd(e, offset, cg_imul(e, c->before[i], cg_int(e, coefficient[i] * element_bytes)));
    }
    return offset;
}

/* weight_at is the weight's offset in the image's weights. */
static LLVMValueRef buffer_address(cg_emitter *e, const call_fields *c, const pl_plan *plan, int number,
                                   int64_t weight_at)
{
    const pl_buffer *buffer = &plan->buffers[number];
    switch (buffer->kind) {
    case PL_INPUT: return cg_load(e, e->ptr, cg_at(e, e->ptr, c->inputs, cg_int(e, buffer->index)), 8);
    case PL_OUTPUT: return cg_load(e, e->ptr, cg_at(e, e->ptr, c->outputs, cg_int(e, buffer->index)), 8);
    case PL_WEIGHT: return cg_at(e, e->i8, c->weights, cg_int(e, weight_at));
    case PL_SCRATCH: break;
    }
    return cg_at(e, e->i8, c->scratch, scratch_offset(e, c, plan, number));
}

static void call_kernel(cg_emitter *e, LLVMValueRef function, const cg_signature *signature, const pl_plan *plan,
                        const int64_t *weight_at, const call_fields *c, LLVMValueRef *arguments)
{
    int count = 0;
    for (int b = 0; b < signature->buffer_count; b++) {
        int buffer = signature->buffers[b];
        arguments[count++] = buffer_address(e, c, plan, buffer, weight_at[buffer]);
    }
    arguments[count++] = c->private_scratch;
    arguments[count++] = c->call;
    LLVMBuildCall2(e->builder, LLVMGlobalGetValueType(function), function, arguments, (unsigned)count, "");
}

/* A step is a split kernel, or all kernels between two split ones. If items run together, every kernel is a step
 * (mdot_abi_call). */
static bool begins_step(const pl_plan *plan, int kernel)
{
    return kernel == 0 || plan->most_items > 0 || pl_is_split(plan, &plan->kernels[kernel]) ||
           pl_is_split(plan, &plan->kernels[kernel - 1]);
}

/* Emits the steps in order, from the one at which the call begins to the one at which it ends. */
static void call_kernels(cg_emitter *e, const pl_plan *plan, const int64_t *weight_at, const LLVMValueRef *functions,
                         const cg_signature *signatures, LLVMBasicBlockRef *blocks, LLVMValueRef *arguments)
{
    call_fields c = load_call(e, plan);
    if (e->target->matmul == CG_MATMUL_AMX) cg_amx_configure(e);
    LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(e->context, e->function, "done");
    LLVMValueRef start = LLVMBuildSwitch(e->builder, c.kernel_begin, done, (unsigned)plan->kernel_count);
    for (int k = 0; k < plan->kernel_count; k++) {
        if (!begins_step(plan, k)) continue;
        blocks[k] = LLVMInsertBasicBlockInContext(e->context, done, "step");
        LLVMAddCase(start, cg_int(e, k), blocks[k]);
    }
    for (int k = 0; k < plan->kernel_count;) {
        LLVMPositionBuilderAtEnd(e->builder, blocks[k]);
        bool is_split = pl_is_split(plan, &plan->kernels[k]);
        cg_if first_slice;
        if (!is_split) {
            LLVMValueRef is_first = LLVMBuildICmp(e->builder, LLVMIntEQ, c.slice_begin, cg_int(e, 0), "");
            cg_if_begin(e, &first_slice, is_first);
        }
        do {
            call_kernel(e, functions[k], &signatures[k], plan, weight_at, &c, arguments);
            k++;
        } while (k < plan->kernel_count && !begins_step(plan, k));
        if (!is_split) cg_if_end(e, &first_slice);
        LLVMBasicBlockRef next_block = k < plan->kernel_count ? blocks[k] : done;
        LLVMValueRef has_next = LLVMBuildICmp(e->builder, LLVMIntSLT, cg_int(e, k), c.kernel_end, "");
        LLVMBuildCondBr(e->builder, has_next, next_block, done);
    }
    LLVMPositionBuilderAtEnd(e->builder, done);
    if (e->target->matmul == CG_MATMUL_AMX) cg_amx_release(e);
}

/* Emits `<entry>.n<max_length>.<suffix>`, which calls the plan's kernels in order. Returns NULL if memory runs out. */
static LLVMValueRef generate_entry(generator *g, cg_emitter *e, int image, const char *entry, const pl_plan *plan,
                                   const int64_t *weight_at)
{
    int kernels = plan->kernel_count, buffers = plan->buffer_count;
    const char *name = ir_arena_printf(g->arena, "%s.n%lld.%s", entry, (long long)plan->max_length, e->target->suffix);
    LLVMValueRef *functions = IR_NEW_ARRAY(g->arena, LLVMValueRef, kernels + 1);
    LLVMBasicBlockRef *blocks = IR_NEW_ARRAY(g->arena, LLVMBasicBlockRef, kernels + 1);
    LLVMValueRef *arguments = IR_NEW_ARRAY(g->arena, LLVMValueRef, buffers + 2);
    cg_signature *signatures = IR_NEW_ARRAY(g->arena, cg_signature, kernels + 1);
    const plan_buffers of_plan = {cg_signature_positions(plan, g->arena),
                                  IR_NEW_ARRAY(g->arena, LLVMValueRef, buffers + 1)};
    if (name == NULL || functions == NULL || blocks == NULL || arguments == NULL || signatures == NULL ||
        of_plan.positions == NULL || of_plan.address == NULL)
        return NULL;
    for (int k = 0; k < kernels; k++) { /* before the entry is begun, because one function is written at a time */
        functions[k] = kernel_function(g, e, image, plan, &plan->kernels[k], &of_plan, &signatures[k]);
        if (functions[k] == NULL) return NULL;
    }
    LLVMValueRef function = cg_begin_entry(e, name);
    call_kernels(e, plan, weight_at, functions, signatures, blocks, arguments);
    cg_end_function(e);
    return function;
}

/* Distances from the array to the functions. They are constants after linking, so the artefact needs no dynamic
 * relocation. They are relative to a hidden alias of the array. The array itself is exported and could be interposed,
 * so LLVM would leave distances from it to the dynamic linker and make the section writable. */
static bool emit_code_table(generator *g)
{
    LLVMTypeRef i64 = LLVMInt64TypeInContext(g->context);
    LLVMTypeRef type = LLVMArrayType2(i64, (uint64_t)g->code_count);
    LLVMValueRef table = LLVMAddGlobal(g->module, type, MDOT_ABI_SYMBOL_CODE);
    LLVMValueRef base = LLVMAddAlias2(g->module, type, 0, table, MDOT_ABI_SYMBOL_CODE "_base");
    LLVMValueRef *distances = IR_NEW_ARRAY(g->arena, LLVMValueRef, g->code_count + 1);
    if (distances == NULL) return false;
    LLVMSetVisibility(base, LLVMHiddenVisibility);
    for (int c = 0; c < g->code_count; c++)
        distances[c] = LLVMConstSub(LLVMConstPtrToInt(g->code[c], i64), LLVMConstPtrToInt(base, i64));
    LLVMSetInitializer(table, LLVMConstArray2(i64, distances, (uint64_t)g->code_count));
    LLVMSetGlobalConstant(table, true);
    LLVMSetSection(table, MDOT_ABI_SECTION_CODE);
    LLVMSetAlignment(table, MDOT_ABI_ALIGNMENT);
    return true;
}

static mdot_status generate(generator *g, const cg_entry *entries, int entry_count, mdot_error *err)
{
    int images = g->images->count, number = 0, plans = g->code_count / images;
    for (int n = 0; n < entry_count; n++) {
        for (int p = 0; p < entries[n].plan_count; p++, number++) {
            const pl_plan *plan = entries[n].plans[p];
            for (int i = 0; i < images; i++) {
                int code = cg_cpu_code_number(g->images, number, i);
                const cg_cpu_image *image = &g->images->image[i];
                cg_emitter e;
                cg_emitter_init(&e, g->module, image->target);
                g->code[code] = generate_entry(g, &e, i, entries[n].name, plan, image->placement->offset[number]);
                cg_emitter_done(&e);
                if (g->too_many_operands != NULL)
                    return mdot_fail(err, MDOT_UNSUPPORTED, "%s (%s) reads and writes more than %d tensors",
                                     g->too_many_operands->name, g->too_many_operands->origin, CG_MAX_POINTERS - 1);
                if (g->code[code] == NULL || ir_arena_failed(plan->arena))
                    return BS_OUT_OF_MEMORY(err, "code of %s", entries[n].name);
            }
            if (g->options->progress != NULL)
                g->options->progress(g->options->user, "generating code", (size_t)number + 1, (size_t)plans + 1);
        }
    }
    return emit_code_table(g) ? MDOT_OK : mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
}

/* The functions of an image are contiguous, in a separate section until the linker joins them. */
static mdot_status measure_images(cg_cpu_images *images, mdot_error *err)
{
    bs_elf object;
    BS_TRY(
        bs_elf_open(images->code, images->code_bytes, "an object of code", images->machine->elf_machine, &object, err));
    for (int i = 0; i < images->count; i++) {
        char name[CG_SECTION_NAME_BYTES];
        bs_elf_section section;
        cg_code_section(images->image[i].target, name);
        if (bs_elf_section_named(&object, name, &section)) images->image[i].code_bytes = (size_t)section.size_bytes;
    }
    return MDOT_OK;
}

typedef struct object_work {
    const cg_entry *entries;
    int entry_count;
    const cg_cpu_images *images;
} object_work;

static mdot_status make_object(void *user, const cg_options *options, void **out_object, size_t *out_bytes,
                               mdot_error *err)
{
    const object_work *w = user;
    generator g = {.options = options, .images = w->images, .arena = ir_arena_create(0)};
    for (int i = 0; i < MDOT_ABI_MAX_IMAGES; i++) g.kernels[i].arena = g.arena;
    g.alias_names.arena = g.arena;
    g.next_alias = &g.first_alias;
    for (int n = 0; n < w->entry_count; n++) g.code_count += w->entries[n].plan_count * w->images->count;
    if (g.arena != NULL) g.code = IR_NEW_ARRAY(g.arena, LLVMValueRef, g.code_count + 1);
    if (g.code == NULL) {
        ir_arena_destroy(g.arena);
        return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    }
    g.context = LLVMContextCreate();
    /* Value names help only dump readers, and cost LLVM's passes a twentieth of the compilation. */
    LLVMContextSetDiscardValueNames(g.context, options->dump == NULL);
    g.module = LLVMModuleCreateWithNameInContext(options->predictor_name, g.context);
    mdot_status status = generate(&g, w->entries, w->entry_count, err);
    if (status == MDOT_OK)
        status = cg_assemble(g.module, w->images->machine, options, add_aliases, &g, out_object, out_bytes, err);
    LLVMDisposeModule(g.module);
    LLVMContextDispose(g.context);
    ir_arena_destroy(g.arena);
    return status;
}

mdot_status cg_cpu_object(const cg_entry *entries, int entry_count, const cg_options *options, cg_cpu_images *images,
                          mdot_error *err)
{
    object_work work = {entries, entry_count, images};
    mdot_status status = cg_run_subprocess(make_object, &work, options, &images->code, &images->code_bytes, err);
    return status == MDOT_OK ? measure_images(images, err) : status;
}
