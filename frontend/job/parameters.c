/* parameters.c — which constants of a job training learns, and how many parameters stand behind each.
 *
 * Floating initializers of more than one element are parameters. One of a single element is where the file says no
 * number for it (the temperature of CLIP), and with a number where it stands or is called as a weight: the bias of one
 * unit; an exporter's own scalars have no dimension. What follows from them alone (a table that was picked
 * from, a vector put together of two) is computed anew in every step and becomes a constant that is learnt as well, but
 * holds no more parameters than went into it. Parameters that flow into one constant form a group, which is counted
 * whole where it is first read. Other constants are numbers.
 */
#include "frontend/job/job_reader.h"

#include "ir/ops/families.h"

#include <string.h>

/* PyTorch exports buffers as it does parameters; these are known by the last part of their names. Swin's masks count
 * for one in a hundred of its parameters. */
static const char *const buffers[] = {"attn_mask", "inv_freq", "running_mean", "running_var"};

enum { NO_GROUP = -1 };

/* By value id. A group is a tree whose root counts its parameters. */
struct fe_parameters {
    ir_arena *arena;
    int *parent; /* NO_GROUP: not learnt */
    double *elements;
    int capacity;
};

static int root_of(const fe_parameters *l, int id)
{
    if (id >= l->capacity || l->parent[id] == NO_GROUP) return NO_GROUP;
    while (l->parent[id] != id) id = l->parent[id] = l->parent[l->parent[id]];
    return id;
}

/* Room for the ids up to `id`; false: memory is out. */
static bool reach(fe_parameters *l, int id)
{
    if (id < l->capacity) return true;
    int capacity = 2 * id + 64;
    int *parent = IR_NEW_ARRAY(l->arena, int, capacity);
    double *elements = IR_NEW_ARRAY(l->arena, double, capacity);
    if (parent == NULL || elements == NULL) return false;
    if (l->capacity) {
        memcpy(parent, l->parent, (size_t)l->capacity * sizeof *parent);
        memcpy(elements, l->elements, (size_t)l->capacity * sizeof *elements);
    }
    for (int i = l->capacity; i < capacity; i++) parent[i] = NO_GROUP;
    l->parent = parent;
    l->elements = elements;
    l->capacity = capacity;
    return true;
}

static bool is_float_constant(const ir_value *value)
{
    return value != NULL && value->constant != NULL && ir_dtype_is_float(value->type.dtype);
}

/* Operators that mdot does not know have no row yet: fe_job_infer makes them opaque. */
static fe_gradient gradient_of(const ir_node *node)
{
    return node->op != NULL ? fe_row_of(node)->gradient : FE_GRADIENT_NOTHING;
}

/* The product with a constant of one column that a value is added to; the value is its bias then. */
static bool is_added_to_a_unit(const ir_node *node, int input)
{
    if (gradient_of(node) != FE_GRADIENT_SUM || node->input_count != 2) return false;
    const ir_value *other = node->inputs[1 - input];
    const ir_node *product = other != NULL ? other->def : NULL;
    if (product == NULL || gradient_of(product) != FE_GRADIENT_MATMUL || product->input_count < 2) return false;
    const ir_value *factor = product->inputs[1];
    if (!is_float_constant(factor) || factor->type.rank == 0) return false;
    return factor->type.dim[factor->type.rank - 1].offset == 1;
}

/* "act.weight", "head.in_proj_bias": what PyTorch's modules call theirs. Their buffers have other names, and what an
 * exporter computed is "onnx::Mul_12". */
static bool is_called_weight(const char *name)
{
    static const char *const ends[] = {"weight", "bias"};
    const char *dot = strrchr(name, '.');
    size_t length = dot != NULL ? strlen(dot) : 0;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t end = strlen(ends[i]);
        if (length > end && strcmp(dot + length - end, ends[i]) == 0) return true;
    }
    return false;
}

