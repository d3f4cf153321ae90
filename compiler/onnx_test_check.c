/* onnx_test_check.c — mdotc_check: run an ONNX test directory (model.onnx, test_data_set_N/{input,output}_k.pb) through
 * compiled code.
 *
 * If the model has one symbolic dimension and all data sets agree with it, one artefact is compiled, with a bucket for
 * each occurring length. Otherwise each data set gets an artefact, bound to the data set's shapes. */
#include "base/struct_version.h"
#include "codegen/artefact.h"
#include "compiler/compiler.h"
#include "frontend/onnx/onnx.h"
#include "ir/ops.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct data_set {
    const char *path;
    int input_count, output_count;
    const ir_tensor *inputs[CO_MAX_TENSORS], *outputs[CO_MAX_TENSORS];
    int64_t length; /* value of the model's symbolic dimension; 0 if it has none */
} data_set;

typedef struct test {
    const char *directory;
    const mdotc_check_options *options;
    double relative_tolerance, absolute_tolerance;
    ir_arena *arena;
    const char *model_path, *artefact_path;
    int data_set_count;
    data_set *data_sets;
    mdotc_check_report report;
} test;

static int is_data_set(const struct dirent *entry) { return strncmp(entry->d_name, "test_data_set_", 14) == 0; }

static mdot_status read_data_sets(test *t, mdot_error *err)
{
    struct dirent **entries;
    int count = scandir(t->directory, &entries, is_data_set, versionsort);
    if (count < 0) return mdot_fail(err, MDOT_IO, "%s: %s", t->directory, strerror(errno));
    mdot_status status = MDOT_OK;
    if (count == 0) status = mdot_fail(err, MDOT_NOT_FOUND, "%s: found no test_data_set_* folder", t->directory);
    t->data_sets = IR_NEW_ARRAY(t->arena, data_set, count + 1);
    if (t->data_sets == NULL) status = BS_OUT_OF_MEMORY(err, "%s", t->directory);
    for (int i = 0; i < count; i++) {
        if (status == MDOT_OK) {
            data_set *set = &t->data_sets[i];
            set->path = ir_arena_printf(t->arena, "%s/%s", t->directory, entries[i]->d_name);
            status = co_read_tensors(t->arena, set->path, "input", set->inputs, &set->input_count, err);
            if (status == MDOT_OK)
                status = co_read_tensors(t->arena, set->path, "output", set->outputs, &set->output_count, err);
        }
        free(entries[i]);
    }
    free(entries);
    if (status == MDOT_OK) t->data_set_count = count;
    return status;
}

/* Determines every data set's length; false if one contradicts the graph. */
static bool solve_lengths(test *t, const ir_graph *graph)
{
    for (int s = 0; s < t->data_set_count; s++) {
        data_set *set = &t->data_sets[s];
        if (set->input_count != graph->input_count) return false;
        set->length = 0;
        for (int i = 0; i < set->input_count; i++) {
            int64_t length = co_solve_length(&graph->inputs[i]->type, set->inputs[i]);
            if (length < 0 || (length > 0 && set->length > 0 && length != set->length)) return false;
            if (length > 0) set->length = length;
        }
        if (set->length == 0) return false;
    }
    return true;
}

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static size_t collect_buckets(const test *t, int64_t *out_buckets)
{
    for (int s = 0; s < t->data_set_count; s++) out_buckets[s] = t->data_sets[s].length;
    qsort(out_buckets, (size_t)t->data_set_count, sizeof *out_buckets, ascending);
    size_t count = 0;
    for (int s = 0; s < t->data_set_count; s++)
        if (count == 0 || out_buckets[s] != out_buckets[count - 1]) out_buckets[count++] = out_buckets[s];
    return count;
}

static mdot_status compile(test *t, const ir_graph *graph, const int64_t *buckets, size_t bucket_count, mdot_error *err)
{
    static const co_hooks silent;
    const char *target = t->options->level != NULL ? ir_arena_printf(t->arena, "cpu:%s", t->options->level) : "cpu";
    co_targets targets;
    cg_entry entry;
    BS_TRY(co_parse_targets(&target, 1, NULL, &targets, err));
    BS_TRY(co_plan_entry("predict", graph, buckets, bucket_count, false, &silent, t->arena, &entry, err));
    cg_options options = {.predictor_name = "check", .target_count = targets.count, .targets = targets.target};
    return cg_write_artefact(&entry, 1, &options, t->artefact_path, t->arena, err);
}

static void report_difference(test *t, const data_set *set, const co_tensor *actual, const ir_wide *expected,
                              const co_difference *d)
{
    t->report.result = MDOTC_CHECK_FAIL;
    if (isinf(d->absolute) && actual->count != expected->count)
        snprintf(t->report.detail, sizeof t->report.detail, "%s: output \"%s\" has %lld elements, expected %lld",
                 set->path, actual->name, (long long)actual->count, (long long)expected->count);
    else
        snprintf(t->report.detail, sizeof t->report.detail,
                 "%s: output \"%s\" element %lld is wrong: largest error %.3e, expected %g there", set->path,
                 actual->name, (long long)d->index, d->relative,
                 expected->count > 0 ? ir_wide_get(expected, d->index) : 0);
}

