/* compile_model.c — mdotc_compile: the whole compilation in one function, one call per stage. */
#include "base/file.h"
#include "base/struct_version.h"
#include "base/suggest.h"
#include "base/text.h"
#include "codegen/artefact.h"
#include "codegen/backend.h"
#include "compiler/compiler.h"
#include "frontend/onnx/onnx.h"
#include "ir/ops.h"
#include "ir/passes.h"
#include "plan/planner.h"

#include <stdio.h>
#include <string.h>

static const int64_t default_buckets[] = {32, 64, 128, 256, 512, 1024};
enum { DEFAULT_BUCKET_COUNT = sizeof default_buckets / sizeof default_buckets[0], PROGRESS_TOTAL = 1000 };
enum { PROGRESS_PLANNED = PROGRESS_TOTAL / 10 }; /* measured: planning takes about a tenth of a compilation */

/* Values of --dump besides the passes and the backends' dumps. */
static const char *const other_dumps[] = {"import", "plan"};
enum { OTHER_DUMP_COUNT = sizeof other_dumps / sizeof other_dumps[0] };

static const cg_dump *find_code_dump(const char *name, const cg_backend **out_backend)
{
    for (int b = 0; name != NULL && b < CG_BACKENDS; b++)
        for (const cg_dump *dump = cg_backends[b]->dumps; dump->name != NULL; dump++) {
            if (strcmp(name, dump->name) != 0) continue;
            *out_backend = cg_backends[b];
            return dump;
        }
    return NULL;
}

static mdot_status check_code_dump(const cg_dump *dump, const cg_backend *backend, const co_targets *targets,
                                   mdot_error *err)
{
    if (!dump->needs_target) return MDOT_OK;
    for (int i = 0; i < targets->count; i++)
        if (targets->target[i].kind == backend->kind) return MDOT_OK;
    return BS_INVALID(err, "--dump %s requires a %s target, for example %s", dump->name, backend->name,
                      backend->example);
}

static mdot_status check_dump(const char *name, const co_targets *targets, mdot_error *err)
{
    if (name == NULL) return MDOT_OK;
    const cg_backend *backend;
    const cg_dump *code = find_code_dump(name, &backend);
    if (code != NULL) return check_code_dump(code, backend, targets, err);
    char text[512];
    bs_join list;
    bs_join_begin(&list, text, sizeof text);
    bs_suggest suggestion = bs_suggest_begin(name);
    for (int i = 0; i < ir_pass_count + OTHER_DUMP_COUNT; i++) {
        const char *known = i < ir_pass_count ? ir_passes[i].name : other_dumps[i - ir_pass_count];
        if (strcmp(name, known) == 0) return MDOT_OK;
        bs_join_add(&list, "%s", known);
        bs_suggest_add(&suggestion, known);
    }
    for (int b = 0; b < CG_BACKENDS; b++)
        for (const cg_dump *dump = cg_backends[b]->dumps; dump->name != NULL; dump++) {
            bs_join_add(&list, "%s", dump->name);
            bs_suggest_add(&suggestion, dump->name);
        }
    return BS_INVALID(err, "unknown dump \"%s\"%s; known are %s", name, bs_suggest_end(&suggestion).text, text);
}

static bool is_code_dump(const char *name)
{
    const cg_backend *backend;
    return find_code_dump(name, &backend) != NULL;
}

static void dump_text(const co_hooks *hooks, const char *what, const char *text)
{
    if (hooks->dump == NULL || hooks->dump_pass == NULL || strcmp(hooks->dump_pass, what) != 0 || text == NULL) return;
    hooks->dump(hooks->user, text);
}

static ir_graph *bind_bucket(const ir_graph *imported, int64_t min_length, int64_t max_length, ir_arena *arena)
{
    ir_graph *graph = ir_graph_clone(imported, arena);
    if (graph == NULL || graph->symbol == NULL) return graph;
    graph->min_length = min_length;
    graph->max_length = max_length;
    return graph;
}

static mdot_status plan_bucket(const ir_graph *imported, int64_t min_length, int64_t max_length, const co_hooks *hooks,
                               ir_arena *arena, pl_plan **out_plan, mdot_error *err)
{
    ir_graph *graph = bind_bucket(imported, min_length, max_length, arena);
    if (graph == NULL) return BS_OUT_OF_MEMORY(err, "%s", imported->name);

    ir_pass_options options = {.dump_pass = hooks->dump_pass, .dump = hooks->dump, .user = hooks->user};
    mdot_status status = ir_run_passes(graph, hooks->dump != NULL ? &options : NULL, err);
    if (status == MDOT_OK) status = ir_check_supported(graph, err);
    if (status == MDOT_OK) status = pl_build(graph, arena, out_plan, err);
#ifdef MDOT_VERIFY
    if (status == MDOT_OK) status = pl_verify(*out_plan, err);
#endif
    if (status == MDOT_OK && hooks->dump != NULL) dump_text(hooks, "plan", pl_print(*out_plan, arena));
    return status;
}

