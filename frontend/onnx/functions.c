/* functions.c — converts a GraphProto's nodes into a flat list, with the bodies of model-local functions in place of
 * calls (ONNX IR specification, "Functions").
 *
 * A model's function takes precedence over a known operator with the same name, because the file is the authority on
 * itself. */
#include "frontend/onnx/flatten.h"

#include "frontend/onnx/flat.h"
#include "frontend/onnx/import_context.h"
#include "frontend/onnx/names.h"
#include "frontend/onnx/rewrites.h"

#include <string.h>

enum { MAX_NODE_EDGES = 1 << 16, MAX_ATTRIBUTES = 1 << 10 }; /* per node; the checks for repeats are quadratic */

static const char *domain_of(const char *domain)
{
    return domain == NULL || strcmp(domain, "ai.onnx") == 0 ? "" : domain;
}

/* Functions are identified by domain, name and overload. */
static const char *key_of(const fe_flattener *f, const char *domain, const char *name, const char *overload)
{
    return ir_arena_printf(f->context->scratch, "%s\n%s\n%s", domain_of(domain), fe_text(name), fe_text(overload));
}

/* "" is an absent value; absent values at the end are dropped. */
static mdot_status number_values(const fe_flattener *f, const fe_scope *scope, size_t count, char **names,
                                 int **out_values, int *out_count)
{
    const fe_context *context = f->context;
    while (count && !*fe_text(names[count - 1])) count--;
    if (count > MAX_NODE_EDGES)
        return mdot_fail(context->err, MDOT_UNSUPPORTED, "%s: a node has %zu inputs or outputs; at most %d",
                         context->file, count, MAX_NODE_EDGES);
    int *values = IR_NEW_ARRAY(context->scratch, int, count);
    if (values == NULL) return fe_out_of_memory(context);
    for (size_t i = 0; i < count; i++) {
        values[i] = FE_NO_VALUE;
        if (!*fe_text(names[i])) continue;
        BS_TRY(fe_lookup(f, scope, names[i], &values[i]));
    }
    *out_values = values;
    *out_count = (int)count;
    return MDOT_OK;
}

/* The value of a reference: the call's attribute, or else the function's default. NULL: the attribute is absent. */
static const Onnx__AttributeProto *resolve(const fe_scope *scope, const char *name)
{
    for (int i = 0; i < scope->call->attribute_count; i++)
        if (strcmp(scope->call->attributes[i].name, name) == 0) return scope->call->attributes[i].proto;
    for (size_t i = 0; i < scope->function->n_attribute_proto; i++) {
        const Onnx__AttributeProto *fallback = scope->function->attribute_proto[i];
        if (strcmp(fe_text(fallback->name), name) == 0) return fallback;
    }
    return NULL;
}

static mdot_status check_attribute(const fe_context *context, const fe_node *node, const Onnx__AttributeProto *proto)
{
    const char *name = fe_text(proto->name);
    const char *fault = !*name ? "an attribute has no name" : NULL;
    for (int i = 0; i < node->attribute_count; i++)
        if (strcmp(node->attributes[i].name, name) == 0) fault = "an attribute occurs twice";
    if (fault == NULL) return MDOT_OK;
    return mdot_fail(context->err, MDOT_MALFORMED, "%s: node '%s' (%s): %s: '%s'", context->file, node->name,
                     node->op_type, fault, name);
}

static mdot_status flatten_attributes(const fe_flattener *f, const fe_scope *scope, const Onnx__NodeProto *proto,
                                      fe_node *node)
{
    const fe_context *context = f->context;
    if (proto->n_attribute > MAX_ATTRIBUTES)
        return mdot_fail(context->err, MDOT_UNSUPPORTED, "%s: node '%s' (%s): %zu attributes; at most %d",
                         context->file, node->name, node->op_type, proto->n_attribute, MAX_ATTRIBUTES);
    node->attributes = IR_NEW_ARRAY(context->scratch, fe_attribute, proto->n_attribute);
    if (node->attributes == NULL) return fe_out_of_memory(context);
    for (size_t i = 0; i < proto->n_attribute; i++) {
        const Onnx__AttributeProto *attribute = proto->attribute[i];
        BS_TRY(check_attribute(context, node, attribute));
        const char *name = attribute->name, *reference = fe_text(attribute->ref_attr_name);
        if (*reference && scope->call == NULL)
            return mdot_fail(context->err, MDOT_MALFORMED,
                             "%s: node '%s' (%s): attribute '%s' refers to an attribute of a function, but the node is "
                             "outside of functions",
                             context->file, node->name, node->op_type, name);
        if (*reference) attribute = resolve(scope, reference);
        if (attribute != NULL) node->attributes[node->attribute_count++] = (fe_attribute){name, attribute};
    }
    return MDOT_OK;
}

