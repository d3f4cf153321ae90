/* job_read.c — reads an ONNX file into an mdot_job, with one call per stage.
 *
 *   strip (forward graph) → infer (every value typed) → recognise (passes of ir/) → extract operators → mdot_job_create
 */
#include "base/status.h"
#include "frontend/job/job_reader.h"
#include "frontend/job/job_tables.h"
#include "frontend/job/stages.h"
#include "frontend/job/traced_program.h"
#include "frontend/onnx/onnx.h"
#include "ir/passes.h"

/* The pattern-recognising passes, in the order of passes.def. Excluded are passes that compute with weights (linears,
 * merge) or decompose recognised operators (expand). */
static const struct {
    const char *name;
    bool merges_kernels; /* makes one operator out of several PyTorch kernels */
} recognising[] = {{"simplify", false},
                   {"lower_contrib", false},
                   {"einsum_to_matmul", false},
                   {"recognise_norms", true},
                   {"recognise_group_norms", true},
                   {"recognise_activations", true},
                   {"recognise_attention", false},
                   {"simplify_2", false}};

static void recognise_patterns(fe_job *job)
{
    for (size_t i = 0; i < sizeof recognising / sizeof *recognising && job->status == MDOT_OK; i++) {
        bool changed;
        if (recognising[i].merges_kernels && fe_is_traced(job->graph)) continue;
        job->status = ir_run_pass(job->graph, recognising[i].name, &changed, job->err);
    }
}

/* Sequences processed in parallel by the first recurrence; 0: the graph has no recurrence. */
static int64_t sequences_of(const ir_graph *graph)
{
    for (const ir_node *node = graph->first; node != NULL; node = node->next) {
        if (fe_row_of(node)->settings != FE_SETTINGS_RECURRENT || node->inputs[0]->type.rank != 3) continue;
        return node->inputs[0]->type.dim[ir_node_int(node, "layout", 0) != 0 ? 0 : 1].offset;
    }
    return 0;
}

/* The dimension named as batch, which may follow a sequence length. Otherwise, the first dimension of the first input
 * with more than one dimension. The second dimension is used instead if it equals a recurrence's batch, because
 * PyTorch's recurrences take the sequence axis first. */
static int64_t batch_of(const ir_graph *graph)
{
    if (graph->batch > 0) return graph->batch;
    for (int i = 0; i < graph->input_count; i++) {
        const ir_type *type = &graph->inputs[i]->type;
        if (type->rank < 2 || type->dim[0].offset <= 0) continue;
        int64_t first = type->dim[0].offset, second = type->dim[1].offset, sequences = sequences_of(graph);
        return sequences == second && sequences > 0 ? second : first;
    }
    return 1;
}

static void find_batch(fe_job *job) { job->batch = batch_of(job->graph); }

static void (*const stages[])(fe_job *job) = {
    fe_job_strip_backward,    fe_job_find_parameter_inputs,
    fe_job_strip_dropout,     fe_job_mark_folded_norms, /* before constants are folded */
    fe_job_infer_types,       fe_job_count_products,
    fe_job_widen_types,       find_batch,
    fe_job_unfold_norms,      fe_job_canonicalise,
    recognise_patterns,       fe_job_fold_constants, /* of new nodes */
    fe_job_extract_operators,
};

/* The one memory test: a stage without memory left the arena in the failed state (fe_job.h). */
static void check_memory(fe_job *job)
{
    if (job->status == MDOT_OK && !ir_arena_failed(job->graph->arena)) return;
    if (job->status != MDOT_OK && job->status != MDOT_OUT_OF_MEMORY) return;
    job->status = BS_OUT_OF_MEMORY(job->err, "%s", job->graph->name);
}

static mdot_status read_graph(fe_job *job)
{
    job->graph->keeps_equals = fe_is_traced(job->graph);
    job->graph->keeps_products = true; /* a program computes them as often as the file has them */
    for (size_t i = 0; i < sizeof stages / sizeof *stages && job->status == MDOT_OK; i++) {
        stages[i](job);
        check_memory(job);
    }
    return job->status;
}

typedef struct source {
    const char *name; /* a path if bytes is NULL */
    const void *bytes;
    size_t size_bytes;
} source;

typedef struct extraction {
    ir_arena *arena; /* has the graph and the operators */
    fe_job job;
} extraction;

/* Reads the operators, at another batch than the options' if `batch` is above 0. The caller destroys the arena in each
 * case. */
static mdot_status extract(const source *from, const mdot_job_options *options, int64_t batch, extraction *out,
                           mdot_error *err)
{
    *out = (extraction){.arena = ir_arena_create(0), .job = {.options = options, .err = err}};
    if (out->arena == NULL) return BS_OUT_OF_MEMORY(err, "%s", from->name);
    const fe_options import = {.bindings = options->dims,
                               .binding_count = options->dim_count,
                               .output = options->output,
                               .skip_weights = true,
                               .job = true,
                               .batch = batch,
                               .keep_call = fe_job_op_is_alias,
                               .warning = options->warning,
                               .user = options->user};
    ir_graph **graph = &out->job.graph;
    mdot_status status = from->bytes != NULL ? fe_import_bytes(from->bytes, from->size_bytes, from->name, NULL, &import,
                                                               out->arena, graph, err)
                                             : fe_import(from->name, &import, out->arena, graph, err);
    if (status == MDOT_OK) status = read_graph(&out->job);
    return fe_explain_memory(out->arena, from->name, status, err);
}

