/* import.c — the whole frontend: bytes → messages → flat nodes in order → graph, with each node upgraded.
 *
 * There are two arenas. The caller's arena holds the graph. A scratch arena holds messages, names and numbers until the
 * end. Both are bounded in proportion to the file, so no file can exhaust memory. */
#include "frontend/onnx/onnx.h"

#include "base/file.h"
#include "frontend/onnx/flat.h"
#include "frontend/onnx/flatten.h"
#include "frontend/onnx/graph_edit.h"
#include "frontend/onnx/import_context.h"
#include "frontend/onnx/names.h"
#include "frontend/onnx/rewrites.h"
#include "frontend/onnx/source.h"
#include "frontend/onnx/symbols.h"

#include <string.h>

/* An empty NodeProto takes two bytes on the wire, about 150 unpacked, and about as much again as a flat node. */
enum { SCRATCH_BYTES_BASE = 64 << 20, SCRATCH_BYTES_PER_BYTE = 512 };
/* Memory for a graph and the results of passes: 10 to 30 bytes per byte of a file without weights, and hardly any per
 * byte of weights. Folded constants come on top, which are few in jobs. */
enum { JOB_BYTES_BASE = 128 << 20, MODEL_BYTES_BASE = 1 << 30, GRAPH_BYTES_PER_BYTE = 512 };

typedef struct importer {
    fe_context context;
    const Onnx__GraphProto *proto;
    fe_flat flat;
    ir_graph *graph;
    ir_value **values; /* indexed by value number */
    fe_names *bound;   /* symbolic dimensions that became numbers */
    fe_upgrader upgrader;
    bool warned_of_opset;
} importer;

static mdot_status check_model(const fe_context *context, const Onnx__ModelProto *model)
{
    const Onnx__GraphProto *graph = model->graph;
    if (graph == NULL)
        return mdot_fail(context->err, MDOT_MALFORMED, "%s: not an ONNX model: it has no graph", context->file);
    if (graph->n_output == 0)
        return mdot_fail(context->err, MDOT_MALFORMED, "%s: the graph has no outputs", context->file);
    if (graph->n_sparse_initializer)
        return mdot_fail(context->err, MDOT_UNSUPPORTED, "%s: sparse initializers are unsupported", context->file);
    if (graph->n_quantization_annotation)
        return mdot_fail(context->err, MDOT_UNSUPPORTED, "%s: quantized tensors (of '%s') are unsupported",
                         context->file, fe_text(graph->quantization_annotation[0]->tensor_name));
    return MDOT_OK;
}

static int find_value(const importer *im, const char *name) { return fe_names_find(im->flat.names, name) - 1; }

static mdot_status import_initializers(importer *im)
{
    for (size_t i = 0; i < im->proto->n_initializer; i++) {
        const Onnx__TensorProto *proto = im->proto->initializer[i];
        const ir_tensor *tensor;
        BS_TRY(fe_import_tensor(&im->context, proto, "initializer", proto->name, &tensor));
        ir_value *value = ir_graph_add_constant(im->graph, proto->name, tensor);
        if (value == NULL) return fe_out_of_memory(&im->context);
        value->stored = true;
        im->values[find_value(im, proto->name)] = value;
    }
    return MDOT_OK;
}

/* Turns an input of zero elements into a constant, which leaves the graph's inputs. NULL: it stays an input. This is
 * so in jobs, which are only analysed; in tests, whose data counts the inputs as in the file; and for strings,
 * because operators compute with numbers only. */
static mdot_status empty_constant(const importer *im, const char *name, const ir_type *type, ir_value **out_constant)
{
    const fe_options *options = im->context.options;
    int64_t dims[MDOT_MAX_RANK];
    *out_constant = NULL;
    if (ir_type_count_at(type, 1) != 0 || type->dtype == MDOT_DTYPE_STRING) return MDOT_OK;
    if (options->job || options->input_types != NULL) return MDOT_OK;
    for (int i = 0; i < type->rank; i++) {
        if (!ir_dim_is_number(type->dim[i]))
            return BS_INVALID(im->context.err, "%s: input '%s' is empty, and yet as long as '%s' along axis %d",
                              im->context.file, name, im->graph->symbol, i);
        dims[i] = type->dim[i].offset;
    }
    const ir_wide *wide = ir_wide_create(im->context.arena, type->dtype, type->rank, dims);
    const ir_tensor *tensor = wide != NULL ? ir_tensor_from_wide(im->context.arena, wide) : NULL;
    *out_constant = tensor != NULL ? ir_graph_add_constant(im->graph, name, tensor) : NULL;
    return *out_constant != NULL ? MDOT_OK : fe_out_of_memory(&im->context);
}

