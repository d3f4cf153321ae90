/* inline_loops.c — see flatten.h. */
#include "frontend/onnx/flatten.h"

#include "frontend/onnx/import_context.h"
#include "frontend/onnx/rewrites.h"

#include <string.h>

/* A Loop or a Scan. Inputs of the node are steps and condition (Loop only), initial states, and the tensors that are
 * read step by step (Scan only). Inputs of the body are the number of the step and the condition (Loop only), states,
 * and the elements that are read. Outputs of the body are the condition (Loop only), states, and elements to write. */
typedef struct loop {
    const fe_flattener *f;
    const fe_scope *around;
    const fe_node *node;
    const Onnx__GraphProto *body;
    bool is_scan;
    int before;                /* the node's and the body's inputs before the states */
    int condition;             /* the body's outputs before the states */
    int states, reads, writes; /* number of states, and of elements read and written by a step */
    int truth;                 /* a constant, the condition inside; FE_NO_VALUE: not yet added */
    fe_names *definers;        /* name → index in body->node of the defining node */
    const char **sources;      /* by index in body->node: the name whose value the node's first output has */
} loop;

bool fe_is_loop(const fe_node *node)
{
    return strcmp(node->op_type, "Loop") == 0 || strcmp(node->op_type, "Scan") == 0;
}

static const Onnx__AttributeProto *find_attribute(const fe_node *node, const char *name)
{
    for (int i = 0; i < node->attribute_count; i++)
        if (strcmp(node->attributes[i].name, name) == 0) return node->attributes[i].proto;
    return NULL;
}

static int64_t listed(const fe_node *node, const char *name, int k)
{
    const Onnx__AttributeProto *list = find_attribute(node, name);
    return list != NULL && (size_t)k < list->n_ints ? list->ints[k] : 0;
}

static Onnx__AttributeProto *new_attribute(const loop *l, const char *name, fe_attribute *out)
{
    Onnx__AttributeProto *proto = IR_NEW(l->f->context->scratch, Onnx__AttributeProto);
    if (proto == NULL) return NULL;
    onnx__attribute_proto__init(proto);
    proto->has_type = 1;
    *out = (fe_attribute){name, proto};
    return proto;
}

static bool set_int(const loop *l, const char *name, int64_t value, fe_attribute *out)
{
    Onnx__AttributeProto *proto = new_attribute(l, name, out);
    if (proto == NULL) return false;
    proto->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
    proto->has_i = 1;
    proto->i = value;
    return true;
}

static bool set_ints(const loop *l, const char *name, const char *source, int count, fe_attribute *out)
{
    Onnx__AttributeProto *proto = new_attribute(l, name, out);
    int64_t *values = IR_NEW_ARRAY(l->f->context->scratch, int64_t, (size_t)count + 1);
    if (proto == NULL || values == NULL) return false;
    for (int k = 0; k < count; k++) values[k] = listed(l->node, source, k);
    proto->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
    proto->n_ints = (size_t)count;
    proto->ints = values;
    return true;
}

/* Adds a node. The lists are copied. */
static mdot_status add(const loop *l, const char *domain, const char *op_type, const int *inputs, int input_count,
                       const int *outputs, int output_count, const fe_attribute *attributes, int attribute_count)
{
    const fe_context *context = l->f->context;
    fe_node node = {.domain = domain,
                    .op_type = op_type,
                    .name = l->node->name,
                    .opset = FE_NEWEST_OPSET,
                    .branch = l->around->branch,
                    .input_count = input_count,
                    .output_count = output_count,
                    .attribute_count = attribute_count};
    node.inputs = IR_NEW_ARRAY(context->scratch, int, (size_t)input_count + 1);
    node.outputs = IR_NEW_ARRAY(context->scratch, int, (size_t)output_count + 1);
    node.attributes = IR_NEW_ARRAY(context->scratch, fe_attribute, (size_t)attribute_count + 1);
    if (node.inputs == NULL || node.outputs == NULL || node.attributes == NULL) return fe_out_of_memory(context);
    if (input_count) memcpy(node.inputs, inputs, (size_t)input_count * sizeof *inputs);
    if (output_count) memcpy(node.outputs, outputs, (size_t)output_count * sizeof *outputs);
    if (attribute_count) memcpy(node.attributes, attributes, (size_t)attribute_count * sizeof *attributes);
    return fe_add_flat_node(context, l->f->flat, &node);
}

