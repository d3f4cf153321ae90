/* shapes.c — infers the type of every value of a job's graph, including values of unknown operators.
 *
 * The compiler refuses unknown operators, but the time of a job must still be estimated. An operator that is missing
 * from the table, or whose rule fails, becomes mdot.Opaque. Its outputs get the types that the file states, or else
 * the type of its first input. That is right for most of the remaining operators, because they are pointwise.
 */
#include "frontend/job/job_reader.h"

#include "frontend/onnx/names.h"
#include "ir/passes/fold.h"

#include <stdio.h>
#include <string.h>

/* Larger constants are not computed, because they are weights that a test file writes as ConstantOfShape. */
enum { MAX_COMPUTED = 8192 };

typedef struct inferrer {
    fe_job *job;
    ir_builder builder;
} inferrer;

/* Attributes of an opaque node, read by the warning. The warning comes later, because nodes of untaken branches need
 * none. */
static const char reason_name[] = "reason", guessed_name[] = "guessed";

/* ---- Unknown operators
 * ---------------------------------------------------------------------------------------------- */

static bool is_number_type(const ir_type *type)
{
    bool numbers = type->dtype != MDOT_DTYPE_NONE && type->rank >= 0;
    for (int i = 0; i < type->rank && numbers; i++) numbers = ir_dim_is_number(type->dim[i]);
    return numbers;
}

/* The type of the input that is most likely as large as the result: floating data first, then other data, then
 * constants. Conditions are skipped. */
static ir_type guess_type(const ir_node *node)
{
    ir_type best = {.dtype = MDOT_DTYPE_F32};
    int best_rank = 0;
    for (int i = 0; i < node->input_count; i++) {
        const ir_value *value = node->inputs[i];
        if (value == NULL || !is_number_type(&value->type) || value->type.dtype == MDOT_DTYPE_BOOL) continue;
        int rank = value->constant != NULL ? 1 : ir_dtype_is_float(value->type.dtype) ? 3 : 2;
        if (rank <= best_rank) continue;
        best_rank = rank;
        best = value->type;
    }
    return best;
}

/* Sets the attributes that shape_opaque reads, for all outputs at once because there may be thousands. False: out of
 * memory. */
static bool state_types(ir_graph *graph, ir_node *node, const ir_type *const *types)
{
    int count = node->output_count, dim_count = 0;
    for (int i = 0; i < count; i++) dim_count += types[i]->rank;
    int64_t *dtypes = IR_NEW_ARRAY(graph->arena, int64_t, count), *ranks = IR_NEW_ARRAY(graph->arena, int64_t, count);
    int64_t *dims = IR_NEW_ARRAY(graph->arena, int64_t, dim_count);
    if (dtypes == NULL || ranks == NULL || dims == NULL) return false;
    dim_count = 0;
    for (int i = 0; i < count; i++) {
        dtypes[i] = types[i]->dtype;
        ranks[i] = types[i]->rank;
        for (int k = 0; k < types[i]->rank; k++) dims[dim_count++] = types[i]->dim[k].offset;
    }
    return ir_node_set_ints(graph, node, "dtypes", dtypes, count) &&
           ir_node_set_ints(graph, node, "ranks", ranks, count) &&
           ir_node_set_ints(graph, node, "dims", dims, dim_count);
}

static mdot_status make_opaque(const inferrer *in, ir_node *node, const ir_type *stated, const char *reason)
{
    ir_graph *graph = in->job->graph;
    ir_type guess = guess_type(node);
    bool guessed = false;
    const ir_type **types = IR_NEW_ARRAY(graph->arena, const ir_type *, node->output_count);
    if (types == NULL) return fe_job_out_of_memory(in->job);
    node->attr_count = 0;
    for (int i = 0; i < node->output_count; i++) {
        bool known = is_number_type(&stated[i]);
        guessed = guessed || (!known && node->outputs[i] != NULL);
        types[i] = known ? &stated[i] : &guess;
    }
    if (!state_types(graph, node, types)) return fe_job_out_of_memory(in->job);
    node->op = &ir_ops[IR_OP_Opaque];
    if (!ir_node_set_string(graph, node, reason_name, reason) || !ir_node_set_int(graph, node, guessed_name, guessed)) {
        return fe_job_out_of_memory(in->job);
    }
    return ir_infer_node(graph, node, in->job->err);
}