static mdot_status import_inputs(importer *im)
{
    ir_arena *scratch = im->context.scratch;
    Onnx__ValueInfoProto **inputs = IR_NEW_ARRAY(scratch, Onnx__ValueInfoProto *, im->proto->n_input);
    ir_type *types = IR_NEW_ARRAY(scratch, ir_type, im->proto->n_input);
    if (inputs == NULL || types == NULL) return fe_out_of_memory(&im->context);
    int count = 0;
    for (size_t i = 0; i < im->proto->n_input; i++) {
        int value = find_value(im, im->proto->input[i]->name);
        if (im->flat.values[value].definer == FE_BY_INPUT) inputs[count++] = im->proto->input[i];
    }
    BS_TRY(fe_type_inputs(&im->context, inputs, count, types, &im->graph->symbol, &im->bound, &im->graph->has_batch));
    im->graph->batch = fe_named_batch(im->bound);
    for (int i = 0; i < count; i++) {
        ir_value *value;
        BS_TRY(empty_constant(im, inputs[i]->name, &types[i], &value));
        if (value == NULL) value = ir_graph_add_input(im->graph, inputs[i]->name, &types[i]);
        if (value == NULL) return fe_out_of_memory(&im->context);
        im->values[find_value(im, inputs[i]->name)] = value;
    }
    return MDOT_OK;
}

/* Declares an output's element type, as in the caller's buffer. It must match the computed type; inference checks this
 * at the producing node. A job's outputs are not read, so their types are ignored. */
static mdot_status declare_output(const importer *im, const Onnx__ValueInfoProto *info, ir_value *value)
{
    const Onnx__TypeProto__Tensor *tensor = info->type != NULL ? info->type->tensor_type : NULL;
    if (tensor == NULL || tensor->elem_type == MDOT_DTYPE_NONE || im->context.options->job) return MDOT_OK;
    value->declared = (mdot_dtype)tensor->elem_type;
    if (value->def != NULL || value->declared == value->type.dtype) return MDOT_OK;
    return mdot_fail(im->context.err, MDOT_MALFORMED, "%s: output '%s' is of type %s, but declared to be of type %s",
                     im->context.file, value->name, mdot_dtype_name(value->type.dtype),
                     mdot_dtype_name(value->declared));
}

static mdot_status import_outputs(importer *im)
{
    fe_names *names = fe_names_create(im->context.scratch);
    if (names == NULL) return fe_out_of_memory(&im->context);
    for (size_t i = 0; i < im->proto->n_output; i++) {
        const char *name = fe_text(im->proto->output[i]->name);
        int number = find_value(im, name);
        const char *fault = NULL;
        if (number < 0 || im->values[number] == NULL) fault = "is undefined";
        if (fe_names_find(names, name) >= 0) fault = "occurs twice";
        if (fault != NULL)
            return mdot_fail(im->context.err, MDOT_MALFORMED, "%s: output '%s' %s", im->context.file, name, fault);
        if (!fe_names_add(names, name, (int)i) || !ir_graph_add_output(im->graph, im->values[number]))
            return fe_out_of_memory(&im->context);
        BS_TRY(declare_output(im, im->proto->output[i], im->values[number]));
    }
    return MDOT_OK;
}

static mdot_status fail_node(const importer *im, const ir_node *node, const char *reason)
{
    return mdot_fail(im->context.err, MDOT_MALFORMED, "%s: node '%s' (%s): %s", im->context.file, node->name,
                     node->op_type, reason);
}

enum { ATTENTION_INPUTS = 7 }; /* in a file; only passes add masks after them */