/* Adds a node with one new output. */
static mdot_status compute(const loop *l, const char *op_type, const char *what, const int *inputs, int input_count,
                           const fe_attribute *attributes, int attribute_count, int *out_value)
{
    const fe_context *context = l->f->context;
    const char *name = ir_arena_printf(context->scratch, "%s.%s", l->node->name, what);
    BS_TRY(fe_add_value(context, l->f->flat, name, out_value));
    return add(l, "", op_type, inputs, input_count, out_value, 1, attributes, attribute_count);
}

static mdot_status constant(const loop *l, const char *what, const Onnx__TensorProto *tensor, int *out_value)
{
    fe_attribute attribute;
    Onnx__AttributeProto *proto = new_attribute(l, "value", &attribute);
    if (proto == NULL) return fe_out_of_memory(l->f->context);
    proto->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR;
    proto->t = (Onnx__TensorProto *)tensor; /* protobuf-c's fields are not const; nothing writes to it */
    return compute(l, "Constant", what, NULL, 0, &attribute, 1, out_value);
}

/* A scalar constant, or one of rank 1 and one element. */
static mdot_status number(const loop *l, const char *what, mdot_dtype dtype, int rank, int64_t value, int *out_value)
{
    ir_arena *scratch = l->f->context->scratch;
    Onnx__TensorProto *tensor = IR_NEW(scratch, Onnx__TensorProto);
    int64_t *wide = IR_NEW_ARRAY(scratch, int64_t, 1), *dims = IR_NEW_ARRAY(scratch, int64_t, 1);
    int32_t *narrow = IR_NEW_ARRAY(scratch, int32_t, 1);
    if (tensor == NULL || wide == NULL || narrow == NULL || dims == NULL) return fe_out_of_memory(l->f->context);
    onnx__tensor_proto__init(tensor);
    *wide = value;
    *narrow = (int32_t)value;
    *dims = 1;
    tensor->has_data_type = 1;
    tensor->data_type = (int32_t)dtype;
    tensor->n_dims = (size_t)rank;
    tensor->dims = dims;
    if (dtype == MDOT_DTYPE_I64) {
        tensor->n_int64_data = 1;
        tensor->int64_data = wide;
    } else {
        tensor->n_int32_data = 1;
        tensor->int32_data = narrow;
    }
    return constant(l, what, tensor, out_value);
}

mdot_status fe_add_initializers(const fe_flattener *f, const fe_scope *scope, const Onnx__GraphProto *graph)
{
    const fe_node source = {.name = fe_text(graph->name)};
    const loop l = {.f = f, .around = scope, .node = &source};
    for (size_t i = 0; i < graph->n_initializer; i++) {
        const char *name = fe_text(graph->initializer[i]->name);
        int value;
        if (!*name || fe_names_find(scope->names, name) >= 0)
            return mdot_fail(f->context->err, MDOT_MALFORMED,
                             "%s: initializer '%s' of graph '%s' has no name of its own", f->context->file, name,
                             source.name);
        BS_TRY(constant(&l, name, graph->initializer[i], &value));
        if (!fe_names_add(scope->names, name, value + 1)) return fe_out_of_memory(f->context);
    }
    return MDOT_OK;
}

static const Onnx__NodeProto *definer(const loop *l, const char *name)
{
    int index = fe_names_find(l->definers, name);
    return index >= 0 ? l->body->node[index] : NULL;
}

static bool is_copy(const Onnx__NodeProto *node)
{
    const char *type = fe_text(node->op_type);
    return node->n_input == 1 && node->n_output == 1 && !*fe_text(node->domain) && strcmp(type, "Identity") == 0;
}