static mdot_status compare_outputs(test *t, const data_set *set, const co_tensor *outputs, mdot_error *err)
{
    for (int i = 0; i < set->output_count; i++) {
        const ir_wide *expected =
            ir_wide_from_tensor(t->arena, co_reinterpret(t->arena, set->outputs[i], outputs[i].dtype));
        if (ir_arena_failed(t->arena)) return BS_OUT_OF_MEMORY(err, "%s", set->path);
        if (expected == NULL) return mdot_fail(err, MDOT_UNSUPPORTED, "%s: output %d cannot be compared", set->path, i);
        co_difference d;
        BS_TRY(co_compare(&outputs[i], expected, t->relative_tolerance, t->absolute_tolerance, &d, err));
        if (d.relative > t->report.worst_error) t->report.worst_error = d.relative;
        if (d.excess > 1 && t->report.result == MDOTC_CHECK_PASS) report_difference(t, set, &outputs[i], expected, &d);
    }
    return MDOT_OK;
}

static mdot_status run_data_set(test *t, const mdot_predictor *predictor, mdot_context *context, const data_set *set,
                                mdot_error *err)
{
    mdot_entry_info entry = MDOT_INIT(mdot_entry_info);
    co_tensor inputs[CO_MAX_TENSORS], outputs[CO_MAX_TENSORS];
    mdot_status status = mdot_predictor_get_entry(predictor, 0, &entry);
    if (status == MDOT_OK &&
        ((size_t)set->input_count != entry.input_count || (size_t)set->output_count != entry.output_count))
        status = mdot_fail(err, MDOT_MALFORMED,
                           "%s: the data set has %d inputs and %d outputs, but the model has %zu and %zu", set->path,
                           set->input_count, set->output_count, entry.input_count, entry.output_count);
    for (size_t i = 0; status == MDOT_OK && i < entry.input_count; i++) {
        mdot_tensor_info info = MDOT_INIT(mdot_tensor_info);
        status = mdot_predictor_get_input(predictor, 0, i, &info);
        const ir_tensor *source = set->inputs[i];
        inputs[i] =
            (co_tensor){.name = info.name, .dtype = source->dtype, .rank = source->rank, .count = source->count};
        memcpy(inputs[i].dims, source->dims, sizeof source->dims);
        size_t bytes = (size_t)source->count * mdot_dtype_size_bytes(source->dtype);
        inputs[i].data = ir_arena_alloc(t->arena, bytes + MDOT_ABI_ALIGNMENT, 1);
        if (inputs[i].data == NULL) return BS_OUT_OF_MEMORY(err, "%s", set->path);
        if (bytes > 0) memcpy(inputs[i].data, source->data, bytes);
    }
    if (status == MDOT_OK)
        status = co_create_tensors(predictor, 0, set->length, false, entry.output_count, t->arena, outputs, err);
    if (status == MDOT_OK)
        status = co_run(context, 0, inputs, entry.input_count, outputs, entry.output_count, t->arena, err);
    if (status == MDOT_OK) status = compare_outputs(t, set, outputs, err);
    if (status == MDOT_OK) t->report.data_sets++;
    return status;
}

/* Opens the compiled artefact and runs data sets [first, end). */
static mdot_status run_data_sets(test *t, int first, int end, mdot_error *err)
{
    mdot_predictor *predictor = NULL;
    mdot_context *context = NULL;
    mdot_open_options options = {.struct_size = sizeof options, .cpu_isa = t->options->level, .device = "cpu"};
    mdot_status status = mdot_predictor_open(t->artefact_path, &options, &predictor, err);
    if (status == MDOT_OK) status = mdot_context_create(predictor, &context, err);
    for (int i = first; status == MDOT_OK && i < end; i++)
        status = run_data_set(t, predictor, context, &t->data_sets[i], err);
    mdot_context_destroy(context);
    mdot_predictor_close(predictor);
    return status;
}

static mdot_status check_symbolic(test *t, const ir_graph *graph, mdot_error *err)
{
    int64_t *buckets = IR_NEW_ARRAY(t->arena, int64_t, t->data_set_count);
    if (buckets == NULL) return BS_OUT_OF_MEMORY(err, "%s", t->directory);
    mdot_status status = compile(t, graph, buckets, collect_buckets(t, buckets), err);
    return status == MDOT_OK ? run_data_sets(t, 0, t->data_set_count, err) : status;
}