/* Checks the input count, so all later stages may read the inputs that the operator table promises. */
static mdot_status check_arity(const importer *im, const ir_node *node)
{
    const ir_op *op = node->op;
    if (op == NULL) return MDOT_OK;
    bool is_scatter = op->opcode == IR_OP_ScatterElements || op->opcode == IR_OP_ScatterND;
    int most_inputs = op->opcode == IR_OP_Attention ? ATTENTION_INPUTS : op->max_inputs - is_scatter;
    if (node->input_count > most_inputs) return fail_node(im, node, "it has more inputs than the operator takes");
    if (node->output_count > op->max_outputs)
        return fail_node(im, node, "it has more outputs than the operator produces");
    int required = op->traits & IR_VARIADIC ? node->input_count : op->min_inputs;
    for (int i = 0; i < required || i < op->min_inputs; i++)
        if (ir_node_input(node, i) == NULL) return fail_node(im, node, "it lacks an input that the operator requires");
    for (int i = 0; i < op->min_outputs; i++)
        if (i >= node->output_count || node->outputs[i] == NULL)
            return fail_node(im, node, "it lacks a required output");
    return MDOT_OK;
}

static int64_t opset_of(importer *im, const fe_node *source)
{
    if (source->opset <= FE_NEWEST_OPSET) return source->opset;
    if (!im->warned_of_opset)
        fe_warn(&im->context, "%s: opset %lld is read as opset %d, the newest that mdot supports", im->context.file,
                (long long)source->opset, FE_NEWEST_OPSET);
    im->warned_of_opset = true;
    return FE_NEWEST_OPSET;
}

static ir_node *add_node(importer *im, const fe_node *source, const ir_op *op)
{
    ir_arena *arena = im->context.arena;
    ir_value **inputs = IR_NEW_ARRAY(im->context.scratch, ir_value *, source->input_count);
    if (inputs == NULL) return NULL;
    for (int i = 0; i < source->input_count; i++)
        if (source->inputs[i] != FE_NO_VALUE) inputs[i] = im->values[source->inputs[i]];
    ir_node *node =
        ir_graph_add_node(im->graph, NULL, op, source->name, inputs, source->input_count, source->output_count);
    if (node == NULL) return NULL;
    if (op == NULL) {
        node->op_type = *source->domain ? ir_arena_printf(arena, "%s:%s", source->domain, source->op_type)
                                        : ir_arena_strdup(arena, source->op_type);
        if (node->op_type == NULL) return NULL;
    }
    for (int i = 0; i < source->output_count; i++) {
        int number = source->outputs[i];
        if (number == FE_NO_VALUE) {
            node->outputs[i] = NULL;
            continue;
        }
        node->outputs[i]->name = ir_arena_strdup(arena, im->flat.values[number].name);
        if (node->outputs[i]->name == NULL) return NULL;
        im->values[number] = node->outputs[i];
    }
    return node;
}

static mdot_status import_node(importer *im, const fe_node *source)
{
    bool standard = !*source->domain;
    if (standard && strcmp(source->op_type, "Constant") == 0) {
        const ir_tensor *tensor;
        BS_TRY(fe_import_constant(&im->context, source, &tensor));
        int number = source->outputs[0];
        if (number == FE_NO_VALUE) return MDOT_OK; /* a repetition: topological_order.c */
        ir_value *value = ir_graph_add_constant(im->graph, im->flat.values[number].name, tensor);
        if (value == NULL) return fe_out_of_memory(&im->context);
        im->values[number] = value;
        return MDOT_OK;
    }
    int64_t opset = opset_of(im, source);
    ir_node *node = add_node(im, source, fe_find_operator(source->domain, source->op_type, opset));
    if (node == NULL) return fe_out_of_memory(&im->context);
    BS_TRY(fe_import_attributes(&im->context, source, node));
    if (node->op != NULL && standard) BS_TRY(fe_upgrade_node(&im->upgrader, node, opset));
    bool rewrites = node->op == NULL && !im->context.options->job;
    if (rewrites) BS_TRY(fe_write_q_operator(&im->upgrader, node));
    if (rewrites && standard && !fe_write_dft(&im->upgrader, node, opset)) return fe_out_of_memory(&im->context);
    bool is_fused = node->op == NULL && strcmp(node->op_type, "com.microsoft:FusedConv") == 0; /* for a job, too */
    if (rewrites || is_fused) BS_TRY(fe_write_ml_operator(&im->upgrader, node));
    BS_TRY(check_arity(im, node)); /* so that no rewrite below meets an absent input */
    bool restructures = !im->context.options->job;
    bool restores = restructures && node->op == &ir_ops[IR_OP_Reshape];
    if (restores && !fe_join_group_norm(&im->upgrader, node)) return fe_out_of_memory(&im->context);
    if (restructures) BS_TRY(fe_keep_pairs_apart(&im->upgrader, node));
    if (restructures) BS_TRY(fe_slice_by_counter(&im->upgrader, node));
    if (restructures) BS_TRY(fe_reduce_bag(&im->upgrader, node));
    if (source->folds && !ir_node_set(im->graph, node, IR_INT(FE_FOLDED_NORMALISATION, 1)))
        return fe_out_of_memory(&im->context);
    return MDOT_OK;
}

