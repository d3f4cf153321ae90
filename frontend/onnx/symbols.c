/* symbols.c — resolves the inputs' dimensions to numbers and the one symbolic length (rules in onnx.h).
 *
 * A dimension name is a symbol of the whole model. A dimension with neither name nor number becomes a separate symbol,
 * named after input and axis: "tokens.1". */
#include "frontend/onnx/symbols.h"

#include "base/suggest.h"
#include "base/text.h"
#include "frontend/onnx/import_context.h"
#include "frontend/onnx/names.h"

#include <stdlib.h>
#include <string.h>

enum { NO_SYMBOL = -1 };

typedef struct symbol {
    const char *name;
    bool bound;
    bool merged;       /* this symbol was merged into another, which represents both */
    bool only_leading; /* occurs only as first dimension: a batch */
    int64_t value;
} symbol;

typedef struct input_dims { /* of one input: per dimension a symbol, or NO_SYMBOL and a number */
    int symbol[MDOT_MAX_RANK];
    int64_t number[MDOT_MAX_RANK];
} input_dims;

typedef struct binder {
    const fe_context *context;
    Onnx__ValueInfoProto *const *inputs;
    int count;
    ir_type *types;
    input_dims *dims;
    symbol *symbols;
    int symbol_count;
    fe_names *names;
    bool *has_batch; /* set if the batch is a symbol */
    int64_t *length; /* of a job whose length was bound without its symbol's name; otherwise 0 */
} binder;

static mdot_status fail_input(const binder *b, int input, mdot_status status, const char *reason)
{
    return mdot_fail(b->context->err, status, "%s: input '%s': %s", b->context->file, b->inputs[input]->name, reason);
}

static mdot_status find_symbol(binder *b, const char *name, int axis, int *out_symbol)
{
    int found = name != NULL ? fe_names_find(b->names, name) : NO_SYMBOL;
    if (name == NULL) return fe_out_of_memory(b->context);
    if (found == NO_SYMBOL) {
        found = b->symbol_count++;
        b->symbols[found] = (symbol){.name = name, .only_leading = true};
        if (!fe_names_add(b->names, name, found)) return fe_out_of_memory(b->context);
    }
    if (axis > 0) b->symbols[found].only_leading = false;
    *out_symbol = found;
    return MDOT_OK;
}

static mdot_status read_dim(binder *b, int input, int axis, const Onnx__TensorShapeProto__Dimension *dim)
{
    input_dims *dims = &b->dims[input];
    dims->symbol[axis] = NO_SYMBOL;
    if (dim->has_dim_value) {
        dims->number[axis] = dim->dim_value;
        if (dim->dim_value >= 0) return MDOT_OK;
        if (dim->dim_value != -1) return fail_input(b, input, MDOT_MALFORMED, "a dimension is negative");
    } /* -1 leaves the dimension open, like an absent name */
    const char *name = dim->has_dim_value ? "" : fe_text(dim->dim_param);
    if (!*name) name = ir_arena_printf(b->context->scratch, "%s.%d", b->inputs[input]->name, axis);
    return find_symbol(b, name, axis, &dims->symbol[axis]);
}

static bool is_element(int32_t elem_type)
{
    return elem_type == MDOT_DTYPE_STRING || mdot_dtype_size_bytes((mdot_dtype)elem_type) > 0;
}

/* Treats a job's input of unknown size as a scalar. */
static mdot_status treat_as_scalar(const binder *b, int input)
{
    ir_type *type = &b->types[input];
    if (type->dtype == MDOT_DTYPE_NONE) type->dtype = MDOT_DTYPE_F32;
    type->rank = 0;
    fe_warn(b->context, "%s: the size of input '%s' is unknown: it is treated as a scalar", b->context->file,
            b->inputs[input]->name);
    return MDOT_OK;
}