/* Opset of domain "" among the imports; 0: absent. */
static int64_t import_of(size_t count, Onnx__OperatorSetIdProto *const *imports)
{
    for (size_t i = 0; i < count; i++)
        if (!*domain_of(imports[i]->domain)) return imports[i]->version;
    return 0;
}

static mdot_status fail_call(const fe_context *context, const fe_node *call, const char *reason)
{
    return mdot_fail(context->err, MDOT_MALFORMED, "%s: node '%s': function %s.%s: %s", context->file, call->name,
                     call->domain, call->op_type, reason);
}

/* If an output of a function is an input of it, or another output, it passes through an Identity. */
static mdot_status pass_through(const fe_flattener *f, const fe_scope *scope, int source, int target)
{
    int *edges = IR_NEW_ARRAY(f->context->scratch, int, 2);
    if (edges == NULL) return fe_out_of_memory(f->context);
    edges[0] = source;
    edges[1] = target;
    fe_node identity = {.domain = "",
                        .op_type = "Identity",
                        .name = scope->call->name,
                        .opset = scope->opset,
                        .input_count = 1,
                        .output_count = 1,
                        .inputs = &edges[0],
                        .outputs = &edges[1]};
    return fe_add_flat_node(f->context, f->flat, &identity);
}

static mdot_status bind_inputs(const fe_flattener *f, const fe_scope *scope)
{
    const fe_node *call = scope->call;
    for (size_t i = 0; i < scope->function->n_input; i++) {
        int value = (int)i < call->input_count ? call->inputs[i] : FE_NO_VALUE;
        const char *name = fe_text(scope->function->input[i]);
        if (fe_names_find(scope->names, name) >= 0) return fail_call(f->context, call, "an input's name occurs twice");
        if (!fe_names_add(scope->names, name, value + 1)) return fe_out_of_memory(f->context);
    }
    return MDOT_OK;
}

static mdot_status bind_outputs(const fe_flattener *f, const fe_scope *scope)
{
    const fe_node *call = scope->call;
    for (int i = 0; i < call->output_count; i++) {
        const char *name = fe_text(scope->function->output[i]);
        int bound = fe_names_find(scope->names, name);
        if (call->outputs[i] == FE_NO_VALUE) continue;
        if (bound == 0) return fail_call(f->context, call, "an output is an input that is absent");
        mdot_status status = MDOT_OK;
        if (bound > 0)
            status = pass_through(f, scope, bound - 1, call->outputs[i]);
        else if (!fe_names_add(scope->names, name, call->outputs[i] + 1))
            status = fe_out_of_memory(f->context);
        if (status != MDOT_OK) return status;
    }
    return MDOT_OK;
}

static mdot_status inline_call(const fe_flattener *f, const fe_scope *scope, const fe_node *call,
                               const Onnx__FunctionProto *function)
{
    const fe_context *context = f->context;
    for (const fe_scope *s = scope; s != NULL; s = s->caller)
        if (s->function == function) return fail_call(context, call, "calls itself");
    if (scope->depth == FE_MAX_CALL_DEPTH)
        return mdot_fail(context->err, MDOT_UNSUPPORTED, "%s: node '%s': more than %d nested functions", context->file,
                         call->name, FE_MAX_CALL_DEPTH);
    if ((size_t)call->input_count > function->n_input || (size_t)call->output_count > function->n_output)
        return fail_call(context, call, "the call has more inputs or outputs than the function");
    fe_scope inner = {.caller = scope,
                      .function = function,
                      .call = call,
                      .branch = scope->branch,
                      .is_in_loop = scope->is_in_loop,
                      .depth = scope->depth + 1,
                      .names = fe_names_create(context->scratch),
                      .opset = import_of(function->n_opset_import, function->opset_import)};
    if (inner.names == NULL) return fe_out_of_memory(context);
    BS_TRY(bind_inputs(f, &inner));
    BS_TRY(bind_outputs(f, &inner));
    return f->flatten_nodes(f, &inner, function->n_node, function->node);
}

/* The node's name, or "Add→first output" if it has none. Inside a function, the name of the call comes first. In
 * jobs, the module comes first if only the metadata contain it: "/layers.0.attn/node_view", like the names of
 * PyTorch's TorchScript exporter. */
static mdot_status name_node(const fe_context *context, const fe_scope *scope, const Onnx__NodeProto *proto,
                             const char **out_name)
{
    const char *name = fe_text(proto->name), *output = proto->n_output ? fe_text(proto->output[0]) : "", *module = NULL;
    BS_TRY(context->options->job ? fe_node_module(context, proto, &module) : MDOT_OK);
    if (!*name) name = ir_arena_printf(context->scratch, "%s→%s", fe_text(proto->op_type), output);
    if (name != NULL && module != NULL) name = ir_arena_printf(context->scratch, "/%s/%s", module, name);
    if (name != NULL && scope->call != NULL) name = ir_arena_printf(context->scratch, "%s/%s", scope->call->name, name);
    *out_name = name;
    return name != NULL ? MDOT_OK : fe_out_of_memory(context);
}