/* 0 or 1 if constants or shapes decide a condition; -1 if it depends on data. */
static int known_condition(importer *im, int number)
{
    int64_t content;
    const ir_value *value = number != FE_NO_VALUE ? im->values[number] : NULL;
    if (value == NULL) return -1;
    (void)fe_type_of_upgraded(&im->upgrader, value);
    return ir_value_int(value, &content) ? content != 0 : -1;
}

/* Does a known condition select the other branch of the node's If, or of an enclosing If? */
static bool is_left_out(importer *im, const fe_node *source)
{
    for (const fe_branch *branch = source->branch; branch != NULL; branch = branch->around) {
        int condition = known_condition(im, branch->condition);
        if (condition >= 0 && (condition != 0) != branch->when) return true;
    }
    return false;
}

/* Do both values exist with equal types, and can the condition select between them? */
static bool can_choose(importer *im, int condition, int first, int second)
{
    if (condition == FE_NO_VALUE || first == FE_NO_VALUE || second == FE_NO_VALUE) return false;
    const ir_value *c = im->values[condition], *a = im->values[first], *b = im->values[second];
    if (c == NULL || a == NULL || b == NULL) return false;
    const ir_type *type = fe_type_of_upgraded(&im->upgrader, a);
    const ir_type *chooser = fe_type_of_upgraded(&im->upgrader, c);
    if (type->rank < 0 || chooser->rank < 0 || chooser->rank > type->rank) return false;
    return ir_type_equal(type, fe_type_of_upgraded(&im->upgrader, b)) && ir_type_count_at(chooser, 1) == 1;
}

/* Replaces an If by the taken branch's results, if known. If the condition depends on data and both branches have the
 * same types, a selection between the results replaces it. Otherwise the If stays, and is reported with other
 * unsupported nodes. */
static mdot_status import_if(importer *im, const fe_node *source)
{
    int count = source->output_count;
    if (source->input_count != 1 + 2 * count) return import_node(im, source);
    int condition = known_condition(im, source->inputs[0]);
    bool selects = condition < 0;
    for (int i = 0; i < count && selects; i++)
        selects = can_choose(im, source->inputs[0], source->inputs[1 + i], source->inputs[1 + count + i]);
    if (condition < 0 && !selects) return import_node(im, source);
    for (int i = 0; i < count; i++) {
        int inputs[] = {source->inputs[0], source->inputs[1 + i], source->inputs[1 + count + i]};
        fe_node result = *source;
        result.op_type = selects ? "Where" : "Identity";
        result.input_count = selects ? 3 : 1;
        result.inputs = selects ? inputs : &inputs[condition == 1 ? 1 : 2];
        result.output_count = 1;
        result.outputs = &source->outputs[i];
        result.attribute_count = 0;
        if (*result.outputs != FE_NO_VALUE) BS_TRY(import_node(im, &result));
    }
    return MDOT_OK;
}

static bool is_loop_steps(const fe_node *source)
{
    return strcmp(source->domain, "mdot") == 0 && strcmp(source->op_type, FE_LOOP_STEPS) == 0 &&
           source->input_count >= FE_STEPS_NEXT && source->output_count == 1;
}

static mdot_status import_loop_steps(importer *im, const fe_node *source)
{
    ir_value **inputs = IR_NEW_ARRAY(im->context.scratch, ir_value *, source->input_count);
    if (inputs == NULL) return fe_out_of_memory(&im->context);
    for (int i = 0; i < source->input_count; i++)
        if (source->inputs[i] != FE_NO_VALUE) inputs[i] = im->values[source->inputs[i]];
    return fe_count_steps(&im->upgrader, source->name, inputs, source->input_count, &im->values[source->outputs[0]]);
}