/* Leaves rank -1 if the file gives no shape. */
static mdot_status read_type(binder *b, int input)
{
    const Onnx__TypeProto *proto = b->inputs[input]->type;
    ir_type *type = &b->types[input];
    *type = (ir_type){.rank = -1};
    if (b->context->options->job &&
        (proto == NULL || proto->tensor_type == NULL || !is_element(proto->tensor_type->elem_type)))
        return treat_as_scalar(b, input);
    if (proto == NULL) return fail_input(b, input, MDOT_MALFORMED, "has no type");
    if (proto->tensor_type == NULL) return fail_input(b, input, MDOT_UNSUPPORTED, "must be a tensor");
    type->dtype = (mdot_dtype)proto->tensor_type->elem_type;
    if (!is_element(proto->tensor_type->elem_type))
        return mdot_fail(b->context->err, MDOT_UNSUPPORTED, "%s: input '%s': element type %d is unsupported",
                         b->context->file, b->inputs[input]->name, (int)proto->tensor_type->elem_type);
    const Onnx__TensorShapeProto *shape = proto->tensor_type->shape;
    if (shape == NULL) return b->context->options->job ? treat_as_scalar(b, input) : MDOT_OK;
    if (shape->n_dim > MDOT_MAX_RANK) return fail_input(b, input, MDOT_UNSUPPORTED, "has too many dimensions");
    type->rank = (int)shape->n_dim;
    for (int axis = 0; axis < type->rank; axis++) BS_TRY(read_dim(b, input, axis, shape->dim[axis]));
    return MDOT_OK;
}

static bs_suggest_hint nearest_symbol(const binder *b, const char *name)
{
    bs_suggest near = bs_suggest_begin(name);
    for (int i = 0; i < b->symbol_count; i++) bs_suggest_add(&near, b->symbols[i].name);
    return bs_suggest_end(&near);
}

static mdot_status bind(const binder *b, symbol *s, int64_t value)
{
    if (s->bound && s->value != value)
        return BS_INVALID(b->context->err, "%s: dimension '%s' is bound to both %lld and %lld", b->context->file,
                          s->name, (long long)s->value, (long long)value);
    s->bound = true;
    s->value = value;
    return MDOT_OK;
}

/* Merges two symbols into one. */
static mdot_status merge(const binder *b, int source, const mdot_dim_binding *binding)
{
    int into = fe_names_find(b->names, binding->same_as);
    if (into == NO_SYMBOL || into == source || b->symbols[into].merged || b->symbols[source].merged)
        return BS_INVALID(b->context->err, "%s: dimension '%s' cannot be bound to '%s'%s%s", b->context->file,
                          binding->name, binding->same_as, into == NO_SYMBOL ? ", which no input has" : "",
                          into == NO_SYMBOL ? nearest_symbol(b, binding->same_as).text : "");
    for (int i = 0; i < b->count; i++)
        for (int axis = 0; axis < b->types[i].rank; axis++)
            if (b->dims[i].symbol[axis] == source) b->dims[i].symbol[axis] = into;
    b->symbols[source].merged = true;
    if (!b->symbols[source].only_leading) b->symbols[into].only_leading = false;
    return MDOT_OK;
}

mdot_status fe_check_bindings(const fe_options *options, mdot_error *err)
{
    const mdot_dim_binding *bindings = options->bindings;
    const int minimum = options->job ? 1 : 0;
    if (options->binding_count > 0 && bindings == NULL)
        return BS_INVALID(err, "the number of dimension bindings is %zu, but their array is NULL",
                          options->binding_count);
    for (size_t i = 0; i < options->binding_count; i++) {
        if (bindings[i].name == NULL || *bindings[i].name == '\0')
            return BS_INVALID(err, "dimension %zu has no name", i);
        if (bindings[i].same_as != NULL && *bindings[i].same_as == '\0')
            return BS_INVALID(err, "dimension '%s' is bound to an empty name", bindings[i].name);
        if (bindings[i].same_as == NULL && bindings[i].value < minimum)
            return BS_INVALID(err, "dimension '%s' is bound to %lld, but must be at least %d", bindings[i].name,
                              (long long)bindings[i].value, minimum);
    }
    return MDOT_OK;
}

/* Names of the batch by exporters and users of PyTorch's dynamic_axes. */
static const char *const batch_names[] = {"batch", "batch_size", "batchsize", "batch_dim", "Batch", "BatchSize"};