/* Of one element, with a number. */
static bool is_single_weight(const ir_node *node, int input)
{
    const ir_value *value = node->inputs[input];
    fe_gradient gradient = gradient_of(node);
    if (value->type.rank == 0) return false;
    return gradient == FE_GRADIENT_MATMUL || gradient == FE_GRADIENT_NORM || gradient == FE_GRADIENT_BATCH_NORM ||
           is_added_to_a_unit(node, input) || (value->stored && is_called_weight(value->name));
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
    for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++) {
        if (strcmp(dot != NULL ? dot + 1 : name, buffers[i]) == 0) return true;
    }
    return false;
}

/* ---- Parameters ------------------------------------------------------------------------------------------------- */

static bool mark_parameters(const ir_graph *graph, fe_parameters *l, bool stored)
{
    bool found = false;
    for (const ir_node *node = graph->first; node != NULL; node = node->next) {
        for (int i = 0; i < node->input_count; i++) {
            const ir_value *value = node->inputs[i];
            if (!holds_weights(node, i) || (stored && !value->stored) || fe_is_buffer(value->name)) continue;
            l->parent[value->id] = value->id;
            l->elements[value->id] = (double)value->constant->count;
            found = true;
        }
    }
    return found;
}

/* Some files hold their weights in Constant nodes. */
mdot_status fe_parameters_create(fe_job *job)
{
    fe_parameters *l = IR_NEW(job->graph->arena, fe_parameters);
    if (l == NULL) return fe_job_out_of_memory(job);
    l->arena = job->graph->arena;
    if (!reach(l, job->graph->value_count)) return fe_job_out_of_memory(job);
    if (!mark_parameters(job->graph, l, true)) mark_parameters(job->graph, l, false);
    job->learnt = l;
    return MDOT_OK;
}

/* Files that carry no weights spell them so: onnx's light_*.onnx. A graph's own zeros have a shape among the nodes. */
static bool stands_for_weights(const ir_node *node)
{
    return node->op == &ir_ops[IR_OP_ConstantOfShape] && node->inputs[0]->stored &&
           ir_dtype_is_float(node->outputs[0]->type.dtype);
}

bool fe_parameters_add(fe_parameters *l, const ir_value *value)
{
    if (!reach(l, value->id)) return false;
    if (root_of(l, value->id) != NO_GROUP) return true;
    l->parent[value->id] = value->id;
    l->elements[value->id] = (double)value->constant->count;
    return true;
}

bool fe_parameters_derive(fe_parameters *l, const ir_node *node, int id)
{
    if (!reach(l, id)) return false;
    if (stands_for_weights(node)) {
        l->parent[id] = id;
        l->elements[id] = ir_value_elements(node->outputs[0], 1);
    }
    for (int i = 0; i < node->input_count; i++) {
        const ir_value *value = node->inputs[i];
        if (value == NULL || !ir_dtype_is_float(value->type.dtype) || i >= fe_row_of(node)->learnt) continue;
        int from = root_of(l, value->id), to = root_of(l, id);
        if (from == NO_GROUP || from == to) continue;
        if (to == NO_GROUP) {
            l->parent[id] = from;
        } else {
            l->parent[from] = to;
            l->elements[to] += l->elements[from];
        }
    }
    return true;
}

/* ---- Reading ---------------------------------------------------------------------------------------------------- */

bool fe_is_parameter(const fe_job *job, const ir_value *value)
{
    return is_float_constant(value) && value->constant->count > 0 && root_of(job->learnt, value->id) != NO_GROUP;
}

bool fe_learns(const fe_job *job, const ir_node *node, int input)
{
    return input < fe_row_of(node)->learnt && fe_is_parameter(job, node->inputs[input]);
}

double fe_parameter_count(const fe_job *job, const ir_value *value, bool *counted)
{
    int group = root_of(job->learnt, value->id);
    if (group == NO_GROUP || counted[group]) return 0;
    counted[group] = true;
    return job->learnt->elements[group];
}
