/* parameters.c — finds the constants that training updates, and counts the parameters behind each.
 *
 * Floating initializers of more than one element are parameters. An initializer of one element is a parameter if the
 * file leaves its value open (the temperature of CLIP). If it has a value, it is a parameter where its position or
 * name marks it as a weight, for example the bias of one unit. An exporter's own scalars have rank 0 and no such name.
 *
 * A value computed from parameters alone (a row gathered from a table, a vector joined from two) is recomputed in
 * every step. It becomes a constant that counts as a parameter too, but adds no parameters to those it was computed
 * from. Parameters that flow into one constant form a group, which is counted as a whole where it is first read.
 * Other constants are plain numbers.
 *
 * A parameter is frozen if the program says so (traced_program.h) or if no gradient reaches it (operator_sequence.h). A
 * group may be frozen in part.
 */
#include "frontend/job/parameters.h"

#include "frontend/job/job_tables.h"
#include "frontend/job/traced_program.h"
#include "ir/ops/families.h"

#include <string.h>

/* PyTorch exports buffers like parameters. The last part of the name identifies them. Swin's masks would add one in a
 * hundred to the parameter count. */
static const char *const buffers[] = {"attn_mask", "inv_freq", "running_mean", "running_var"};

enum { NO_GROUP = -1 };

/* A group is a tree whose root counts its parameters. */
typedef struct parameter {
    int parent;              /* NO_GROUP: not a parameter */
    double elements, frozen; /* frozen: share of elements left unchanged by training */
    bool receives;           /* a gradient */
} parameter;

struct fe_parameters {
    ir_arena *arena;
    parameter *of; /* by value id */
    int capacity;
};

static int root_of(const fe_parameters *p, int id)
{
    if (id >= p->capacity || p->of[id].parent == NO_GROUP) return NO_GROUP;
    while (p->of[id].parent != id) id = p->of[id].parent = p->of[p->of[id].parent].parent;
    return id;
}

/* Grows the arrays to hold ids up to `id`. False: out of memory. */
static bool reserve_id(fe_parameters *p, int id)
{
    if (id < p->capacity) return true;
    int capacity = 2 * id + 64;
    parameter *of = IR_NEW_ARRAY(p->arena, parameter, capacity);
    if (of == NULL) return false;
    if (p->capacity) memcpy(of, p->of, (size_t)p->capacity * sizeof *of);
    for (int i = p->capacity; i < capacity; i++) of[i].parent = NO_GROUP;
    p->of = of;
    p->capacity = capacity;
    return true;
}

static bool is_float_constant(const ir_value *value)
{
    return value != NULL && value->constant != NULL && ir_dtype_is_float(value->type.dtype);
}

/* The node's gradient. Unknown operators have no row yet, because fe_job_infer_types makes them opaque later. */
static fe_gradient gradient_of(const ir_node *node)
{
    return node->op != NULL ? fe_row_of(node)->gradient : FE_GRADIENT_NOTHING;
}

/* Is the value a one-unit bias, added to a matmul with a one-column constant? */
static bool is_single_unit_bias(const ir_node *node, int input)
{
    if (gradient_of(node) != FE_GRADIENT_SUM || node->input_count != 2) return false;
    const ir_value *other_value = node->inputs[1 - input];
    const ir_node *matmul = other_value != NULL ? other_value->def : NULL;
    if (matmul == NULL || gradient_of(matmul) != FE_GRADIENT_MATMUL || matmul->input_count < 2) return false;
    const ir_value *factor = matmul->inputs[1];
    if (!is_float_constant(factor) || factor->type.rank == 0) return false;
    return factor->type.dim[factor->type.rank - 1].offset == 1;
}

/* Is this a PyTorch weight name, for example "act.weight", "head.in_proj_bias" or "blocks.0.skipinit_gain"? Buffers
 * have other names, and constants computed by an exporter have names like "onnx::Mul_12". */
static bool has_weight_name(const char *name)
{
    static const char *const ends[] = {"weight", "bias", "gain", "gamma", "alpha", "beta"};
    const char *dot = strrchr(name, '.');
    size_t length = dot != NULL ? strlen(dot) : 0;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t end = strlen(ends[i]);
        if (length > end && strcmp(dot + length - end, ends[i]) == 0) return true;
    }
    return false;
}

/* Does PyTorch's exporter name a value after the operator that made it, for example "where" or "unsqueeze_14"? Tables
 * that it computed have such names: masks, positions, rotary embeddings. It computes transposed weights, too. */
static bool has_operator_name(const char *name)
{
    static const char *const operators[] = {
        "val",  "where",  "repeat", "unsqueeze", "clone", "expand",   "cat",   "full", "mul",     "add",        "sub",
        "div",  "cos",    "sin",    "exp",       "log",   "pow",      "neg",   "view", "reshape", "slice",      "triu",
        "tril", "select", "index",  "permute",   "to",    "_to_copy", "stack", "ones", "zeros",   "masked_fill"};
    size_t length = strlen(name);
    while (length > 0 && strchr("0123456789", name[length - 1]) != NULL) length--;
    if (length > 1 && name[length] != '\0' && name[length - 1] == '_') length--;
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (strlen(operators[i]) == length && strncmp(operators[i], name, length) == 0) return true;
    return false;
}

/* Is this constant a table of three or more dimensions that an exporter computed, added or multiplied by elements? */
static bool is_computed_table(const ir_node *node, const ir_value *value)
{
    fe_gradient gradient = gradient_of(node);
    bool is_elementwise = gradient == FE_GRADIENT_SUM || gradient == FE_GRADIENT_POINTWISE;
    return is_elementwise && value->type.rank >= 3 && has_operator_name(value->name);
}