static bool is_batch_name(const char *name)
{
    for (size_t i = 0; i < sizeof batch_names / sizeof *batch_names; i++)
        if (strcmp(name, batch_names[i]) == 0) return true;
    return false;
}

static mdot_status apply_bindings(const binder *b)
{
    const fe_options *options = b->context->options;
    for (size_t i = 0; i < options->binding_count; i++) {
        const mdot_dim_binding *binding = &options->bindings[i];
        int found = fe_names_find(b->names, binding->name);
        if (found == NO_SYMBOL && options->job && binding->same_as == NULL && strcmp(binding->name, "length") == 0) {
            *b->length = binding->value;
            continue;
        }
        if (found == NO_SYMBOL) {
            fe_warn(b->context, "%s: no input has a dimension '%s'%s", b->context->file, binding->name,
                    nearest_symbol(b, binding->name).text);
            continue;
        }
        bool is_batch = options->job && is_batch_name(binding->name);
        int64_t value = is_batch && options->batch > 0 ? options->batch : binding->value;
        *b->has_batch = *b->has_batch || is_batch;
        BS_TRY(binding->same_as != NULL ? merge(b, found, binding) : bind(b, &b->symbols[found], value));
    }
    return MDOT_OK;
}

/* Replaces the file's shape by a requested concrete one. */
static mdot_status apply_type(const binder *b, int input, const ir_type *requested)
{
    ir_type *type = &b->types[input];
    input_dims *dims = &b->dims[input];
    if (requested->dtype != MDOT_DTYPE_NONE && requested->dtype != type->dtype)
        return fail_input(b, input, MDOT_INVALID_ARGUMENT, "the requested element type differs from that of the file");
    if (type->rank >= 0 && type->rank != requested->rank)
        return fail_input(b, input, MDOT_INVALID_ARGUMENT,
                          "the rank of the requested shape differs from that of the file");
    for (int axis = 0; axis < requested->rank; axis++) {
        int64_t value = requested->dim[axis].offset;
        if (!ir_dim_is_number(requested->dim[axis]) || value < 0)
            return fail_input(b, input, MDOT_INVALID_ARGUMENT,
                              "the dimensions of the requested shape must be numbers of at least 0");
        if (type->rank >= 0 && dims->symbol[axis] != NO_SYMBOL)
            BS_TRY(bind(b, &b->symbols[dims->symbol[axis]], value));
        else if (type->rank >= 0 && dims->number[axis] != value)
            return fail_input(b, input, MDOT_INVALID_ARGUMENT, "the requested shape differs from that of the file");
    }
    if (type->rank >= 0) return MDOT_OK;
    type->rank = requested->rank;
    for (int axis = 0; axis < requested->rank; axis++) {
        dims->symbol[axis] = NO_SYMBOL;
        dims->number[axis] = requested->dim[axis].offset;
    }
    return MDOT_OK;
}

static mdot_status apply_types(const binder *b)
{
    const fe_options *options = b->context->options;
    if (options->input_types == NULL) return MDOT_OK;
    if (options->input_type_count != (size_t)b->count)
        return BS_INVALID(b->context->err, "%s: %zu input shapes were requested, but the model has %d inputs",
                          b->context->file, options->input_type_count, b->count);
    for (int i = 0; i < b->count; i++) {
        if (options->input_types[i].rank < 0) continue;
        BS_TRY(apply_type(b, i, &options->input_types[i]));
    }
    return MDOT_OK;
}

static bool is_open(const symbol *s) { return !s->bound && !s->merged; }

static mdot_status fail_symbols(const binder *b, const char *choice, const char *to_bind)
{
    char text[512];
    bs_join list;
    bs_join_begin(&list, text, sizeof text);
    for (int i = 0; i < b->symbol_count; i++)
        if (is_open(&b->symbols[i])) bs_join_add(&list, "'%s'", b->symbols[i].name);
    return BS_INVALID(
        b->context->err,
        "%s: %s symbolic: %s; bind %s to numbers (--dim NAME=NUMBER), or to each other where they are the "
        "same (--dim NAME=OTHER)",
        b->context->file, choice, text, to_bind);
}