/* The name whose value an output of the body has, behind Identities. */
static const char *source_of(const loop *l, const char *name)
{
    int index = fe_names_find(l->definers, name);
    return index >= 0 && is_copy(l->body->node[index]) ? l->sources[index] : name;
}

/* Fills `definers` and `sources`, once, because bodies may have long chains of Identities and thousands of states. An
 * Identity of a later node's result has itself as the source, so a cycle ends. */
static mdot_status index_body(loop *l)
{
    const Onnx__GraphProto *body = l->body;
    l->definers = fe_names_create(l->f->context->scratch);
    l->sources = IR_NEW_ARRAY(l->f->context->scratch, const char *, body->n_node + 1);
    if (l->definers == NULL || l->sources == NULL) return fe_out_of_memory(l->f->context);
    for (size_t i = 0; i < body->n_node; i++) {
        const Onnx__NodeProto *node = body->node[i];
        if (is_copy(node)) l->sources[i] = source_of(l, fe_text(node->input[0]));
        for (size_t k = 0; k < node->n_output; k++) {
            const char *name = fe_text(node->output[k]);
            if (*name && fe_names_find(l->definers, name) < 0 && !fe_names_add(l->definers, name, (int)i))
                return fe_out_of_memory(l->f->context);
        }
    }
    return MDOT_OK;
}

static bool is_input(const loop *l, const char *name)
{
    for (size_t i = 0; i < l->body->n_input; i++)
        if (strcmp(fe_text(l->body->input[i]->name), name) == 0) return true;
    return false;
}

static bool is_passed_on(const loop *l, int state)
{
    const char *after = fe_text(l->body->output[l->condition + state]->name);
    return strcmp(source_of(l, after), fe_text(l->body->input[l->before + state]->name)) == 0;
}

static mdot_status bind(const loop *l, const fe_scope *scope, int input, int value)
{
    const char *name = fe_text(l->body->input[input]->name);
    if (!*name || fe_names_find(scope->names, name) >= 0)
        return mdot_fail(l->f->context->err, MDOT_MALFORMED,
                         "%s: node '%s' (%s): input %d of the body, '%s', has no name of its own", l->f->context->file,
                         l->node->name, l->node->op_type, input, name);
    return fe_names_add(scope->names, name, value + 1) ? MDOT_OK : fe_out_of_memory(l->f->context);
}

/* Inlines the body, whose inputs are `values`, and looks up its outputs. */
static mdot_status inline_body(const loop *l, bool unrolls, const int *values, int *out_results)
{
    fe_scope scope = *l->around;
    scope.around = l->around;
    scope.is_in_loop = scope.is_in_loop || !unrolls;
    scope.names = fe_names_create(l->f->context->scratch);
    if (scope.names == NULL) return fe_out_of_memory(l->f->context);
    for (size_t i = 0; i < l->body->n_input; i++) BS_TRY(bind(l, &scope, (int)i, values[i]));
    BS_TRY(fe_add_initializers(l->f, &scope, l->body));
    BS_TRY(fe_add_names(l->f, &scope, l->body));
    BS_TRY(l->f->flatten_nodes(l->f, &scope, l->body->n_node, l->body->node));
    for (size_t i = 0; i < l->body->n_output; i++)
        BS_TRY(fe_lookup(l->f, &scope, fe_text(l->body->output[i]->name), &out_results[i]));
    return MDOT_OK;
}

/* Space for all input values, or all output values, of the body and the node. */
static int *new_values(const loop *l)
{
    size_t maximum =
        l->body->n_input + l->body->n_output + (size_t)l->node->input_count + (size_t)l->node->output_count;
    return IR_NEW_ARRAY(l->f->context->scratch, int, 2 * maximum + 8);
}

static int output_of(const loop *l, int k) { return k < l->node->output_count ? l->node->outputs[k] : FE_NO_VALUE; }

static mdot_status copy_output(const loop *l, int source, int k)
{
    int target = output_of(l, k);
    return target != FE_NO_VALUE ? add(l, "", "Identity", &source, 1, &target, 1, NULL, 0) : MDOT_OK;
}