/* Binds the model to a data set's shapes, and to the data on which shapes depend. */
static mdot_status import_static(test *t, const data_set *set, ir_graph **out_graph, mdot_error *err)
{
    ir_type types[CO_MAX_TENSORS];
    for (int i = 0; i < set->input_count; i++) {
        types[i] = (ir_type){.dtype = set->inputs[i]->dtype, .rank = set->inputs[i]->rank};
        for (int d = 0; d < types[i].rank; d++) types[i].dim[d] = ir_dim_number(set->inputs[i]->dims[d]);
    }
    fe_options options = {.input_types = types, .input_type_count = (size_t)set->input_count};
    const char *bound = NULL;
    BS_TRY(fe_import(t->model_path, &options, t->arena, out_graph, err));
    if (!co_bind_shape_inputs(*out_graph, set->inputs, &bound)) return BS_OUT_OF_MEMORY(err, "%s", t->directory);
    if (bound != NULL) snprintf(t->report.detail, sizeof t->report.detail, "bound: %s", bound);
    return MDOT_OK;
}

static mdot_status check_static(test *t, mdot_error *err)
{
    for (int s = 0; s < t->data_set_count; s++) {
        ir_graph *graph;
        t->data_sets[s].length = 0;
        BS_TRY(import_static(t, &t->data_sets[s], &graph, err));
        BS_TRY(compile(t, graph, NULL, 0, err));
        BS_TRY(run_data_sets(t, s, s + 1, err));
    }
    return MDOT_OK;
}

static mdot_status check_model(test *t, mdot_error *err)
{
    ir_graph *graph = NULL;
    fe_options options = {0};
    mdot_error reason = {0};
    /* The data of a model with sequences or unknown operators may be unreadable, so the model is checked first. */
    mdot_status imported = fe_import(t->model_path, &options, t->arena, &graph, &reason);
    if (imported == MDOT_OK) imported = ir_check_supported(graph, &reason);
    if (imported == MDOT_UNSUPPORTED) {
        if (err != NULL) *err = reason;
        return imported;
    }
    BS_TRY(read_data_sets(t, err));
    for (int s = 0; imported == MDOT_OK && s < t->data_set_count; s++) {
        data_set *set = &t->data_sets[s];
        for (int i = 0; i < set->input_count && i < graph->input_count; i++)
            set->inputs[i] = co_reinterpret(t->arena, set->inputs[i], graph->inputs[i]->type.dtype);
    }
    bool symbolic = imported == MDOT_OK && graph->symbol != NULL && solve_lengths(t, graph);
    return symbolic ? check_symbolic(t, graph, err) : check_static(t, err);
}

static mdot_status check(test *t, mdot_error *err)
{
    mdot_error reason = {0};
    t->model_path = ir_arena_printf(t->arena, "%s/model.onnx", t->directory);
    if (t->model_path == NULL) return BS_OUT_OF_MEMORY(err, "%s", t->directory);
    mdot_status status = check_model(t, &reason);
    if (status == MDOT_UNSUPPORTED) {
        t->report.result = MDOTC_CHECK_UNSUPPORTED;
        snprintf(t->report.detail, sizeof t->report.detail, "%s", reason.message);
        return MDOT_OK;
    }
    if (status != MDOT_OK && err != NULL) *err = reason;
    return status;
}

static const bs_struct_version options_type = BS_SIZED(mdotc_check_options, absolute_tolerance);
static const bs_struct_version report_type = BS_SIZED(mdotc_check_report, detail);

mdot_status mdotc_check(const char *directory, const mdotc_check_options *options, mdotc_check_report *out_report,
                        mdot_error *err)
{
    mdotc_check_options o = {0};
    if (options != NULL) BS_TRY(bs_read_struct(&options_type, options, &o, err));
    BS_TRY(bs_check_struct(&report_type, out_report, err));
    if (directory == NULL) return BS_INVALID(err, "mdotc_check requires a directory");
    BS_TRY(co_check_tolerance("relative tolerance", o.relative_tolerance, err));
    BS_TRY(co_check_tolerance("absolute tolerance", o.absolute_tolerance, err));
    test t = {.directory = directory, .options = &o, .report = MDOT_INIT(mdotc_check_report)};
    t.relative_tolerance = t.options->relative_tolerance > 0 ? t.options->relative_tolerance : 1e-4;
    t.absolute_tolerance = t.options->absolute_tolerance > 0 ? t.options->absolute_tolerance : 1e-6;

    const char *root = secure_getenv("TMPDIR");
    char folder[512], artefact[544];
    if (snprintf(folder, sizeof folder, "%s/mdot-check-XXXXXX", root != NULL ? root : "/tmp") >= (int)sizeof folder)
        return mdot_fail(err, MDOT_IO, "TMPDIR is too long: %s", root);
    t.arena = ir_arena_create(0);
    if (t.arena == NULL) return mdot_fail(err, MDOT_OUT_OF_MEMORY, NULL);
    mdot_status status;
    if (mkdtemp(folder) == NULL) {
        status = mdot_fail(err, MDOT_IO, "cannot create a folder for temporary files: %s: %s", folder, strerror(errno));
    } else {
        snprintf(artefact, sizeof artefact, "%s/check.mdot", folder);
        t.artefact_path = artefact;
        status = check(&t, err);
        unlink(artefact);
        rmdir(folder);
    }
    if (status == MDOT_OK) status = bs_fill_struct(&report_type, &t.report, out_report, err);
    ir_arena_destroy(t.arena);
    return status;
}