static bool infers(const ir_graph *imported, int64_t min_length, int64_t max_length, ir_arena *arena)
{
    bool changed;
    ir_graph *graph = bind_bucket(imported, min_length, max_length, arena);
    return graph != NULL && ir_run_pass(graph, "infer", &changed, NULL) == MDOT_OK;
}

/* Returns the smallest length from which a refused model compiles in the bucket; 0 if no length, or only a single
 * length, is a remedy. Then the reason is another one, for example an operator without a kernel. */
static int64_t find_min_length(const ir_graph *imported, int64_t bucket, int64_t longest, ir_arena *arena)
{
    static const co_hooks silent;
    int64_t refused = ir_first_length(imported), accepted = bucket;
    pl_plan *plan;
    if (infers(imported, refused, bucket, arena) || !infers(imported, bucket, bucket, arena)) return 0;
    while (accepted - refused > 1) {
        int64_t tried = refused + (accepted - refused) / 2;
        *(infers(imported, tried, bucket, arena) ? &accepted : &refused) = tried;
    }
    bool compiles = plan_bucket(imported, accepted, 2 * bucket, &silent, arena, &plan, NULL) == MDOT_OK &&
                    plan_bucket(imported, accepted, longest > accepted ? longest : accepted + 1, &silent, arena, &plan,
                                NULL) == MDOT_OK;
    return compiles ? accepted : 0;
}

/* Appends a remedy to the reason why the model is refused in a bucket. */
static mdot_status refuse_bucket(const ir_graph *imported, const int64_t *buckets, size_t refused, size_t count,
                                 bool are_default, const mdot_error *reason, ir_arena *arena, mdot_error *err)
{
    int64_t bucket = buckets[refused], longest = buckets[count - 1];
    int64_t minimum = find_min_length(imported, bucket, longest, arena);
    if (minimum == 0 && refused + 1 < count) minimum = find_min_length(imported, longest, longest, arena);
    if (minimum == 0 && refused > 0)
        return mdot_fail(
            err, MDOT_UNSUPPORTED,
            "%s (in bucket %lld; buckets up to %lld compile: name them with --buckets, or omit longer ones "
            "with --allow-dropped)",
            reason->message, (long long)bucket, (long long)buckets[refused - 1]);
    if (minimum == 0)
        return mdot_fail(err, MDOT_UNSUPPORTED, "%s (in bucket %lld)", reason->message, (long long)bucket);
    if (minimum > bucket && !are_default)
        return mdot_fail(err, MDOT_UNSUPPORTED,
                         "%s (in bucket %lld; --min-length %lld and buckets of that length or more make the model "
                         "compile and restrict calls to that length or more)",
                         reason->message, (long long)bucket, (long long)minimum);
    return mdot_fail(err, MDOT_UNSUPPORTED,
                     "%s (in bucket %lld; --min-length %lld makes the model compile and restricts calls to that "
                     "length or more)",
                     reason->message, (long long)bucket, (long long)minimum);
}

static void warn_dropped(const co_hooks *hooks, int64_t bucket, const mdot_error *reason)
{
    char text[1400];
    snprintf(text, sizeof text, "buckets of length %lld or more are omitted: %s", (long long)bucket, reason->message);
    if (hooks->warning != NULL) hooks->warning(hooks->user, text);
}

