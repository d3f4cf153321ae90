/* cuda_expr.c — prints scalar expressions as CUDA C, and elements of buffers in any memory space.
 *
 * Indices are computed in int if every intermediate value fits, which ranges prove (cuda_stages.h), otherwise in long
 * long. An index that is a sum of loop variables times constants is printed as such, so padding and the tile's origin
 * cost nothing. */
#include "codegen/cuda/cuda_step.h"

#include "codegen/cuda/cuda_stages.h"
#include "codegen/cuda/cuda_text.h"
#include "codegen/cuda/memory_placement.h"
#include "plan/expr.h"

#include <inttypes.h>
#include <stdio.h>

/* Limit per step. Shared sub-trees are printed at each use, so their number may explode. */
enum { MAX_NODES = 20000 };

static const char *print(cu_function *f, const pl_expr *e, const char *acc);

/* A cast to 16 bits is a rounded float. */
static bool is_narrowing(const pl_expr *e)
{
    bool is_narrow = e->dtype == MDOT_DTYPE_F16 || e->dtype == MDOT_DTYPE_BF16;
    return is_narrow && e->op == PL_CAST && e->arg[0]->dtype == MDOT_DTYPE_F32;
}

bool cu_check_types(cu_function *f, const pl_expr *e)
{
    if (e == NULL) return true;
    if (cu_type_name(e->dtype) == NULL && !is_narrowing(e)) {
        cu_refuse(f, "CUDA code does not support values of type %s", mdot_dtype_name(e->dtype));
        return false;
    }
    for (int k = 0; k < pl_expr_operand_count(e->op); k++)
        if (!cu_check_types(f, e->arg[k])) return false;
    return true;
}

static bool fits_int(const cu_function *f, const pl_expr *e)
{
    if (e->dtype == MDOT_DTYPE_I32 || e->dtype == MDOT_DTYPE_BOOL) return true;
    cu_range s = cu_range_whole(&f->step->space, cu_range_of(&f->step->space, e));
    return s.low >= INT32_MIN && s.high <= INT32_MAX;
}

static bool is_local(const cu_location *location) { return location->kind == CU_SHARED; }

typedef struct affine {
    int64_t factor[PL_MAX_LOOPS], constant;
} affine;

static bool add_affine(const pl_expr *e, int64_t factor, affine *sum)
{
    int64_t product;
    switch (e->op) {
    case PL_CONST:
        return !__builtin_mul_overflow(e->n, factor, &product) &&
               !__builtin_add_overflow(sum->constant, product, &sum->constant);
    case PL_INDEX: return !__builtin_add_overflow(sum->factor[e->i], factor, &sum->factor[e->i]);
    case PL_ADD: return add_affine(e->arg[0], factor, sum) && add_affine(e->arg[1], factor, sum);
    case PL_SUB: return add_affine(e->arg[0], factor, sum) && add_affine(e->arg[1], -factor, sum);
    case PL_MUL: {
        int number = e->arg[0]->op == PL_CONST ? 0 : 1;
        if (e->arg[number]->op != PL_CONST) return false;
        return !__builtin_mul_overflow(e->arg[number]->n, factor, &product) &&
               add_affine(e->arg[1 - number], product, sum);
    }
    default: return false;
    }
}

static const char *loop_name(cu_function *f, int loop, bool is_local)
{
    if (is_local && loop == f->step->loop) return "r";
    return ir_arena_printf(f->arena, "i%d", loop);
}

static const char *affine_text(cu_function *f, const affine *sum, bool is_local)
{
    cu_text text = {0};
    for (int k = 0; k < f->step->space.loop_count; k++) {
        if (sum->factor[k] == 0) continue;
        const char *name = loop_name(f, k, is_local), *plus = text.size > 0 ? " + " : "";
        if (sum->factor[k] == 1)
            cu_put(&text, "%s%s", plus, name);
        else
            cu_put(&text, "%s%s * %" PRId64, plus, name, sum->factor[k]);
    }
    if (sum->constant != 0 || text.size == 0) cu_put(&text, "%s%" PRId64, text.size > 0 ? " + " : "", sum->constant);
    const char *copy = text.failed ? NULL : ir_arena_strdup(f->arena, text.bytes);
    cu_text_done(&text);
    return copy != NULL ? copy : "";
}