int64_t fe_named_batch(const fe_names *bound)
{
    for (size_t i = 0; i < sizeof batch_names / sizeof *batch_names; i++) {
        int value = fe_names_find(bound, batch_names[i]);
        if (value > 0) return value;
    }
    return 0;
}

/* The number for a name like "past + sequence", whose parts are numbers and bound symbols; 0: unknown. */
static int64_t sum_of(const binder *b, const char *name)
{
    int64_t sum = 0;
    for (size_t size; *name != '\0'; name += size + strspn(name + size, " +")) {
        size = strcspn(name, " +");
        const char *part = ir_arena_strndup(b->context->scratch, name, size);
        int found = part != NULL ? fe_names_find(b->names, part) : NO_SYMBOL;
        bool is_bound = found != NO_SYMBOL && b->symbols[found].bound;
        int64_t value = is_bound                             ? b->symbols[found].value
                        : strspn(name, "0123456789") == size ? strtoll(name, NULL, 10)
                                                             : 0;
        if (value <= 0 || value > INT32_MAX) return 0;
        sum += value;
    }
    return sum;
}

/* Binds a job's length to its only open symbol, or to the only one whose name says so. */
static mdot_status bind_length(const binder *b)
{
    int last[2] = {NO_SYMBOL, NO_SYMBOL}, count[2] = {0}; /* of all open symbols; of those named as a length */
    for (int i = 0; i < b->symbol_count; i++) {
        const char *name = b->symbols[i].name;
        if (!is_open(&b->symbols[i]) || strchr(name, '+') != NULL) continue;
        bool says =
            strcasestr(name, "seq") != NULL || strcasestr(name, "len") != NULL || strcasestr(name, "tok") != NULL;
        for (int k = 0; k <= says; k++, last[k - 1] = i) count[k]++;
    }
    int best = count[1] > 0;
    if (count[best] > 1) return fail_symbols(b, "'length' may be each of the dimensions that are", "all but one");
    if (count[best] == 1) return bind(b, &b->symbols[last[best]], *b->length);
    fe_warn(b->context, "%s: no input has a dimension 'length'", b->context->file);
    return MDOT_OK;
}

/* Binds every symbol of a job. A batch of one loses nothing, because costs are counted per sample. */
static mdot_status settle_job(const binder *b)
{
    bool left = false;
    int first = b->count > 0 && b->types[0].rank > 0 ? b->dims[0].symbol[0] : NO_SYMBOL;
    for (int i = 0; i < b->symbol_count; i++) {
        symbol *s = &b->symbols[i];
        if (!is_open(s) || !(s->only_leading || i == first || is_batch_name(s->name))) continue;
        s->bound = *b->has_batch = true;
        s->value = b->context->options->batch > 0 ? b->context->options->batch : 1;
    }
    if (*b->length > 0) BS_TRY(bind_length(b));
    for (symbol *s = b->symbols; s < b->symbols + b->symbol_count; s++) {
        if (is_open(s)) s->bound = (s->value = sum_of(b, s->name)) > 0;
        left = left || is_open(s);
    }
    return left ? fail_symbols(b, "dimensions are", "them") : MDOT_OK;
}

static mdot_status choose_symbol(const binder *b, int *out_symbol)
{
    if (b->context->options->job) return settle_job(b);
    int last[2] = {NO_SYMBOL, NO_SYMBOL}, count[2] = {0}; /* of all open symbols; of those that cannot be a batch */
    for (int i = 0; i < b->symbol_count; i++) {
        if (!is_open(&b->symbols[i])) continue;
        for (int k = 0; k <= !b->symbols[i].only_leading; k++, last[k - 1] = i) count[k]++;
    }
    if (count[0] > 1 && count[1] != 1) return fail_symbols(b, "several dimensions are", "all but one");
    *out_symbol = last[count[0] > 1];
    for (int i = 0; i < b->symbol_count; i++) {
        symbol *s = &b->symbols[i];
        if (!is_open(s) || i == *out_symbol) continue;
        s->bound = true;
        s->value = 1;
        fe_warn(b->context, "%s: dimension '%s' is bound to 1, a batch of one", b->context->file, s->name);
    }
    return MDOT_OK;
}