/* Warns once per operator type, because a graph may hold thousands of such nodes. */
static mdot_status warn(const fe_job *job, const ir_node *node, fe_names *warned)
{
    bool guessed = ir_node_int(node, guessed_name, 0) != 0;
    const char *key = ir_arena_printf(job->graph->arena, "%s %d", node->op_type, guessed);
    if (key == NULL) return fe_job_out_of_memory(job);
    if (fe_names_find(warned, key) >= 0) return MDOT_OK;
    if (!fe_names_add(warned, key, 0)) return fe_job_out_of_memory(job);
    fe_job_warn(job, "%s: node '%s': %s is an operator of its own kind (%s)%s", job->graph->name, node->name,
                node->op_type, ir_node_string(node, reason_name, ""),
                guessed ? "; its result is taken to be as large as its first input" : "");
    return MDOT_OK;
}

static mdot_status warn_of_unknown(const fe_job *job)
{
    fe_names *warned = fe_names_create(job->graph->arena);
    if (warned == NULL) return fe_job_out_of_memory(job);
    mdot_status status = MDOT_OK;
    for (const ir_node *node = job->graph->first; node != NULL && status == MDOT_OK; node = node->next) {
        if (node->op == &ir_ops[IR_OP_Opaque]) status = warn(job, node, warned);
    }
    return status;
}

/* ---- Branches --------------------------------------------------------------------------------------------------- */

/* Is the node an If whose branches were read? An If that the frontend could not read is opaque. */
static bool is_if(const ir_node *node)
{
    return fe_job_op_role_of(node) == FE_JOB_OP_BRANCHES && node->input_count == 1 + 2 * node->output_count;
}

/* Replaces the results of the If by those of the branch taken. A condition that depends on data counts as true. */
static void take_branch(inferrer *in, ir_node *node)
{
    int64_t condition;
    int count = 0;
    const ir_value *value = node->inputs[0];
    ir_dim known[IR_MAX_KNOWN];
    bool decided = value != NULL && ir_value_known(value, known, &count) && count == 1;
    condition = decided ? known[0].offset : 1;
    if (!decided) {
        fe_job_warn(in->job, "%s: node '%s': which branch an If takes depends on data; its first one is counted",
                    in->job->graph->name, node->name);
    }
    for (int i = 0; i < node->output_count; i++) {
        ir_value *result = node->inputs[1 + i + (condition ? 0 : node->output_count)];
        if (node->outputs[i] == NULL || result == NULL) continue;
        node->outputs[i]->type = result->type;
        ir_replace(&in->builder, node->outputs[i], result);
    }
}

/* ---- Constants without data ------------------------------------------------------------------------------------- */

/* Does the node compute from constants alone? */
static bool is_constant(const ir_node *node)
{
    if (!(node->op->traits & IR_STATELESS) || node->input_count == 0) return false;
    for (int i = 0; i < node->input_count; i++) {
        if (node->inputs[i] != NULL && node->inputs[i]->constant == NULL) return false;
    }
    return true;
}

static ir_value *constant_of_type(ir_builder *b, const ir_value *value)
{
    ir_tensor *tensor = ir_build_alloc(b, 1, sizeof *tensor);
    if (tensor == NULL) return NULL;
    tensor->dtype = value->type.dtype;
    tensor->rank = value->type.rank;
    for (int i = 0; i < tensor->rank; i++) {
        if (!ir_dim_is_number(value->type.dim[i])) return NULL;
        tensor->dims[i] = value->type.dim[i].offset;
    }
    tensor->count = ir_count_elements(tensor->rank, tensor->dims);
    return tensor->count < 0 ? NULL : ir_graph_add_constant(b->graph, value->name, tensor);
}

static void freeze(ir_builder *b, ir_node *node)
{
    if (!is_constant(node)) return;
    for (int i = 0; i < node->output_count; i++) {
        ir_value *value = node->outputs[i];
        if (value != NULL && value->use_count) ir_replace(b, value, constant_of_type(b, value));
    }
}

/* Records that the values with ids from first_made on were computed from the node's inputs. */
static mdot_status derive(const inferrer *in, const ir_node *node, int first_made)
{
    for (int id = first_made; id < in->job->graph->value_count; id++) {
        if (!fe_parameters_derive(in->job->learnt, node, id)) return fe_job_out_of_memory(in->job);
    }
    return MDOT_OK;
}

static bool is_large(const ir_node *node)
{
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] != NULL && ir_type_count_at(&node->outputs[i]->type, 1) > MAX_COMPUTED) return true;
    }
    return false;
}

/* ---- Inference -------------------------------------------------------------------------------------------------- */