static const Onnx__TensorProto *constant_of(const loop *l, int value)
{
    const fe_flat *flat = l->f->flat;
    if (value == FE_NO_VALUE) return NULL;
    for (int i = flat->node_count - 1; i >= 0; i--) {
        const fe_node *node = &flat->nodes[i];
        for (int k = 0; k < node->output_count; k++) {
            if (node->outputs[k] != value) continue;
            return strcmp(node->op_type, "Constant") == 0 && node->attribute_count == 1 ? node->attributes[0].proto->t
                                                                                        : NULL;
        }
    }
    const Onnx__GraphProto *graph = l->f->model->graph;
    int own_index = fe_names_find(flat->names, flat->values[value].name) - 1;
    for (size_t i = 0; i < graph->n_initializer && own_index == value; i++)
        if (strcmp(fe_text(graph->initializer[i]->name), flat->values[value].name) == 0) return graph->initializer[i];
    return NULL;
}

/* Reads an integer or a bool of one element. */
static bool read_number(const loop *l, const Onnx__TensorProto *proto, int64_t *out)
{
    const ir_tensor *tensor;
    if (proto == NULL || fe_import_tensor(l->f->context, proto, "constant", l->node->name, &tensor) != MDOT_OK)
        return false;
    if (tensor->count != 1 || tensor->data == NULL || ir_dtype_is_float(tensor->dtype)) return false;
    if (tensor->dtype == MDOT_DTYPE_STRING) return false;
    *out = ir_tensor_integer(tensor, 0);
    return true;
}

static bool is_cast(const Onnx__NodeProto *node)
{
    return node->n_input == 1 && !*fe_text(node->domain) && strcmp(fe_text(node->op_type), "Cast") == 0;
}

/* Is the body's condition true after every step, and before the first? */
static bool always_continues(const loop *l)
{
    const char *name = source_of(l, fe_text(l->body->output[0]->name));
    const Onnx__NodeProto *node = definer(l, name);
    int64_t first = 1, later = 0;
    int given = l->node->input_count > 1 ? l->node->inputs[1] : FE_NO_VALUE;
    if (given != FE_NO_VALUE && !read_number(l, constant_of(l, given), &first)) return false;
    if (first == 0) return false;
    for (size_t i = 0; i < l->body->n_node && node != NULL && is_cast(node); i++) { /* a cycle ends, too */
        name = source_of(l, fe_text(node->input[0])); /* TorchScript's exporter casts bools to bool */
        node = definer(l, name);
    }
    if (strcmp(name, fe_text(l->body->input[1]->name)) == 0) return true;
    if (is_input(l, name)) return false; /* a state, even if a constant outside has its name */
    for (size_t i = 0; i < l->body->n_initializer; i++)
        if (strcmp(fe_text(l->body->initializer[i]->name), name) == 0)
            return read_number(l, l->body->initializer[i], &later) && later != 0;
    if (node != NULL)
        return strcmp(fe_text(node->op_type), "Constant") == 0 && node->n_attribute == 1 &&
               read_number(l, node->attribute[0]->t, &later) && later != 0;
    int outside;
    return fe_lookup(l->f, l->around, name, &outside) == MDOT_OK && read_number(l, constant_of(l, outside), &later) &&
           later != 0;
}

/* Counts nodes of a graph and the graphs inside, up to a limit. */
static int64_t count_nodes(const Onnx__GraphProto *graph, int depth)
{
    int64_t count = 0;
    for (size_t i = 0; i < graph->n_node; i++, count++)
        for (size_t k = 0; k < graph->node[i]->n_attribute && depth < FE_MOST_UNROLLED_NODES; k++)
            if (graph->node[i]->attribute[k]->g != NULL)
                count += count_nodes(graph->node[i]->attribute[k]->g, depth + 1);
    return count;
}