static mdot_status settle_type(const binder *b, int input)
{
    ir_type *type = &b->types[input];
    if (type->rank < 0) return fail_input(b, input, MDOT_UNSUPPORTED, "has no shape");
    for (int axis = 0; axis < type->rank; axis++) {
        int s = b->dims[input].symbol[axis];
        if (s == NO_SYMBOL)
            type->dim[axis] = ir_dim_number(b->dims[input].number[axis]);
        else
            type->dim[axis] = b->symbols[s].bound ? ir_dim_number(b->symbols[s].value) : ir_dim_affine(1, 0);
    }
    if (ir_type_count_at(type, 1) < 0) return fail_input(b, input, MDOT_MALFORMED, "its dimensions are too large");
    return MDOT_OK;
}

/* Lists the bound symbols by name. Numbers too large for the map are left out, because lookups concern smaller shapes
 * only. */
static mdot_status list_bound(const binder *b, fe_names **out_bound)
{
    fe_names *bound = fe_names_create(b->context->scratch);
    if (bound == NULL) return fe_out_of_memory(b->context);
    for (int i = 0; i < b->symbol_count; i++) {
        const symbol *s = &b->symbols[i];
        if (!s->bound || s->value > INT32_MAX) continue;
        if (!fe_names_add(bound, s->name, (int)s->value)) return fe_out_of_memory(b->context);
    }
    *out_bound = bound;
    return MDOT_OK;
}

bool fe_stated_type(const Onnx__ValueInfoProto *info, const fe_names *bound, ir_type *out_type)
{
    const Onnx__TypeProto__Tensor *tensor = info->type != NULL ? info->type->tensor_type : NULL;
    if (tensor == NULL || tensor->shape == NULL || tensor->shape->n_dim > MDOT_MAX_RANK ||
        !is_element(tensor->elem_type))
        return false;
    ir_type type = {.dtype = (mdot_dtype)tensor->elem_type, .rank = (int)tensor->shape->n_dim};
    for (int i = 0; i < type.rank; i++) {
        const Onnx__TensorShapeProto__Dimension *dim = tensor->shape->dim[i];
        int64_t value = dim->has_dim_value ? dim->dim_value : fe_names_find(bound, fe_text(dim->dim_param));
        if (value < 0) return false;
        type.dim[i] = ir_dim_number(value);
    }
    if (ir_type_count_at(&type, 1) < 0) return false;
    *out_type = type;
    return true;
}

mdot_status fe_type_inputs(const fe_context *context, Onnx__ValueInfoProto *const *inputs, int count,
                           ir_type *out_types, const char **out_symbol, fe_names **out_bound, bool *out_has_batch)
{
    int64_t length = 0;
    binder b = {.context = context,
                .length = &length,
                .has_batch = out_has_batch,
                .inputs = inputs,
                .count = count,
                .types = out_types,
                .dims = IR_NEW_ARRAY(context->scratch, input_dims, count),
                .symbols = IR_NEW_ARRAY(context->scratch, symbol, (size_t)count * MDOT_MAX_RANK),
                .names = fe_names_create(context->scratch)};
    if (b.dims == NULL || b.symbols == NULL || b.names == NULL) return fe_out_of_memory(context);
    for (int i = 0; i < count; i++) BS_TRY(read_type(&b, i));
    BS_TRY(apply_bindings(&b));
    BS_TRY(apply_types(&b));
    int left = NO_SYMBOL;
    BS_TRY(choose_symbol(&b, &left));
    for (int i = 0; i < count; i++) BS_TRY(settle_type(&b, i));
    const char *name = left == NO_SYMBOL ? NULL : ir_arena_strdup(context->arena, b.symbols[left].name);
    if (left != NO_SYMBOL && name == NULL) return fe_out_of_memory(context);
    BS_TRY(list_bound(&b, out_bound));
    *out_symbol = name;
    return MDOT_OK;
}