mdot_status co_plan_entry(const char *name, const ir_graph *graph, const int64_t *buckets, size_t bucket_count,
                          bool allow_dropped, const co_hooks *hooks, ir_arena *arena, cg_entry *out_entry,
                          mdot_error *err)
{
    size_t needed = graph->symbol != NULL ? bucket_count : 1;
    if (needed == 0)
        return BS_INVALID(err, "%s: the model has a symbolic length, %s, but the list of buckets is empty", graph->name,
                          graph->symbol);
    pl_plan **plans = IR_NEW_ARRAY(arena, pl_plan *, needed);
    if (plans == NULL) return BS_OUT_OF_MEMORY(err, "%s", graph->name);

    mdot_status status = ir_check_supported(graph, err);
    size_t count = 0;
    for (; status == MDOT_OK && count < needed; count++) {
        int64_t bucket = graph->symbol != NULL ? buckets[count] : 0;
        mdot_error reason = {0};
        status = plan_bucket(graph, graph->min_length, bucket, hooks, arena, &plans[count], &reason);
        if (status == MDOT_OK) continue;
        if (count > 0 && allow_dropped && status != MDOT_OUT_OF_MEMORY) {
            warn_dropped(hooks, bucket, &reason);
            status = MDOT_OK;
        } else if (graph->symbol != NULL && status == MDOT_UNSUPPORTED) {
            refuse_bucket(graph, buckets, count, needed, buckets == default_buckets, &reason, arena, err);
        } else if (err != NULL) {
            *err = reason;
        }
        break;
    }
    if (status != MDOT_OK) return status;
    co_hint_unfused(plans[0]->graph, hooks);
    /* A rounded quotient of the length may be a number in the shorter buckets. The last one contains all lengths. */
    *out_entry = (cg_entry){.name = name, .graph = plans[count - 1]->graph, .plan_count = (int)count, .plans = plans};
    return MDOT_OK;
}

/* Returns the file's name less folder and suffix. */
static const char *predictor_name(ir_arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/'), *base = slash != NULL ? slash + 1 : path;
    const char *dot = strrchr(base, '.');
    return ir_arena_strndup(arena, base, dot != NULL && dot != base ? (size_t)(dot - base) : strlen(base));
}

static void report_code_progress(void *user, const char *step, size_t done, size_t total)
{
    const co_hooks *hooks = user;
    if (hooks->progress == NULL || total == 0) return;
    hooks->progress(hooks->user, step, PROGRESS_PLANNED + (PROGRESS_TOTAL - PROGRESS_PLANNED) * done / total,
                    PROGRESS_TOTAL);
}

static void report_code_warning(void *user, const char *text)
{
    const co_hooks *hooks = user;
    if (hooks->warning != NULL) hooks->warning(hooks->user, text);
}

static void dump_code(void *user, const char *text)
{
    const co_hooks *hooks = user;
    hooks->dump(hooks->user, text);
}

static const bs_struct_version entry_type = BS_SIZED(mdotc_entry, model_path);
static const bs_struct_version options_type = BS_SIZED(mdotc_options, user);