static bool is_unrolled(const loop *l, int64_t *out_steps)
{
    int64_t nodes, total;
    if (l->is_scan || l->node->input_count < 1) return false;
    if (!read_number(l, constant_of(l, l->node->inputs[0]), out_steps) || *out_steps < 1) return false;
    nodes = count_nodes(l->body, 0) + 1;
    if (__builtin_mul_overflow(nodes, *out_steps, &total) || total > FE_MOST_UNROLLED_NODES) return false;
    if (l->f->flat->unrolled_count + total > FE_MOST_UNROLLED_TOTAL || !always_continues(l)) return false;
    l->f->flat->unrolled_count += total;
    return true;
}

static mdot_status unroll(loop *l, int64_t steps)
{
    ir_arena *scratch = l->f->context->scratch;
    int *values = new_values(l), *results = new_values(l), axis = FE_NO_VALUE;
    int *elements = IR_NEW_ARRAY(scratch, int, (size_t)(l->writes * steps) + 1);
    if (values == NULL || results == NULL || elements == NULL) return fe_out_of_memory(l->f->context);
    mdot_status status = number(l, "axis", MDOT_DTYPE_I64, 1, 0, &axis);
    for (int k = 0; k < l->states; k++) values[l->before + k] = l->node->inputs[l->before + k];
    values[1] = l->truth;
    for (int64_t step = 0; step < steps && status == MDOT_OK; step++) {
        status = number(l, "step", MDOT_DTYPE_I64, 0, step, &values[0]);
        if (status == MDOT_OK) status = inline_body(l, true, values, results);
        for (int k = 0; k < l->states; k++) values[l->before + k] = results[l->condition + k];
        for (int k = 0; k < l->writes && status == MDOT_OK; k++) {
            const int inputs[] = {results[l->condition + l->states + k], axis}; /* a dimension in front, for Concat */
            status = compute(l, "Unsqueeze", "element", inputs, 2, NULL, 0, &elements[k * steps + step]);
        }
    }
    for (int k = 0; k < l->states && status == MDOT_OK; k++) status = copy_output(l, values[l->before + k], k);
    for (int k = 0; k < l->writes && status == MDOT_OK; k++) {
        int target = output_of(l, l->states + k);
        fe_attribute attribute;
        if (target == FE_NO_VALUE) continue;
        if (!set_int(l, "axis", 0, &attribute)) return fe_out_of_memory(l->f->context);
        status = add(l, "", "Concat", &elements[k * steps], (int)steps, &target, 1, &attribute, 1);
    }
    return status;
}

typedef struct kept {
    int count;
    int *state;        /* numbers of the states changed by the body */
    int *begin, *next; /* per kept state: its value in the body, and behind the step */
    int index, steps;  /* values: the current step, and the step count */
    int first;         /* index of the loop's first node in the flat list */
} kept;

static mdot_status begin(const loop *l, kept *k, int *values)
{
    ir_arena *scratch = l->f->context->scratch;
    int *inputs = new_values(l), *outputs = new_values(l);
    k->state = new_values(l);
    k->begin = new_values(l);
    k->next = new_values(l);
    if (inputs == NULL || outputs == NULL || k->state == NULL || k->begin == NULL || k->next == NULL)
        return fe_out_of_memory(l->f->context);
    const char *name = ir_arena_printf(scratch, "%s.index", l->node->name);
    mdot_status status = fe_add_value(l->f->context, l->f->flat, name, &k->index);
    outputs[0] = k->index;
    for (int s = 0; s < l->states && status == MDOT_OK; s++) {
        values[l->before + s] = l->node->inputs[l->before + s];
        if (is_passed_on(l, s)) continue;
        name = fe_text(l->body->input[l->before + s]->name);
        inputs[k->count] = l->node->inputs[l->before + s];
        status = fe_add_value(l->f->context, l->f->flat, name, &values[l->before + s]);
        k->begin[k->count] = outputs[1 + k->count] = values[l->before + s];
        k->state[k->count++] = s;
    }
    if (status != MDOT_OK) return status;
    return add(l, "mdot", "LoopBegin", inputs, k->count, outputs, k->count + 1, NULL, 0);
}