/* The branch of an If, if it can be inlined among the surrounding nodes: it has as many outputs as the If. In a job,
 * whose parameters are counted, it has no initializers. */
static const Onnx__GraphProto *branch_of(const fe_flattener *f, const fe_node *node, const char *name)
{
    for (int i = 0; i < node->attribute_count; i++) {
        const Onnx__GraphProto *graph = node->attributes[i].proto->g;
        if (strcmp(node->attributes[i].name, name) != 0 || graph == NULL) continue;
        bool plain = !graph->n_sparse_initializer && !graph->n_input;
        if (f->context->options->job) plain = plain && !graph->n_initializer;
        return plain && graph->n_output == (size_t)node->output_count ? graph : NULL;
    }
    return NULL;
}

static mdot_status inline_branch(const fe_flattener *f, const fe_scope *around, const Onnx__GraphProto *branch,
                                 const fe_branch *outer, int *out_values)
{
    fe_scope scope = *around;
    scope.around = around;
    scope.branch = outer;
    scope.names = fe_names_create(f->context->scratch);
    if (scope.names == NULL) return fe_out_of_memory(f->context);
    BS_TRY(fe_add_initializers(f, &scope, branch));
    BS_TRY(fe_add_names(f, &scope, branch));
    BS_TRY(f->flatten_nodes(f, &scope, branch->n_node, branch->node));
    for (size_t i = 0; i < branch->n_output; i++)
        BS_TRY(fe_lookup(f, &scope, fe_text(branch->output[i]->name), &out_values[i]));
    return MDOT_OK;
}

/* An If reads the condition, then the first branch's results, then the second's. Both branches are inlined among the
 * surrounding nodes. The branch is chosen when the condition is known: for a job in shapes.c, for a predictor in
 * import.c, which leaves out the other branch's nodes. */
static mdot_status add_if(const fe_flattener *f, const fe_scope *scope, fe_node *node)
{
    const Onnx__GraphProto *first = branch_of(f, node, "then_branch"), *second = branch_of(f, node, "else_branch");
    ir_arena *scratch = f->context->scratch;
    int count = node->output_count;
    if (first != NULL && second != NULL && node->input_count == 1) {
        int *inputs = IR_NEW_ARRAY(scratch, int, 1 + 2 * (size_t)count);
        fe_branch *branches = IR_NEW_ARRAY(scratch, fe_branch, 2);
        if (inputs == NULL || branches == NULL) return fe_out_of_memory(f->context);
        inputs[0] = node->inputs[0];
        for (int i = 0; i < 2; i++)
            branches[i] = (fe_branch){.condition = inputs[0], .when = i == 0, .around = scope->branch};
        bool job = f->context->options->job;
        BS_TRY(inline_branch(f, scope, first, job ? NULL : &branches[0], inputs + 1));
        BS_TRY(inline_branch(f, scope, second, job ? NULL : &branches[1], inputs + 1 + count));
        node->inputs = inputs;
        node->input_count = 1 + 2 * count;
    }
    return fe_add_flat_node(f->context, f->flat, node);
}

/* In a job, an EmbeddingBag reads the bag count, and the bags' rows or table and indices. */
static mdot_status add_loop(const fe_flattener *f, const fe_scope *scope, fe_node *node)
{
    fe_embedding_bags bags;
    for (int i = 0; i < node->attribute_count; i++) {
        const Onnx__GraphProto *body = node->attributes[i].proto->g;
        if (body == NULL || node->input_count < 1 || !fe_find_embedding_bags(body, &bags)) continue;
        if (node->output_count != (int)body->n_output - 1) continue; /* all outputs except the loop condition */
        const char *reads[] = {bags.rows != NULL ? bags.rows : bags.table, bags.indices};
        int *inputs = IR_NEW_ARRAY(f->context->scratch, int, 3), count = 1;
        if (inputs == NULL) return fe_out_of_memory(f->context);
        inputs[0] = node->inputs[0];
        BS_TRY(bags.count != NULL ? fe_lookup(f, scope, bags.count, &inputs[0]) : MDOT_OK);
        for (int k = 0; k < 2 && reads[k] != NULL; k++) BS_TRY(fe_lookup(f, scope, reads[k], &inputs[count++]));
        node->op_type = bags.op_type;
        node->inputs = inputs;
        node->input_count = count;
        node->outputs += node->output_count - 1; /* the output that holds the bags */
        node->output_count = 1;
        break;
    }
    return fe_add_flat_node(f->context, f->flat, node);
}