/* Folds the node. If a value cannot be computed, the node stays and runs in every step. */
static void fold(ir_builder *b, ir_node *node)
{
    mdot_error *err = b->err, reason;
    b->err = &reason;
    ir_fold_node(b, node);
    b->err = err;
    if (b->status == MDOT_OUT_OF_MEMORY && err != NULL) *err = reason;
    if (b->status != MDOT_OUT_OF_MEMORY) b->status = MDOT_OK;
}

/* The message without the file and node that rules put in front, because the warning prints them itself. */
static const char *without_place(const char *message)
{
    const char *reason = strstr(message, "): ");
    return reason != NULL ? reason + strlen("): ") : message;
}

static bool is_used(const ir_node *node)
{
    for (int i = 0; i < node->output_count; i++) {
        if (node->outputs[i] != NULL && node->outputs[i]->use_count) return true;
    }
    return false;
}

static mdot_status infer(inferrer *in, ir_node *node)
{
    ir_graph *graph = in->job->graph;
    ir_builder *b = &in->builder;
    ir_type *stated = IR_NEW_ARRAY(graph->arena, ir_type, node->output_count + 1);
    if (stated == NULL) return fe_job_out_of_memory(in->job);
    for (int i = 0; i < node->output_count; i++) {
        stated[i] = node->outputs[i] != NULL ? node->outputs[i]->type : (ir_type){.rank = -1};
    }
    if (is_if(node)) take_branch(in, node);
    if (node->op == NULL) fe_job_split_list(b, node);
    if (node->op == NULL) fe_job_reduce_embedding_bags(b, node);
    if (b->status != MDOT_OK || !is_used(node)) return b->status;
    if (node->op == NULL) return make_opaque(in, node, stated, "it is not in mdot's table");
    mdot_error reason;
    mdot_status status = ir_infer_node(graph, node, &reason);
    if (status == MDOT_OUT_OF_MEMORY) return fe_job_out_of_memory(in->job);
    if (status != MDOT_OK) return make_opaque(in, node, stated, without_place(reason.message));
    int first_made = graph->value_count;
    if (!is_constant(node) || !is_large(node)) fold(b, node);
    if (!b->changed && b->status == MDOT_OK) freeze(b, node);
    return b->status == MDOT_OK ? derive(in, node, first_made) : b->status;
}

/* Drops the data of small weights, which were read along with the numbers that shapes need. Otherwise a pass would
 * merge weights that are equal only because they are freshly initialised. The scales of a Resize are numbers and
 * stay. */
static mdot_status forget_weights(const fe_job *job)
{
    for (ir_node *node = job->graph->first; node != NULL; node = node->next) {
        if (fe_row_of(node)->reads_numbers) continue;
        for (int i = 0; i < node->input_count; i++) {
            ir_value *value = node->inputs[i];
            if (!fe_is_parameter(job, value) || value->constant->data == NULL) continue;
            ir_tensor *shape = IR_NEW(job->graph->arena, ir_tensor);
            if (shape == NULL) return fe_job_out_of_memory(job);
            *shape = *value->constant;
            shape->data = NULL;
            value->constant = shape;
        }
    }
    return MDOT_OK;
}

typedef mdot_status (*visit_fn)(inferrer *in, ir_node *node);

/* Visits all nodes, including those without an operator, which ir_rewrite skips. */
static mdot_status visit_all(fe_job *job, visit_fn visit)
{
    ir_graph *graph = job->graph;
    inferrer in = {.job = job, .builder = {.graph = graph, .err = job->err}};
    mdot_status status = MDOT_OK;
    for (ir_node *node = graph->first, *next; node != NULL && status == MDOT_OK; node = next) {
        in.builder.at = node;
        in.builder.name = node->name;
        in.builder.first_new = graph->value_count;
        in.builder.changed = false;
        if (is_used(node)) status = visit(&in, node);
        next = node->next;
        if (!is_used(node)) ir_graph_remove_node(graph, node);
    }
    if (status == MDOT_OK) ir_graph_remove_dead(graph);
    return status;
}

mdot_status fe_job_infer(fe_job *job)
{
    mdot_status status = fe_parameters_create(job);
    if (status == MDOT_OK) status = visit_all(job, infer);
    if (status == MDOT_OK) status = warn_of_unknown(job);
    return status == MDOT_OK ? forget_weights(job) : status;
}

static mdot_status freeze_node(inferrer *in, ir_node *node)
{
    int first_made = in->job->graph->value_count;
    freeze(&in->builder, node);
    return in->builder.status == MDOT_OK ? derive(in, node, first_made) : in->builder.status;
}

mdot_status fe_job_fold_constants(fe_job *job)
{
    return visit_all(job, freeze_node);
}