/* A tensor's length along the axis of a Scan. */
static mdot_status length_of(const loop *l, int read, int *out_value)
{
    int64_t axis = listed(l->node, "scan_input_axes", read);
    int shape;
    fe_attribute attributes[2];
    if (!set_int(l, "start", axis, &attributes[0]) || !set_int(l, "end", axis + 1, &attributes[1]))
        return fe_out_of_memory(l->f->context);
    BS_TRY(compute(l, "Shape", "shape", &l->node->inputs[l->states + read], 1, attributes, axis == -1 ? 1 : 2, &shape));
    return compute(l, "Squeeze", "steps", &shape, 1, NULL, 0, out_value);
}

/* Element `read` of the step: a tensor slice. */
static mdot_status read_element(const loop *l, const kept *k, int read, int *out_value)
{
    int last_index[] = {k->steps, FE_NO_VALUE}, place[] = {FE_NO_VALUE, k->index};
    int inputs[] = {l->node->inputs[l->states + read], k->index};
    fe_attribute attribute;
    if (!set_int(l, "axis", listed(l->node, "scan_input_axes", read), &attribute))
        return fe_out_of_memory(l->f->context);
    if (listed(l->node, "scan_input_directions", read) != 0) { /* steps - 1 - index */
        BS_TRY(number(l, "one", MDOT_DTYPE_I64, 0, 1, &last_index[1]));
        BS_TRY(compute(l, "Sub", "last", last_index, 2, NULL, 0, &place[0]));
        BS_TRY(compute(l, "Sub", "place", place, 2, NULL, 0, &inputs[1]));
    }
    return compute(l, "Gather", "element", inputs, 2, &attribute, 1, out_value);
}

/* The inputs of the node LoopSteps (rewrites.h). */
static mdot_status add_steps(const loop *l, const kept *k, int condition)
{
    int *inputs = new_values(l), count = 0;
    if (inputs == NULL) return fe_out_of_memory(l->f->context);
    for (int i = 0; i < 2; i++) inputs[count++] = i < l->node->input_count ? l->node->inputs[i] : FE_NO_VALUE;
    inputs[count++] = condition;
    inputs[count++] = k->index;
    for (int s = 0; s < k->count; s++) inputs[count++] = k->next[s];
    return add(l, "mdot", FE_LOOP_STEPS, inputs, count, &k->steps, 1, NULL, 0);
}

static mdot_status end(const loop *l, const kept *k, const int *results)
{
    int *inputs = new_values(l), *outputs = new_values(l), input = 0, out = 0;
    fe_attribute attributes[3];
    if (inputs == NULL || outputs == NULL) return fe_out_of_memory(l->f->context);
    if (!set_int(l, "states", k->count, &attributes[0]) ||
        !set_ints(l, "axes", "scan_output_axes", l->writes, &attributes[1]) ||
        !set_ints(l, "reverse", "scan_output_directions", l->writes, &attributes[2]))
        return fe_out_of_memory(l->f->context);
    inputs[input++] = k->index;
    inputs[input++] = k->steps;
    for (int s = 0; s < k->count; s++) {
        inputs[input++] = k->next[s];
        outputs[out++] = output_of(l, k->state[s]);
    }
    for (int w = 0; w < l->writes; w++) { /* an absent output keeps its place */
        inputs[input++] = results[l->condition + l->states + w];
        outputs[out++] = output_of(l, l->states + w);
    }
    if (outputs[0] == FE_NO_VALUE) { /* the operator table requires the first output */
        const char *name = ir_arena_printf(l->f->context->scratch, "%s.unread", l->node->name);
        BS_TRY(fe_add_value(l->f->context, l->f->flat, name, &outputs[0]));
    }
    fe_flat *flat = l->f->flat;
    int body_count = flat->node_count - k->first;
    mdot_status status = add(l, "mdot", "LoopEnd", inputs, input, outputs, out, attributes, 3);
    if (status == MDOT_OK) flat->nodes[flat->node_count - 1].body_count = body_count;
    return status;
}

/* Copies states passed on by the body. *out_runs: the steps compute another output. */
static mdot_status copy_passed_on(const loop *l, bool *out_runs)
{
    *out_runs = false;
    for (int k = 0; k < l->node->output_count; k++) {
        if (k < l->states && is_passed_on(l, k))
            BS_TRY(copy_output(l, l->node->inputs[l->before + k], k));
        else
            *out_runs = *out_runs || output_of(l, k) != FE_NO_VALUE;
    }
    return MDOT_OK;
}