/* Pads rows to the pitch if whole rows can be separated from the rest of the sum; otherwise returns false. */
static bool pad_affine(const cu_function *f, const cu_location *location, affine *sum)
{
    if (location->pitch == location->width) return true;
    affine padded = {.constant = sum->constant / location->width * location->pitch + sum->constant % location->width};
    cu_range rest = cu_range_constant(sum->constant % location->width);
    if (sum->constant < 0) return false;
    for (int k = 0; k < f->step->space.loop_count; k++) {
        bool is_rows = sum->factor[k] % location->width == 0;
        padded.factor[k] = is_rows ? sum->factor[k] / location->width * location->pitch : sum->factor[k];
        cu_range loop = f->step->space.loop[k];
        if (!is_rows && loop.unit != 0) return false;
        if (!is_rows) rest = cu_range_add(rest, cu_range_scale(loop, sum->factor[k]));
    }
    if (rest.low < 0 || rest.high >= location->width) return false;
    *sum = padded;
    return true;
}

/* An element's place in a location, by the text of the index in the whole buffer. */
static const char *place_text(cu_function *f, const cu_location *location, const char *index)
{
    if (!is_local(location)) return index;
    if (location->unit > 0) index = ir_arena_printf(f->arena, "%s - t.first * %" PRId64, index, location->unit);
    if (location->pitch == location->width) return index;
    return ir_arena_printf(f->arena, "padded((int)(%s), %" PRId64 ", %" PRId64 ")", index, location->width,
                           location->pitch - location->width);
}

static const char *index_text(cu_function *f, const cu_location *location, const pl_expr *index)
{
    affine sum = {.constant = 0};
    bool is_sum = add_affine(index, 1, &sum), is_tile = is_local(location) && location->unit > 0;
    if (is_sum && !is_local(location) && fits_int(f, index)) return affine_text(f, &sum, false);
    if (is_sum && is_local(location) && pad_affine(f, location, &sum)) return affine_text(f, &sum, is_tile);
    return place_text(f, location, print(f, index, ""));
}

const char *cu_element(cu_function *f, int buffer, const cu_location *location, const pl_expr *index,
                       const char *name_hint)
{
    const char *pointer = cu_pointer(f, buffer, location, name_hint);
    return ir_arena_printf(f->arena, "%s[%s]", pointer, index_text(f, location, index));
}

const char *cu_element_at(cu_function *f, int buffer, const char *index, const char *name_hint)
{
    const cu_location *location = &cu_placement_of(f, buffer)->plain;
    const char *pointer = cu_pointer(f, buffer, location, name_hint);
    return ir_arena_printf(f->arena, "%s[%s]", pointer, place_text(f, location, index));
}

static void put_store(cu_function *f, const cu_location *location, const char *element, const char *value,
                      const char *indent)
{
    const char *after = ir_arena_printf(f->arena, location->is_half ? " = to_half(%s)" : " = %s", value);
    cu_put(&f->body, "%s", cu_store_text(f, location, element, "", after, indent));
}

static void put_copy(cu_function *f, int buffer, const cu_location *location, const char *index, const char *name_hint,
                     const char *value, const char *indent)
{
    if (location->kind == CU_UNPLACED) return;
    const char *pointer = cu_pointer(f, buffer, location, name_hint);
    put_store(f, location, ir_arena_printf(f->arena, "%s[%s]", pointer, place_text(f, location, index)), value, indent);
}

void cu_store_at(cu_function *f, int buffer, const char *index, const char *value, const char *indent)
{
    const cu_placement *placement = cu_placement_of(f, buffer);
    put_copy(f, buffer, &placement->plain, index, "out", value, indent);
    put_copy(f, buffer, &placement->half, index, "out_half", value, indent);
    put_copy(f, buffer, &placement->output, index, "result", value, indent);
}

const pl_expr *cu_matrix_index(cu_function *f, const pl_matrix *m)
{
    const pl_expr *row = pl_binary(f->arena, PL_MUL, pl_index(f->arena, 0), pl_dim(f->arena, m->row_stride));
    const pl_expr *start = pl_binary(f->arena, PL_ADD, pl_dim(f->arena, m->offset), row);
    return pl_binary(f->arena, PL_ADD, start, pl_index(f->arena, 1));
}