static mdot_status import_nodes(importer *im)
{
    mdot_status status = MDOT_OK;
    for (int i = 0; i < im->flat.node_count && status == MDOT_OK; i++) {
        const fe_node *source = &im->flat.nodes[im->flat.order[i]];
        if (is_left_out(im, source)) continue;
        bool is_if = !*source->domain && strcmp(source->op_type, "If") == 0 && !im->context.options->job;
        if (is_loop_steps(source))
            status = import_loop_steps(im, source);
        else
            status = is_if ? import_if(im, source) : import_node(im, source);
    }
    fe_forget_types(&im->upgrader);
    return status;
}

/* Imports the value types that the file states, for a job's unknown operators. */
static void import_stated_types(importer *im)
{
    const Onnx__GraphProto *proto = im->proto;
    for (size_t i = 0; i < proto->n_value_info + proto->n_output; i++) {
        const Onnx__ValueInfoProto *info =
            i < proto->n_value_info ? proto->value_info[i] : proto->output[i - proto->n_value_info];
        int number = find_value(im, fe_text(info->name));
        if (number < 0 || im->values[number] == NULL || im->values[number]->def == NULL) continue;
        ir_type type;
        if (fe_stated_type(info, im->bound, &type)) im->values[number]->type = type;
    }
}

static mdot_status import_notes(importer *im, const Onnx__ModelProto *model)
{
    const fe_context *context = &im->context;
    ir_note *notes = IR_NEW_ARRAY(context->arena, ir_note, model->n_metadata_props);
    if (notes == NULL) return fe_out_of_memory(context);
    for (size_t i = 0; i < model->n_metadata_props; i++) {
        const char *key = fe_text(model->metadata_props[i]->key);
        if (strncmp(key, IR_NOTE_PREFIX, strlen(IR_NOTE_PREFIX)) != 0) continue;
        ir_note *note = &notes[im->graph->note_count++];
        note->key = ir_arena_strdup(context->arena, key);
        note->value = ir_arena_strdup(context->arena, fe_text(model->metadata_props[i]->value));
        if (note->key == NULL || note->value == NULL) return fe_out_of_memory(context);
    }
    im->graph->notes = notes;
    return MDOT_OK;
}

static mdot_status check_stated_weights(const importer *im)
{
    const fe_options *options = im->context.options;
    double elements;
    if (options->check_weights == NULL) return MDOT_OK;
    BS_TRY(fe_count_stated_weights(&im->context, im->proto, &im->flat, &elements));
    return options->check_weights(options->weights_user, im->context.file, elements, im->context.err);
}

static mdot_status import_model(importer *im, const Onnx__ModelProto *model)
{
    const fe_context *context = &im->context;
    im->proto = model->graph;
    BS_TRY(fe_flatten(context, model, &im->flat));
    BS_TRY(fe_define_values(context, im->proto, &im->flat));
    BS_TRY(check_stated_weights(im));
    BS_TRY(fe_order_nodes(context, &im->flat));
    im->graph = ir_graph_create(context->arena, context->file);
    im->values = IR_NEW_ARRAY(context->scratch, ir_value *, im->flat.value_count);
    if (im->graph == NULL || im->values == NULL) return fe_out_of_memory(context);
    im->upgrader = (fe_upgrader){.context = context, .graph = im->graph};
    BS_TRY(import_initializers(im));
    BS_TRY(import_inputs(im));
    BS_TRY(import_nodes(im));
    if (context->options->job) import_stated_types(im);
    BS_TRY(import_outputs(im));
    return import_notes(im, model);
}

static size_t bound(size_t base, size_t per_byte, size_t size_bytes)
{
    return size_bytes > (SIZE_MAX - base) / per_byte ? SIZE_MAX : base + per_byte * size_bytes;
}

mdot_status fe_explain_memory(const ir_arena *arena, const char *name, mdot_status status, mdot_error *err)
{
    if (status != MDOT_OUT_OF_MEMORY || !ir_arena_is_full(arena)) return status;
    return mdot_fail(err, MDOT_OUT_OF_MEMORY,
                     "%s: reading takes more memory than is allowed for a file of this size: %zu MiB", name,
                     ir_arena_limit_bytes(arena) >> 20);
}