static bool keep_call(const fe_context *context, const fe_node *node)
{
    return context->options->keep_call != NULL && context->options->keep_call(node->domain, node->op_type);
}

/* Operators made by passes, with guarantees that a file's node would lack. Traces have other nodes of this domain. */
static bool is_internal(const fe_node *node)
{
    if (strcmp(node->domain, "mdot") != 0) return false;
    return ir_op_find(node->domain, node->op_type) != NULL || strcmp(node->op_type, FE_LOOP_STEPS) == 0;
}

static mdot_status flatten_node(const fe_flattener *f, const fe_scope *scope, const Onnx__NodeProto *proto)
{
    const fe_context *context = f->context;
    fe_node node = {.domain = domain_of(proto->domain),
                    .op_type = fe_text(proto->op_type),
                    .opset = scope->opset,
                    .branch = scope->branch,
                    .folds = context->options->job && fe_is_folded_node(proto)};
    BS_TRY(name_node(context, scope, proto, &node.name));
    if (!*node.op_type)
        return mdot_fail(context->err, MDOT_MALFORMED, "%s: node '%s' has no operator", context->file, node.name);
    BS_TRY(number_values(f, scope, proto->n_input, proto->input, &node.inputs, &node.input_count));
    BS_TRY(number_values(f, scope, proto->n_output, proto->output, &node.outputs, &node.output_count));
    BS_TRY(flatten_attributes(f, scope, proto, &node));
    int function = -1;
    if (f->model->n_functions) {
        const char *key = key_of(f, node.domain, node.op_type, proto->overload);
        if (key == NULL) return fe_out_of_memory(context);
        function = fe_names_find(f->functions, key);
    }
    if (function >= 0 && !keep_call(context, &node)) return inline_call(f, scope, &node, f->model->functions[function]);
    if (!*node.domain && node.opset <= 0)
        return mdot_fail(context->err, MDOT_MALFORMED,
                         "%s: node '%s' (%s): the model or function that contains the node imports no opset of ai.onnx",
                         context->file, node.name, node.op_type);
    if (is_internal(&node))
        return mdot_fail(context->err, MDOT_UNSUPPORTED,
                         "%s: node '%s' (mdot:%s): only mdot itself may make this operator; define it as a function of "
                         "the model, or give it another domain",
                         context->file, node.name, node.op_type);
    if (!*node.domain && strcmp(node.op_type, "If") == 0) return add_if(f, scope, &node);
    if (context->options->job && !*node.domain && strcmp(node.op_type, "Loop") == 0) return add_loop(f, scope, &node);
    if (!context->options->job && !*node.domain && fe_is_loop(&node)) return fe_inline_loop(f, scope, &node);
    return fe_add_flat_node(context, f->flat, &node);
}

static mdot_status flatten_nodes(const fe_flattener *f, const fe_scope *scope, size_t count,
                                 Onnx__NodeProto *const *nodes)
{
    for (size_t i = 0; i < count; i++) BS_TRY(flatten_node(f, scope, nodes[i]));
    return MDOT_OK;
}

static mdot_status index_functions(fe_flattener *f)
{
    for (size_t i = 0; i < f->model->n_functions; i++) {
        const Onnx__FunctionProto *function = f->model->functions[i];
        const char *key = key_of(f, function->domain, function->name, function->overload);
        if (key == NULL) return fe_out_of_memory(f->context);
        if (fe_names_find(f->functions, key) >= 0)
            return mdot_fail(f->context->err, MDOT_MALFORMED, "%s: function %s.%s is defined twice", f->context->file,
                             fe_text(function->domain), fe_text(function->name));
        if (!fe_names_add(f->functions, key, (int)i)) return fe_out_of_memory(f->context);
    }
    return MDOT_OK;
}

mdot_status fe_flatten(const fe_context *context, const Onnx__ModelProto *model, fe_flat *out_flat)
{
    fe_flat flat = {.names = fe_names_create(context->scratch)};
    fe_flattener f = {.context = context,
                      .model = model,
                      .functions = fe_names_create(context->scratch),
                      .flat = &flat,
                      .flatten_nodes = flatten_nodes};
    if (flat.names == NULL || f.functions == NULL) return fe_out_of_memory(context);
    BS_TRY(index_functions(&f));
    fe_scope graph = {.names = flat.names, .opset = import_of(model->n_opset_import, model->opset_import)};
    /* Models before IR version 3 list no operator sets and mean the first one. */
    if (model->n_opset_import == 0 && model->has_ir_version && model->ir_version < 3) graph.opset = 1;
    mdot_status status = flatten_nodes(&f, &graph, model->graph->n_node, model->graph->node);
    if (status == MDOT_OK) *out_flat = flat;
    return status;
}