void cu_store(cu_function *f, int buffer, const pl_expr *index, const char *value, const char *indent)
{
    const cu_placement *placement = cu_placement_of(f, buffer);
    const cu_location *locations[] = {&placement->plain, &placement->half, &placement->output};
    static const char *const names[] = {"out", "out_half", "result"};
    for (int k = 0; k < 3; k++)
        if (locations[k]->kind != CU_UNPLACED)
            put_store(f, locations[k], cu_element(f, buffer, locations[k], index, names[k]), value, indent);
}

static const char *constant(cu_function *f, const pl_expr *e)
{
    return ir_dtype_is_float(e->dtype) ? cu_float_text(f->arena, e->f) : cu_integer_text(f->arena, e->n);
}

/* The step is passed to the functions that use it. */
static const char *step_name(cu_function *f)
{
    if (!f->has_step) {
        cu_put(&f->declarations, ", const int step");
        cu_put(&f->arguments, ", step");
    }
    f->has_step = true;
    return "step";
}

static const char *load(cu_function *f, const pl_expr *e)
{
    char name_hint[16];
    snprintf(name_hint, sizeof name_hint, "x%d", f->parameter_count);
    const cu_placement *placement = cu_placement_of(f, e->i);
    return cu_element(f, e->i, &placement->plain, e->arg[0], name_hint);
}

static const char *cast(cu_function *f, const pl_expr *e, const char *x)
{
    const pl_expr *source = e->arg[0];
    if (source->dtype == e->dtype) return x;
    if (is_narrowing(e))
        return ir_arena_printf(f->arena, e->dtype == MDOT_DTYPE_F16 ? "round_f16(%s)" : "round_bf16(%s)", x);
    if (e->dtype == MDOT_DTYPE_BOOL) return ir_arena_printf(f->arena, "(%s != 0)", x);
    if (e->dtype == MDOT_DTYPE_F32) return ir_arena_printf(f->arena, "(float)%s", x);
    if (ir_dtype_is_float(source->dtype)) /* saturates, because wider guarantees do not exist */
        return ir_arena_printf(f->arena, e->dtype == MDOT_DTYPE_I32 ? "to_int(%s)" : "to_long(%s)", x);
    bool is_int = e->dtype == MDOT_DTYPE_I32 || fits_int(f, e);
    return ir_arena_printf(f->arena, is_int ? "(int)%s" : "(long long)%s", x);
}

/* Operators printed as a function call, to a math function or one in the common text. */
static const char *const calls[PL_EXPR_OP_COUNT] = {
    [PL_ABS] = "absolute", [PL_SIGN] = "sign",         [PL_SQRT] = "sqrtf",     [PL_EXP] = "expf",
    [PL_LOG] = "logf",     [PL_SIN] = "sine",          [PL_COS] = "cosine",     [PL_TANH] = "tanhf",
    [PL_ERF] = "erff",     [PL_SIGMOID] = "sigmoid",   [PL_GELU] = "gelu",      [PL_GELU_TANH] = "gelu_tanh",
    [PL_FLOOR] = "floorf", [PL_CEIL] = "ceilf",        [PL_ROUND] = "rintf",    [PL_ISNAN] = "is_nan",
    [PL_ISINF] = "is_inf", [PL_FLOORDIV] = "floordiv", [PL_PYMOD] = "floormod", [PL_FMOD] = "remainder_of",
    [PL_POW] = "power",    [PL_MIN] = "least",         [PL_MAX] = "largest",
};
static const char *const infix[PL_EXPR_OP_COUNT] = {
    [PL_ADD] = "+", [PL_SUB] = "-", [PL_MUL] = "*", [PL_AND] = "&", [PL_OR] = "|",
    [PL_XOR] = "^", [PL_EQ] = "==", [PL_LT] = "<",  [PL_LE] = "<=",
};
/* For integers that may wrap, because signed C operators must not overflow. */
static const char *const wrapping[PL_EXPR_OP_COUNT] = {
    [PL_ADD] = "wrap_add",   [PL_SUB] = "wrap_sub",    [PL_MUL] = "wrap_mul", [PL_DIV] = "divide",
    [PL_SHL] = "shift_left", [PL_SHR] = "shift_right", [PL_NEG] = "wrap_neg",
};

static bool is_rounding(pl_expr_op op) { return op == PL_FLOOR || op == PL_CEIL || op == PL_ROUND; }

/* An operand, converted to long long if the operation uses that type. */
static const char *operand(cu_function *f, const pl_expr *e, int k, const char *acc, bool is_wide)
{
    const pl_expr *arg = e->arg[k];
    const char *text = print(f, arg, acc);
    return is_wide && arg->dtype == MDOT_DTYPE_I64 ? ir_arena_printf(f->arena, "(long long)%s", text) : text;
}