static mdot_status keep(const loop *l)
{
    kept k = {0};
    int *values = new_values(l), *results = new_values(l);
    bool runs;
    if (values == NULL || results == NULL) return fe_out_of_memory(l->f->context);
    mdot_status status = copy_passed_on(l, &runs);
    if (status != MDOT_OK || !runs) return status; /* no step has an effect */
    k.first = l->f->flat->node_count;
    status = begin(l, &k, values);
    if (status == MDOT_OK && l->is_scan) status = length_of(l, 0, &k.steps);
    if (status == MDOT_OK && !l->is_scan) {
        const char *name = ir_arena_printf(l->f->context->scratch, "%s.steps", l->node->name);
        status = fe_add_value(l->f->context, l->f->flat, name, &k.steps);
        values[0] = k.index;
        values[1] = l->truth;
    }
    for (int r = 0; r < l->reads && status == MDOT_OK; r++) status = read_element(l, &k, r, &values[l->states + r]);
    if (status == MDOT_OK) status = inline_body(l, false, values, results);
    for (int s = 0; s < k.count; s++) k.next[s] = results[l->condition + k.state[s]];
    if (status == MDOT_OK && !l->is_scan) status = add_steps(l, &k, results[0]);
    return status == MDOT_OK ? end(l, &k, results) : status;
}

/* Adds the loop as a node without a kernel, for the report of unsupported operators. */
static mdot_status refuse(const loop *l, const char *reason)
{
    fe_node node = *l->node;
    node.op_type = ir_arena_printf(l->f->context->scratch, "%s (%s)", l->node->op_type, reason);
    return node.op_type != NULL ? fe_add_flat_node(l->f->context, l->f->flat, &node) : fe_out_of_memory(l->f->context);
}

/* Does the body have the inputs and outputs promised by the node? */
static bool agrees(const loop *l)
{
    size_t inputs = (size_t)l->before + (size_t)l->states + (size_t)l->reads;
    if (l->states < 0 || l->reads < 0 || l->writes < 0 || (l->is_scan && l->reads == 0)) return false;
    if (l->body->n_input != inputs || l->body->n_sparse_initializer > 0) return false;
    for (int k = l->before; k < l->node->input_count; k++)
        if (l->node->inputs[k] == FE_NO_VALUE) return false;
    return l->node->output_count <= l->states + l->writes;
}

mdot_status fe_inline_loop(const fe_flattener *f, const fe_scope *scope, const fe_node *node)
{
    const Onnx__AttributeProto *body = find_attribute(node, "body"), *reads = find_attribute(node, "num_scan_inputs");
    loop l = {
        .f = f, .around = scope, .node = node, .truth = FE_NO_VALUE, .is_scan = strcmp(node->op_type, "Scan") == 0};
    int64_t steps;
    if (body == NULL || body->g == NULL) return refuse(&l, "it has no body");
    if (l.is_scan && node->opset < 9) return refuse(&l, "of opset 8");
    l.body = body->g;
    l.before = l.is_scan ? 0 : 2;
    l.condition = l.is_scan ? 0 : 1;
    l.reads = l.is_scan && reads != NULL && reads->i >= 0 && reads->i <= node->input_count ? (int)reads->i : 0;
    l.states = node->input_count - l.before - l.reads;
    if (node->input_count < l.before) l.states = 0;
    l.writes = (int)l.body->n_output - l.condition - l.states;
    if (!agrees(&l)) return refuse(&l, "its inputs and outputs differ from those of its body");
    BS_TRY(index_body(&l));
    if (!l.is_scan) BS_TRY(number(&l, "condition", MDOT_DTYPE_BOOL, 0, 1, &l.truth));
    if (is_unrolled(&l, &steps)) return unroll(&l, steps);
    return scope->is_in_loop ? refuse(&l, "within a loop") : keep(&l);
}