/* Adds the remedy to protobuf's message about malformed bytes. */
static mdot_status explain_damage(const fe_context *context, mdot_status status)
{
    if (status != MDOT_MALFORMED || context->source->size_bytes == 0 || context->err == NULL) return status;
    const mdot_error reason = *context->err;
    return mdot_fail(context->err, MDOT_MALFORMED,
                     "%s; the file is damaged, cut off or no ONNX model: copy or export it again", reason.message);
}

/* Replaces the message about malformed bytes if they have another known format. */
static mdot_status explain_format(const fe_context *context, size_t size_bytes, mdot_status status)
{
    if (status != MDOT_MALFORMED && status != MDOT_UNSUPPORTED) return status;
    if (fe_check_file_size(context->file, size_bytes, NULL) != MDOT_OK) return status; /* the bytes stay unread */
    size_t looked_at = size_bytes < BS_FOREIGN_BYTES ? size_bytes : BS_FOREIGN_BYTES;
    if (fe_need(context->source, 0, looked_at, NULL) != MDOT_OK) return status;
    bs_foreign foreign = bs_recognise_foreign(context->source->bytes, looked_at,
                                              context->options->job ? BS_EXPECT_JOB : BS_EXPECT_MODEL);
    if (foreign.text[0] == '\0') return status;
    return mdot_fail(context->err, MDOT_MALFORMED, "%s: %s", context->file, foreign.text);
}

static mdot_status import_source(const fe_source *source, const char *folder, const fe_options *options,
                                 ir_arena *arena, ir_graph **out_graph, mdot_error *err)
{
    static const fe_options no_options;
    size_t size_bytes = source->size_bytes;
    importer im = {.context = {.file = source->name,
                               .folder = folder,
                               .source = source,
                               .options = options != NULL ? options : &no_options,
                               .arena = arena,
                               .err = err}};
    BS_TRY(fe_check_bindings(im.context.options, err));
    im.context.scratch = ir_arena_create(bound(SCRATCH_BYTES_BASE, SCRATCH_BYTES_PER_BYTE, size_bytes));
    size_t base = im.context.options->job ? JOB_BYTES_BASE : MODEL_BYTES_BASE;
    ir_arena_allow(arena, bound(base, GRAPH_BYTES_PER_BYTE, size_bytes));
    if (im.context.scratch == NULL) return fe_out_of_memory(&im.context);
    ProtobufCMessage *message;
    mdot_status status = fe_wire_unpack(source, &onnx__model_proto__descriptor, im.context.scratch, &message, err);
    status = explain_damage(&im.context, status);
    if (status == MDOT_OK) status = check_model(&im.context, (const Onnx__ModelProto *)message);
    status = explain_format(&im.context, size_bytes, status);
    if (status == MDOT_OK) status = import_model(&im, (const Onnx__ModelProto *)message);
    if (status == MDOT_OK && !fe_refuse_counted_rows(&im.upgrader)) status = fe_out_of_memory(&im.context);
    if (status == MDOT_OK && im.upgrader.leaves_dead_nodes) (void)ir_graph_remove_dead(im.graph);
    if (status == MDOT_OK) *out_graph = im.graph;
    ir_arena_destroy(im.context.scratch);
    return fe_explain_memory(arena, source->name, status, err);
}

mdot_status fe_import_bytes(const void *bytes, size_t size_bytes, const char *name, const char *folder,
                            const fe_options *options, ir_arena *arena, ir_graph **out_graph, mdot_error *err)
{
    fe_source source = fe_memory_source(bytes, size_bytes, name);
    return import_source(&source, folder, options, arena, out_graph, err);
}

mdot_status fe_import(const char *path, const fe_options *options, ir_arena *arena, ir_graph **out_graph,
                      mdot_error *err)
{
    fe_source source;
    mdot_status status = fe_open_source(path, arena, &source, err);
    if (status != MDOT_OK) return status;
    const char *slash = strrchr(path, '/');
    const char *folder =
        slash != NULL ? ir_arena_strndup(arena, path, (size_t)(slash - path) + 1) : "."; /* "/" stays "/" */
    if (folder == NULL) status = BS_OUT_OF_MEMORY(err, "%s", path);
    if (status == MDOT_OK && options != NULL && options->output != NULL)
        status = bs_check_replaces(options->output, path, err);
    if (status == MDOT_OK) status = import_source(&source, folder, options, arena, out_graph, err);
    fe_close_source(&source);
    return status;
}