/* Copies the caller's array into this library's form, in the arena. */
static mdot_status read_entries(const mdotc_entry *caller_entries, size_t count, ir_arena *arena,
                                const mdotc_entry **out_copy, mdot_error *err)
{
    if (count == 0) return BS_INVALID(err, "the list of entry points is empty");
    mdot_status status = bs_check_struct(&entry_type, caller_entries, err);
    if (status != MDOT_OK) return status;
    mdotc_entry *entries_copy = IR_NEW_ARRAY(arena, mdotc_entry, count);
    if (entries_copy == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    for (size_t i = 0; status == MDOT_OK && i < count; i++)
        status = bs_read_element(&entry_type, caller_entries, i, &entries_copy[i], err);
    if (status == MDOT_OK) *out_copy = entries_copy;
    return status;
}

/* Elements of all float constants read by nodes. */
static double count_weights(const ir_graph *graph, ir_arena *arena)
{
    bool *counted = IR_NEW_ARRAY(arena, bool, graph->value_count + 1);
    double elements = 0;
    for (const ir_node *node = graph->first; node != NULL && counted != NULL; node = node->next) {
        for (int i = 0; i < node->input_count; i++) {
            const ir_value *value = node->inputs[i];
            if (value == NULL || value->constant == NULL || counted[value->id]) continue;
            counted[value->id] = true;
            if (ir_dtype_is_float(value->constant->dtype)) elements += (double)value->constant->count;
        }
    }
    return elements;
}

/* Refuses a model whose weights exceed the limit in the images for CPUs. The import calls this with the shapes that
 * the file states, because reading so many weights takes many seconds. After the import it is called again, because
 * the import unpacks weights of a few bits. */
static mdot_status check_weights(const void *targets_user, const char *file, double elements, mdot_error *err)
{
    const co_targets *targets = targets_user;
    bool in_fp32 = false;
    for (int t = 0; t < targets->count; t++)
        in_fp32 =
            in_fp32 || (targets->target[t].kind == MDOT_IMAGE_CPU && targets->target[t].kernel_precision == CG_FP32);
    double bytes = elements * (in_fp32 ? 4 : 2);
    if (bytes <= (double)CG_MAX_WEIGHT_BYTES) return MDOT_OK;
    bool fits_bf16 = in_fp32 && bytes / 2 <= (double)CG_MAX_WEIGHT_BYTES;
    return mdot_fail(err, MDOT_UNSUPPORTED,
                     "%s: the weights take at least %.2f GiB, but CPU code reaches less than 2 GiB; %ssplit the model",
                     file, bytes / (1 << 30),
                     fits_bf16 ? "compile with --kernel-precision bf16 alone, which takes half of fp32's memory, or "
                               : "");
}

static mdot_status compile(const mdotc_entry *entries, size_t entry_count, const char *artefact_path,
                           const mdotc_options *o, ir_arena *arena, mdot_error *err)
{
    co_hooks hooks = {o->dump_pass, o->dump, o->warning, o->progress, o->user};
    const int64_t *buckets = o->bucket_count > 0 ? o->buckets : default_buckets;
    size_t bucket_count = o->bucket_count > 0 ? o->bucket_count : DEFAULT_BUCKET_COUNT;
    for (; o->bucket_count == 0 && bucket_count > 1 && buckets[0] < o->min_length; bucket_count--) buckets++;
    co_targets targets;
    fe_options import = {.bindings = o->dims,
                         .binding_count = o->dim_count,
                         .output = artefact_path,
                         .check_weights = check_weights,
                         .weights_user = &targets,
                         .warning = o->warning,
                         .user = o->user};
    cg_entry *planned = IR_NEW_ARRAY(arena, cg_entry, entry_count + 1);
    if (planned == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);

    mdot_status status = co_check_entries(entries, entry_count, err);
    if (status == MDOT_OK) status = co_check_options(o, err);
    if (status == MDOT_OK) status = bs_check_output(artefact_path, err);
    if (status == MDOT_OK) status = co_parse_targets(o->targets, o->target_count, o->kernel_precision, &targets, err);
    if (status == MDOT_OK) status = check_dump(o->dump_pass, &targets, err);
    for (size_t i = 0; status == MDOT_OK && i < entry_count; i++) {
        ir_graph *graph = NULL;
        status = fe_import(entries[i].model_path, &import, arena, &graph, err);
        if (status != MDOT_OK) break;
        status = check_weights(&targets, graph->name, count_weights(graph, arena), err);
        if (status != MDOT_OK) break;
        graph->min_length = o->min_length;
        dump_text(&hooks, "import", hooks.dump != NULL ? ir_graph_print(graph, arena) : NULL);
        status = co_plan_entry(entries[i].name, graph, buckets, bucket_count, o->allow_dropped, &hooks, arena,
                               &planned[i], err);
        if (status == MDOT_OK) status = co_read_columns(graph, &hooks, arena, &planned[i].columns, err);
        status = fe_explain_memory(arena, entries[i].model_path, status, err);
        if (o->progress != NULL)
            o->progress(o->user, "planning", PROGRESS_PLANNED * (i + 1) / entry_count, PROGRESS_TOTAL);
    }
    if (status != MDOT_OK) return status;

    cg_options code = {.predictor_name = o->name != NULL ? o->name : predictor_name(arena, entries[0].model_path),
                       .target_count = targets.count,
                       .targets = targets.target,
                       .dump = o->dump != NULL && is_code_dump(o->dump_pass) ? o->dump_pass : NULL,
                       .dump_text = dump_code,
                       .warning = report_code_warning,
                       .progress = report_code_progress,
                       .user = &hooks,
                       .check = co_try_artefact};
    return cg_write_artefact(planned, (int)entry_count, &code, artefact_path, arena, err);
}

mdot_status mdotc_compile(const mdotc_entry *entries, size_t entry_count, const char *artefact_path,
                          const mdotc_options *options, mdot_error *err)
{
    mdotc_options o = {0};
    BS_TRY(options != NULL ? bs_read_struct(&options_type, options, &o, err) : MDOT_OK);
    ir_arena *arena = ir_arena_create(0);
    if (arena == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    const mdotc_entry *entries_copy = NULL;
    mdot_status status = read_entries(entries, entry_count, arena, &entries_copy, err);
    if (status == MDOT_OK) status = compile(entries_copy, entry_count, artefact_path, &o, arena, err);
    ir_arena_destroy(arena);
    return status;
}

const char *mdotc_version(void) { return MDOT_VERSION_STRING; }

uint32_t mdotc_version_number(void) { return MDOT_VERSION_NUMBER; }