/* A batch without a common divisor, so that sizes are multiples of it by chance only. */
static int64_t other_batch(int64_t batch) { return batch % 7 != 0 ? 7 : 11; }

static bool has_terms(const fe_job *job)
{
    for (size_t i = 0; i < job->operator_count; i++) {
        const mdot_job_operator *op = &job->operators[i];
        for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++)
            if (op->per_square[phase].flops + op->per_square[phase].bytes_written > 0) return true;
        if (op->batch_settings != 0) return true;
    }
    return false;
}

/* A file's constant that a batch only repeats, for example embeddings of one kind of token, is read once. */
static void read_once(const fe_job *job, const fe_job *other)
{
    double ratio = (double)other->batch / (double)job->batch;
    for (size_t i = 0; i < job->operator_count; i++) {
        for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) {
            const mdot_load *once = &job->operators[i].per_step[phase];
            mdot_load *load = &other->operators[i].per_step[phase];
            if (load->flops <= ratio * once->flops) load->flops = once->flops;
            if (load->bytes_read <= ratio * once->bytes_read) load->bytes_read = once->bytes_read;
            if (load->bytes_written <= ratio * once->bytes_written) load->bytes_written = once->bytes_written;
        }
    }
}

/* Extracts the same operators at another batch, and finds the terms of each number. */
static mdot_status combine(const source *from, const mdot_job_options *options, fe_job *job, int64_t batch,
                           mdot_error *err)
{
    extraction other;
    mdot_status status = extract(from, options, batch, &other, err);
    if (status == MDOT_OK && other.job.operator_count != job->operator_count)
        status = BS_INVALID(err, "%zu operators at batch %lld, and %zu at batch %lld", job->operator_count,
                            (long long)job->batch, other.job.operator_count, (long long)other.job.batch);
    if (status == MDOT_OK && !fe_is_traced(job->graph)) read_once(job, &other.job);
    if (status == MDOT_OK)
        status = mdot_operators_combine(job->operators, job->batch, other.job.operators, other.job.batch,
                                        job->operator_count, err);
    ir_arena_destroy(other.arena);
    return status;
}

/* Finds the terms of the batch in an open batch, or with the model at another batch. Where a dimension of 1 changes the
 * graph, *out_at_two is the graph at batch 2, if it has squares. Otherwise, all work counts per sample. Fails only if
 * memory runs out. */
static mdot_status combine_batches(const source *from, const mdot_job_options *options, const extraction *first,
                                   extraction *out_at_two, mdot_error *err)
{
    mdot_job_options silent = *options;
    mdot_error reason = {0};
    silent.warning = NULL;
    fe_job job = first->job, *at_two = &out_at_two->job;
    const source second = {from->name, options->other_batch_bytes, options->other_batch_size};
    bool is_stated = second.bytes != NULL;
    if (!is_stated && (!job.graph->has_batch || fe_is_traced(job.graph))) return MDOT_OK;
    int64_t other = is_stated ? options->other_batch : other_batch(job.batch);
    mdot_status status = combine(is_stated ? &second : from, &silent, &job, other, &reason);
    if (status != MDOT_OK && status != MDOT_OUT_OF_MEMORY && !is_stated && job.batch == 1) {
        status = extract(from, &silent, 2, out_at_two, &reason);
        if (status == MDOT_OK) status = combine(from, &silent, at_two, other, &reason);
        if (status != MDOT_OK || !has_terms(at_two)) at_two->operators = NULL;
    }
    if (status == MDOT_OUT_OF_MEMORY) return mdot_fail(err, status, "%s", reason.message);
    if (status != MDOT_OK)
        fe_job_warn(
            &job,
            "%s: all work counts per sample, because another batch gives another graph (%s); read it at the batch "
            "that you ask about",
            from->name, reason.message);
    return MDOT_OK;
}

static mdot_status read_job(const source *from, const mdot_job_options *options, mdot_job **out_job, mdot_error *err)
{
    extraction first, at_two = {0};
    mdot_status status = extract(from, options, 0, &first, err);
    if (status == MDOT_OK) status = combine_batches(from, options, &first, &at_two, err);
    if (status == MDOT_OK) {
        fe_job *job = at_two.job.operators != NULL ? &at_two.job : &first.job;
        job->err = err;
        job->options = options;
        job->batch = first.job.batch;
        fe_job_finish(job);
        check_memory(job);
        status = job->status;
        if (status == MDOT_OK) *out_job = job->result;
    }
    ir_arena_destroy(at_two.arena);
    ir_arena_destroy(first.arena);
    return status;
}

mdot_status fe_read_onnx(const char *path, const mdot_job_options *options, mdot_job **out_job, mdot_error *err)
{
    return read_job(&(source){.name = path}, options, out_job, err);
}

mdot_status fe_read_onnx_bytes(const void *bytes, size_t size_bytes, const char *name, const mdot_job_options *options,
                               mdot_job **out_job, mdot_error *err)
{
    return read_job(&(source){name, bytes != NULL ? bytes : "", size_bytes}, options, out_job, err);
}

const char *mdotjob_version(void) { return MDOT_VERSION_STRING; }

uint32_t mdotjob_version_number(void) { return MDOT_VERSION_NUMBER; }
