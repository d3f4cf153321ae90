/* shapes.c — infers the type of every value of a job's graph, including values of unknown operators.
 *
 * The compiler refuses unknown operators, but a job's time must still be estimated. An operator that is missing from
 * the table, or whose rule fails, becomes mdot.Opaque. Its outputs get the types that the file states, or else the type
 * of the first input. That is right for most of the remaining operators, because they are pointwise. */
#include "frontend/job/stages.h"

#include "frontend/job/fe_job.h"
#include "frontend/job/job_rules.h"
#include "frontend/job/job_tables.h"
#include "frontend/job/parameters.h"
#include "frontend/job/traced_program.h"
#include "frontend/onnx/names.h"
#include "ir/passes/graph_builder.h"

#include <string.h>

/* Larger constants are not computed, because they are weights that a test file writes as ConstantOfShape. */
enum { MAX_COMPUTED = 8192 };

typedef struct inferrer {
    fe_job *job;
    ir_builder builder; /* remembers failures of all nodes */
    ir_type *stated;    /* output types stated by the file for the current node */
} inferrer;

/* Attributes of an opaque node, read by the warning. The warning comes later, because nodes of untaken branches need
 * none. */
static const char reason_name[] = "reason", guessed_name[] = "guessed";

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

/* Sets the attributes that shape_opaque reads, for all outputs at once because there may be thousands. */
static void state_types(ir_graph *graph, ir_node *node, const ir_type *stated, const ir_type *guess)
{
    int count = node->output_count;
    int64_t *dtypes = IR_NEW_ARRAY(graph->arena, int64_t, count), *ranks = IR_NEW_ARRAY(graph->arena, int64_t, count);
    int64_t *dims = IR_NEW_ARRAY(graph->arena, int64_t, (size_t)count * MDOT_MAX_RANK);
    if (ir_arena_failed(graph->arena)) return;
    int dim_count = 0;
    for (int i = 0; i < count; i++) {
        const ir_type *type = is_number_type(&stated[i]) ? &stated[i] : guess;
        dtypes[i] = type->dtype;
        ranks[i] = type->rank;
        for (int k = 0; k < type->rank; k++) dims[dim_count++] = type->dim[k].offset;
    }
    ir_node_set(graph, node, IR_INTS("dtypes", dtypes, count));
    ir_node_set(graph, node, IR_INTS("ranks", ranks, count));
    ir_node_set(graph, node, IR_INTS("dims", dims, dim_count));
}

static void make_opaque(inferrer *state, ir_node *node, const char *reason)
{
    ir_graph *graph = state->job->graph;
    ir_type guess = guess_type(node);
    bool guessed = false;
    for (int i = 0; i < node->output_count; i++)
        guessed = guessed || (node->outputs[i] != NULL && !is_number_type(&state->stated[i]));
    node->attr_count = 0;
    state_types(graph, node, state->stated, &guess);
    ir_node_set(graph, node, IR_STRING(reason_name, reason));
    ir_node_set(graph, node, IR_INT(guessed_name, guessed));
    node->op = &ir_ops[IR_OP_Opaque];
    if (!ir_arena_failed(graph->arena)) ir_build_infer(&state->builder, node);
}

/* Warns once per operator type, because a graph may hold thousands of such nodes. */
static void warn(const fe_job *job, const ir_node *node, fe_names *warned)
{
    bool guessed = ir_node_int(node, guessed_name, 0) != 0;
    const char *key = ir_arena_printf(job->graph->arena, "%s %d", node->op_type, guessed);
    if (key == NULL || fe_names_find(warned, key) >= 0) return;
    fe_names_add(warned, key, 0);
    fe_job_warn(job, "%s: node '%s': operator %s is opaque (%s)%s", job->graph->name, node->name, node->op_type,
                ir_node_string(node, reason_name, ""),
                guessed ? "; its result is assumed to be as large as its first input" : "");
}

static void warn_unknown_operators(const fe_job *job)
{
    fe_names *warned = fe_names_create(job->graph->arena);
    if (warned == NULL) return;
    for (const ir_node *node = job->graph->first; node != NULL; node = node->next) {
        if (node->op != &ir_ops[IR_OP_Opaque] || fe_stops_gradient(node) || fe_is_view(node)) continue;
        if (ir_node_attr(node, FE_FLOPS) == NULL) warn(job, node, warned);
    }
}

/* Is the node an If whose branches were read? An If that the frontend could not read is opaque. */
static bool is_if(const ir_node *node)
{
    return fe_job_op_role_of(node) == FE_JOB_OP_BRANCHES && node->input_count == 1 + 2 * node->output_count;
}