/* Is this constant of one element, with a value, a parameter? */
static bool is_single_weight(const ir_node *node, int input)
{
    const ir_value *value = node->inputs[input];
    fe_gradient gradient = gradient_of(node);
    if (value->type.rank == 0) return value->stored && has_weight_name(value->name);
    return gradient == FE_GRADIENT_MATMUL || gradient == FE_GRADIENT_NORM || gradient == FE_GRADIENT_BATCH_NORM ||
           is_single_unit_bias(node, input) || (value->stored && has_weight_name(value->name));
}

static bool holds_weights(const ir_node *node, int input)
{
    const ir_value *value = node->inputs[input];
    if (!is_float_constant(value) || value->constant->count < 1) return false;
    return value->constant->count > 1 || value->constant->data == NULL || is_single_weight(node, input);
}

bool fe_is_buffer(const char *name)
{
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
        if (strcmp(dot != NULL ? dot + 1 : name, buffers[i]) == 0) return true;
    return false;
}

static bool mark_parameters(const ir_graph *graph, fe_parameters *p, bool stored)
{
    const fe_names *frozen = fe_noted_names(graph, "mdot.frozen");
    bool found = false;
    for (const ir_node *node = graph->first; node != NULL; node = node->next) {
        for (int i = 0; i < node->input_count; i++) {
            const ir_value *value = node->inputs[i];
            if (!holds_weights(node, i) || (stored && !value->stored) || fe_is_buffer(value->name)) continue;
            if (is_computed_table(node, value)) continue;
            p->of[value->id].parent = value->id;
            p->of[value->id].elements = (double)value->constant->count;
            bool is_frozen = frozen != NULL && fe_names_find(frozen, value->name) >= 0;
            p->of[value->id].frozen = is_frozen ? p->of[value->id].elements : 0;
            found = true;
        }
    }
    return found;
}

/* If no initializer is a parameter, Constant nodes count, because some files hold their weights there. */
void fe_parameters_create(fe_job *job)
{
    fe_parameters *p = IR_NEW(job->graph->arena, fe_parameters);
    if (p == NULL) return;
    p->arena = job->graph->arena;
    if (!reserve_id(p, job->graph->value_count)) return;
    if (!mark_parameters(job->graph, p, true)) mark_parameters(job->graph, p, false);
    job->parameters = p;
}

/* Is the node a placeholder for weights? Files without weights write them this way, for example onnx's light_*.onnx.
 * The shape of a graph's own zeros is computed rather than stored. */
static bool is_weight_placeholder(const ir_node *node)
{
    return node->op == &ir_ops[IR_OP_ConstantOfShape] && node->inputs[0]->stored &&
           ir_dtype_is_float(node->outputs[0]->type.dtype);
}

void fe_parameters_add(fe_parameters *p, const ir_value *value)
{
    if (!reserve_id(p, value->id) || root_of(p, value->id) != NO_GROUP) return;
    p->of[value->id].parent = value->id;
    p->of[value->id].elements = (double)value->constant->count;
}

void fe_parameters_derive(fe_parameters *p, const ir_node *node, int id)
{
    if (!reserve_id(p, id)) return;
    if (is_weight_placeholder(node)) {
        p->of[id].parent = id;
        p->of[id].elements = ir_value_elements(node->outputs[0], 1);
    }
    for (int i = 0; i < node->input_count; i++) {
        const ir_value *value = node->inputs[i];
        if (value == NULL || !ir_dtype_is_float(value->type.dtype) || i >= fe_row_of(node)->parameter_operands)
            continue;
        int source = root_of(p, value->id), target = root_of(p, id);
        if (source == NO_GROUP || source == target) continue;
        if (target == NO_GROUP) {
            p->of[id].parent = source;
        } else {
            p->of[source].parent = target;
            p->of[target].elements += p->of[source].elements;
            p->of[target].frozen += p->of[source].frozen;
        }
    }
}

bool fe_is_parameter(const fe_job *job, const ir_value *value)
{
    return is_float_constant(value) && value->constant->count > 0 && root_of(job->parameters, value->id) != NO_GROUP;
}

bool fe_is_trained(const fe_job *job, const ir_value *value)
{
    if (!fe_is_parameter(job, value)) return false;
    int group = root_of(job->parameters, value->id);
    return job->parameters->of[group].frozen < job->parameters->of[group].elements;
}

bool fe_is_parameter_operand(const fe_job *job, const ir_node *node, int input)
{
    return input < fe_row_of(node)->parameter_operands && fe_is_parameter(job, node->inputs[input]);
}

bool fe_is_trained_operand(const fe_job *job, const ir_node *node, int input)
{
    return fe_is_parameter_operand(job, node, input) && fe_is_trained(job, node->inputs[input]);
}

void fe_count_parameter(const fe_job *job, const ir_value *value, bool *counted, double *trained, double *frozen)
{
    const fe_parameters *p = job->parameters;
    int group = root_of(p, value->id);
    if (group == NO_GROUP || counted[group]) return;
    counted[group] = true;
    *trained += p->of[group].elements - p->of[group].frozen;
    *frozen += p->of[group].frozen;
}

void fe_parameter_receives(fe_parameters *p, const ir_value *value)
{
    int group = root_of(p, value->id);
    if (group != NO_GROUP) p->of[group].receives = true;
}

void fe_freeze_unreached(fe_parameters *p)
{
    for (int id = 0; id < p->capacity; id++)
        if (p->of[id].parent == id && !p->of[id].receives) p->of[id].frozen = p->of[id].elements;
}