static bool any_wide(const cu_function *f, const pl_expr *e)
{
    bool wide = e->dtype == MDOT_DTYPE_I64 && !fits_int(f, e);
    for (int k = 0; k < pl_expr_operand_count(e->op); k++)
        wide = wide || (e->arg[k]->dtype == MDOT_DTYPE_I64 && !fits_int(f, e->arg[k]));
    return wide;
}

static const char *operation(cu_function *f, const pl_expr *e, const char *acc)
{
    int count = pl_expr_operand_count(e->op);
    mdot_dtype source_dtype = e->arg[e->op == PL_SELECT ? 1 : 0]->dtype;
    bool is_float = ir_dtype_is_float(source_dtype), is_wide = any_wide(f, e);
    const char *x[3] = {"", "", ""};
    for (int k = 0; k < count; k++) x[k] = operand(f, e, k, acc, is_wide && source_dtype == MDOT_DTYPE_I64);
    if (e->op == PL_SELECT) return ir_arena_printf(f->arena, "(%s ? %s : %s)", x[0], x[1], x[2]);
    if (e->op == PL_NOT) return ir_arena_printf(f->arena, e->dtype == MDOT_DTYPE_BOOL ? "!%s" : "~%s", x[0]);
    if (is_rounding(e->op) && !is_float) return x[0];
    if ((e->op == PL_ISNAN || e->op == PL_ISINF) && !is_float) return "false";
    if (e->op == PL_NEG && is_float) return ir_arena_printf(f->arena, "(-%s)", x[0]);
    if (e->op == PL_DIV && is_float) return ir_arena_printf(f->arena, "(%s / %s)", x[0], x[1]);
    /* Proven not to wrap: an index. The proof covers I64; int suffices if no operand is wide. */
    cu_range whole = cu_range_whole(&f->step->space, cu_range_of(&f->step->space, e));
    bool is_safe =
        is_float || (source_dtype == MDOT_DTYPE_I64 && cu_range_is_bounded(whole)) || source_dtype == MDOT_DTYPE_BOOL;
    if (infix[e->op] != NULL && (is_safe || wrapping[e->op] == NULL))
        return ir_arena_printf(f->arena, "(%s %s %s)", x[0], infix[e->op], x[1]);
    const char *name = wrapping[e->op] != NULL ? wrapping[e->op] : calls[e->op];
    if (name == NULL) {
        cu_refuse(f, "CUDA code does not support operator %s", pl_expr_op_name(e->op));
        return "";
    }
    return ir_arena_printf(f->arena, count == 1 ? "%s(%s)" : "%s(%s, %s)", name, x[0], x[1]);
}

static const char *print(cu_function *f, const pl_expr *e, const char *acc)
{
    const char *text = NULL;
    if (f->printed_nodes == MAX_NODES || f->status != MDOT_OK) {
        cu_refuse(f, "expressions of more than %d operators", MAX_NODES);
        return "";
    }
    f->printed_nodes++;
    switch (e->op) {
    case PL_CONST: return constant(f, e);
    case PL_INDEX: return loop_name(f, e->i, false);
    case PL_LENGTH: return "t.length";
    case PL_STEP: return step_name(f);
    case PL_ACC: return acc;
    case PL_LOAD: return load(f, e);
    case PL_CAST: text = cast(f, e, print(f, e->arg[0], acc)); break;
    default: text = operation(f, e, acc); break;
    }
    /* Computed in long long, but small enough that the following operations can use int. */
    bool narrows = e->dtype == MDOT_DTYPE_I64 && fits_int(f, e) && any_wide(f, e);
    if (text != NULL && narrows) text = ir_arena_printf(f->arena, "(int)(%s)", text);
    return text != NULL ? text : "";
}

const char *cu_expression(cu_function *f, const pl_expr *expr, const char *acc)
{
    return cu_check_types(f, expr) ? print(f, expr, acc) : "";
}

const char *cu_typed_expression(cu_function *f, const pl_expr *expr, const char *acc)
{
    const char *text = cu_expression(f, expr, acc);
    bool widens = expr->dtype == MDOT_DTYPE_I64 && fits_int(f, expr);
    return widens ? ir_arena_printf(f->arena, "(long long)%s", text) : text;
}