/* Replaces the If's results by the taken branch's. A condition that depends on data counts as true. */
static void select_branch(inferrer *state, ir_node *node)
{
    int64_t condition;
    int count = 0;
    const ir_value *value = node->inputs[0];
    ir_dim known[IR_MAX_KNOWN];
    bool decided = value != NULL && ir_value_known(value, known, &count) && count == 1;
    condition = decided ? known[0].offset : 1;
    if (!decided)
        fe_job_warn(state->job, "%s: node '%s': the branch of this If depends on data; the first branch is counted",
                    state->job->graph->name, node->name);
    for (int i = 0; i < node->output_count; i++) {
        ir_value *result = node->inputs[1 + i + (condition ? 0 : node->output_count)];
        if (node->outputs[i] == NULL || result == NULL) continue;
        node->outputs[i]->type = result->type;
        ir_replace(&state->builder, node->outputs[i], result);
    }
}

/* Does the node compute from constants alone? */
static bool is_constant(const ir_node *node)
{
    if (!(node->op->traits & IR_STATELESS) || node->input_count == 0) return false;
    for (int i = 0; i < node->input_count; i++)
        if (node->inputs[i] != NULL && node->inputs[i]->constant == NULL) return false;
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

static void fold_to_shape(const fe_job *job, ir_builder *b, ir_node *node)
{
    if (!is_constant(node) || fe_is_parameter_work(job, node)) return;
    for (int i = 0; i < node->output_count; i++) {
        ir_value *value = node->outputs[i];
        if (value != NULL && value->use_count) ir_replace(b, value, constant_of_type(b, value));
    }
}

/* Records that the values with ids from first_made on were computed from the node's inputs. */
static void derive(const inferrer *state, const ir_node *node, int first_made)
{
    for (int id = first_made; id < state->job->graph->value_count; id++)
        fe_parameters_derive(state->job->parameters, node, id);
}

static bool is_large(const ir_node *node)
{
    for (int i = 0; i < node->output_count; i++)
        if (node->outputs[i] != NULL && ir_type_count_at(&node->outputs[i]->type, 1) > MAX_COMPUTED) return true;
    return false;
}

/* A StopGradient becomes an opaque node, which no pass removes. A StopGradient of a constant is a constant, but no
 * parameter. */
static void stop_gradient(inferrer *state, ir_node *node)
{
    ir_value *operand = node->inputs[0], *result = node->outputs[0];
    state->stated[0] = operand->type;
    result->type = operand->type;
    if (operand->constant != NULL && operand->constant->data != NULL) {
        ir_replace(&state->builder, result, operand);
    } else if (operand->constant != NULL) {
        ir_replace(&state->builder, result, constant_of_type(&state->builder, result));
    } else {
        make_opaque(state, node, "it stops the gradient");
        ir_node_set(state->job->graph, node, IR_INT(FE_STOPS_GRADIENT, 1));
    }
}

/* A view of a constant is a constant. Other operands than the first one get a gradient alone. */
static void view(inferrer *state, ir_node *node)
{
    ir_value *result = node->outputs[0];
    int first_made = state->job->graph->value_count;
    int64_t starts = ir_node_int(node, FE_STARTS_GRADIENT, 0);
    make_opaque(state, node, "it is a view");
    ir_node_set(state->job->graph, node, IR_INT(FE_VIEW, 1));
    ir_node_set(state->job->graph, node, IR_INT(FE_STARTS_GRADIENT, starts));
    if (node->inputs[0]->constant == NULL) return;
    ir_replace(&state->builder, result, constant_of_type(&state->builder, result));
    derive(state, node, first_made);
}

static void price_call(inferrer *state, ir_node *node)
{
    ir_graph *graph = state->job->graph;
    const ir_op *op = ir_op_find("", ir_node_string(node, "type", ""));
    double flops = ir_node_float(node, FE_FLOPS, 0), backward = ir_node_float(node, FE_BACKWARD_FLOPS, -1);
    make_opaque(state, node, "it is priced by a formula");
    ir_node_set(graph, node, IR_INT(FE_PRICED_AS, op != NULL ? op->opcode : IR_OP_Opaque));
    ir_node_set(graph, node, IR_FLOAT(FE_FLOPS, flops));
    if (backward >= 0) ir_node_set(graph, node, IR_FLOAT(FE_BACKWARD_FLOPS, backward));
}

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

static void infer(inferrer *state, ir_node *node)
{
    ir_graph *graph = state->job->graph;
    ir_builder *b = &state->builder;
    for (int i = 0; i < node->output_count; i++)
        state->stated[i] = node->outputs[i] != NULL ? node->outputs[i]->type : (ir_type){.rank = -1};
    if (is_if(node)) select_branch(state, node);
    if (node->op == NULL) fe_job_split_list(b, node);
    if (node->op == NULL) fe_job_reduce_embedding_bags(b, node);
    if (b->status != MDOT_OK || ir_node_is_dead(node)) return;
    if (fe_job_op_role_of(node) == FE_JOB_OP_STOP && node->input_count == 1 && node->inputs[0] != NULL) {
        stop_gradient(state, node);
        return;
    }
    if (fe_job_op_role_of(node) == FE_JOB_OP_VIEW && node->input_count > 0 && node->inputs[0] != NULL) {
        view(state, node);
        return;
    }
    if (fe_job_op_role_of(node) == FE_JOB_OP_CALL) {
        price_call(state, node);
        return;
    }
    if (node->op == NULL) {
        make_opaque(state, node, "it is unknown to mdot");
        return;
    }
    if (node->op == &ir_ops[IR_OP_NonZero]) { /* the shape rule's bound is far above a step's selection */
        make_opaque(state, node, "the number of its elements depends on data");
        return;
    }
    mdot_error reason;
    mdot_status status = ir_infer_node(graph, node, &reason);
    if (status == MDOT_OUT_OF_MEMORY) { /* perhaps in an arena of the shape rule's own */
        b->status = status;
        return;
    }
    if (status != MDOT_OK) {
        make_opaque(state, node, without_place(reason.message));
        return;
    }
    int first_made = graph->value_count;
    if (!is_constant(node) || !is_large(node)) fold(b, node);
    if (!b->changed && b->status == MDOT_OK) fold_to_shape(state->job, b, node);
    derive(state, node, first_made);
}

/* Drops data of small weights, read along with numbers for shapes. Otherwise a pass would merge weights with equal
 * initial values. A Resize's scales are numbers and stay. */
static void drop_weight_data(const fe_job *job)
{
    for (ir_node *node = job->graph->first; node != NULL; node = node->next) {
        if (fe_row_of(node)->reads_numbers) continue;
        for (int i = 0; i < node->input_count; i++) {
            ir_value *value = node->inputs[i];
            if (!fe_is_parameter(job, value) || value->constant->data == NULL) continue;
            ir_tensor *shape = IR_NEW(job->graph->arena, ir_tensor);
            if (shape == NULL) return;
            *shape = *value->constant;
            shape->data = NULL;
            value->constant = shape;
        }
    }
}

static int max_output_count(const ir_graph *graph)
{
    int maximum = 0;
    for (const ir_node *node = graph->first; node != NULL; node = node->next)
        maximum = node->output_count > maximum ? node->output_count : maximum;
    return maximum;
}

typedef void (*visit_fn)(inferrer *in, ir_node *node);

/* Visits all nodes, including nodes without an operator, which ir_rewrite skips. New nodes stand before the visited
 * node, and are not visited. Stops at the first failure, because later types depend on it. */
static void visit_all(fe_job *job, visit_fn visit)
{
    ir_graph *graph = job->graph;
    inferrer state = {.job = job, .builder = {.graph = graph, .err = job->err}};
    state.stated = IR_NEW_ARRAY(graph->arena, ir_type, max_output_count(graph));
    for (ir_node *node = graph->first, *next_node; node != NULL; node = next_node) {
        if (state.builder.status != MDOT_OK || ir_arena_failed(graph->arena)) break;
        state.builder.at = node;
        state.builder.name = node->name;
        state.builder.first_new = graph->value_count;
        state.builder.changed = false;
        if (!ir_node_is_dead(node)) visit(&state, node);
        next_node = node->next;
        if (ir_node_is_dead(node)) ir_graph_remove_node(graph, node);
    }
    job->status = state.builder.status;
    if (job->status == MDOT_OK) ir_graph_remove_dead(graph);
}

void fe_job_infer_types(fe_job *job)
{
    fe_parameters_create(job);
    visit_all(job, infer);
    if (job->status != MDOT_OK || ir_arena_failed(job->graph->arena)) return;
    warn_unknown_operators(job);
    drop_weight_data(job);
}

static void fold_node_to_shape(inferrer *state, ir_node *node)
{
    int first_made = state->job->graph->value_count;
    fold_to_shape(state->job, &state->builder, node);
    derive(state, node, first_made);
}

void fe_job_fold_constants(fe_job *job) { visit_all(job, fold_node_to_shape); }
