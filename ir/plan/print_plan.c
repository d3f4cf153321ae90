/* print_plan.c — prints expressions and plans as text, for --dump plan, golden tests and messages. */
#include "base/number.h"
#include "ir/ops/families.h"
#include "ir/plan/plan.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A string that grows by doubling in the arena; `failed` is set when memory is exhausted. */
typedef struct text {
    ir_arena *arena;
    char *bytes;
    size_t length, capacity;
    bool failed;
} text;

static void put(text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int wanted = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (wanted < 0 || t->failed) return;
    if (t->length + (size_t)wanted + 1 > t->capacity) {
        size_t capacity = 2 * t->capacity + (size_t)wanted + 256;
        char *grown = ir_arena_alloc(t->arena, capacity, 1);
        if (grown == NULL) {
            t->failed = true;
            return;
        }
        if (t->length) memcpy(grown, t->bytes, t->length);
        t->bytes = grown;
        t->capacity = capacity;
    }
    va_start(args, format);
    vsnprintf(t->bytes + t->length, t->capacity - t->length, format, args);
    va_end(args);
    t->length += (size_t)wanted;
}

static char *finish(text *t)
{
    if (t->bytes == NULL) put(t, "%s", "");
    return t->failed ? NULL : t->bytes;
}

static void put_dim(text *t, ir_dim d)
{
    char buffer[IR_DIM_TEXT_BYTES];
    put(t, "%s", ir_dim_text(d, NULL, buffer, sizeof buffer));
}

/* ---- Expressions ------------------------------------------------------------------------------------------------- */

static void put_expr(text *t, const pl_expr *e);

static void put_infix(text *t, const pl_expr *e, const char *sign)
{
    put(t, "(");
    put_expr(t, e->arg[0]);
    put(t, " %s ", sign);
    put_expr(t, e->arg[1]);
    put(t, ")");
}

static const char *infix_sign(const pl_expr *e)
{
    switch (e->op) {
    case PL_ADD:
        return "+";
    case PL_SUB:
        return "-";
    case PL_MUL:
        return "*";
    case PL_FLOORDIV:
        return "/";
    case PL_PYMOD:
        return "%";
    default:
        return NULL;
    }
}

enum { F32_DIGITS = 9 }; /* enough digits to distinguish any two values */

static void put_real(text *t, const char *word, double value, int digits)
{
    char buffer[BS_NUMBER_BYTES];
    put(t, "%s %s", word, bs_number_print(value, digits, buffer));
}

static void put_constant(text *t, const pl_expr *e)
{
    if (e->dtype == MDOT_DTYPE_I64)
        put(t, "%" PRId64, e->n);
    else if (ir_dtype_is_float(e->dtype))
        put_real(t, mdot_dtype_name(e->dtype), e->f, F32_DIGITS);
    else
        put(t, "%s %" PRId64, mdot_dtype_name(e->dtype), e->n);
}

static void put_call(text *t, const pl_expr *e)
{
    put(t, "%s", pl_expr_op_name(e->op));
    if (e->op == PL_CAST) put(t, " %s", mdot_dtype_name(e->dtype));
    for (int k = 0; k < pl_expr_operand_count(e->op); k++) {
        put(t, k ? ", " : "(");
        put_expr(t, e->arg[k]);
    }
    put(t, ")");
}

static void put_expr(text *t, const pl_expr *e)
{
    const char *sign = e->dtype == MDOT_DTYPE_I64 ? infix_sign(e) : NULL;
    switch (e->op) {
    case PL_CONST:
        put_constant(t, e);
        break;
    case PL_INDEX:
        put(t, "i%d", e->i);
        break;
    case PL_STEP:
        put(t, "step");
        break;
    case PL_LENGTH:
        put(t, "L");
        break;
    case PL_ACC:
        put(t, e->i ? "acc%d" : "acc", e->i);
        break;
    case PL_LOAD:
        put(t, "b%d[", e->i);
        put_expr(t, e->arg[0]);
        put(t, "]");
        break;
    default:
        if (sign != NULL)
            put_infix(t, e, sign);
        else
            put_call(t, e);
    }
}

char *pl_expr_print(const pl_expr *expr, ir_arena *arena)
{
    text t = {.arena = arena};
    put_expr(&t, expr);
    return finish(&t);
}

/* ---- Buffers ----------------------------------------------------------------------------------------------------- */

static void put_type(text *t, const ir_type *type)
{
    put(t, "%s[", mdot_dtype_name(type->dtype));
    for (int d = 0; d < type->rank; d++) {
        if (d) put(t, ",");
        put_dim(t, type->dim[d]);
    }
    put(t, "]");
}

static void put_buffer(text *t, int number, const pl_buffer *b)
{
    static const char *const kinds[] = {"input", "output", "weight", "scratch"};
    put(t, "b%d %s ", number, kinds[b->kind]);
    put_type(t, &b->type);
    put(t, " \"%s\"", b->name);
    if (b->kind == PL_WEIGHT && b->use == PL_MATRIX) put(t, " matrix");
    if (pl_is_half(b))
        put(t, " half");
    else if (b->reads & PL_READ_HALF && b->kind != PL_INPUT)
        put(t, " whole and half");
    if (b->kind == PL_SCRATCH) put(t, " at %" PRId64 " live %d-%d", b->offset_bytes, b->first_use, b->last_use);
    put(t, "\n");
}

/* ---- Kernels ----------------------------------------------------------------------------------------------------- */

static void put_matrix(text *t, const pl_matrix *m)
{
    put(t, "b%d[", m->buffer);
    if (!ir_dim_is(m->offset, 0)) {
        put_dim(t, m->offset);
        put(t, " + ");
    }
    put(t, "row*");
    put_dim(t, m->row_stride);
    put(t, " + col]");
}

static void put_named_dim(text *t, const char *name, ir_dim d)
{
    put(t, " %s ", name);
    put_dim(t, d);
}

static void put_epilogue(text *t, const pl_expr *epilogue)
{
    if (epilogue == NULL) return;
    put(t, "  epilogue ");
    put_expr(t, epilogue);
    put(t, "\n");
}

static void put_out(text *t, const char *name, const pl_matrix *m)
{
    if (m->buffer < 0) return;
    put(t, "  %s ", name);
    put_matrix(t, m);
    put(t, "\n");
}

static void put_linear(text *t, const pl_linear *k)
{
    put(t, "  rows ");
    put_dim(t, k->rows);
    put(t, " k %" PRId64 " columns %" PRId64 "\n  a ", k->k, k->columns);
    put_matrix(t, &k->a);
    put(t, "\n  weight b%d", k->weight);
    if (k->bias >= 0) put(t, " bias b%d", k->bias);
    put(t, "\n");
    put_epilogue(t, k->epilogue);
    put_out(t, "out", &k->out);
}

static void put_heads(text *t, const char *name, const pl_heads *h)
{
    put(t, "  %s b%d", name, h->buffer);
    put_named_dim(t, "offset", h->offset);
    put_named_dim(t, "batch", h->batch_stride);
    put_named_dim(t, "head", h->head_stride);
    put_named_dim(t, "row", h->row_stride);
    put(t, "\n");
}

static void put_attention(text *t, const pl_attention *k)
{
    put(t, "  batch ");
    put_dim(t, k->batch);
    put(t, " heads %" PRId64 " kv_heads %" PRId64, k->heads, k->kv_heads);
    put_named_dim(t, "queries", k->queries);
    put_named_dim(t, "keys", k->keys);
    put(t, " dim %" PRId64 " value_dim %" PRId64, k->dim, k->value_dim);
    put_real(t, " scale", k->scale, F32_DIGITS);
    if (k->softcap > 0) put_real(t, " softcap", k->softcap, F32_DIGITS);
    put(t, "%s\n", k->causal ? " causal" : "");
    put_heads(t, "q", &k->q);
    put_heads(t, "k", &k->k);
    put_heads(t, "v", &k->v);
    if (k->mask >= 0) {
        put(t, "  mask b%d", k->mask);
        put_named_dim(t, "batch", k->mask_batch);
        put_named_dim(t, "head", k->mask_head);
        put_named_dim(t, "query", k->mask_query);
        if (k->replaces < 0) put_real(t, " replaces", k->replaces, F32_DIGITS);
        put(t, "\n");
    }
    put_heads(t, "out", &k->out);
}

static void put_norm(text *t, const pl_norm *k)
{
    static const char *const modes[] = {"layer", "rms", "softmax", "log_softmax"};
    put(t, "  %s rows ", modes[k->mode]);
    put_dim(t, k->rows);
    put_named_dim(t, "columns", k->columns);
    if (k->mode == PL_NORM_LAYER || k->mode == PL_NORM_RMS) put_real(t, " epsilon", k->epsilon, 6);
    if (k->gamma >= 0) put(t, " gamma b%d", k->gamma);
    if (k->beta >= 0) put(t, " beta b%d", k->beta);
    put(t, "\n  input ");
    put_expr(t, k->input);
    put(t, "\n");
    put_epilogue(t, k->epilogue);
    put_out(t, "out", &k->out);
    put_out(t, "sum", &k->sum);
}

static const char *reducer_name(pl_reducer reducer)
{
    static const char *const names[] = {"none",         "sum",         "prod",         "max",        "min",
                                        "argmax_first", "argmax_last", "argmin_first", "argmin_last"};
    return names[reducer];
}

static void put_nest(text *t, const pl_nest *k)
{
    for (int i = 0; i < k->loop_count + k->reduce_count; i++) {
        put(t, i ? " " : "  ");
        put(t, "%s i%d<", i < k->loop_count ? "for" : reducer_name(k->reducer), i);
        put_dim(t, k->extent[i]);
    }
    if (k->loop_count + k->reduce_count) put(t, "\n");
    if (k->body != NULL) {
        put(t, "  body ");
        put_expr(t, k->body);
        put(t, "\n");
    }
    for (int i = 0; i < k->store_count; i++) {
        put(t, "  b%d[", k->store[i].buffer);
        put_expr(t, k->store[i].index);
        put(t, "] = ");
        put_expr(t, k->store[i].value);
        put(t, "\n");
    }
}

static void put_sequential(text *t, const pl_sequential *k)
{
    static const char *const names[] = {"cumulate", "top_k", "scatter_elements", "scatter_nd", "tensor_scatter"};
    const struct {
        bool on;
        const char *name;
    } flags[] = {{k->exclusive, "exclusive"},
                 {k->reverse, "reverse"},
                 {k->largest, "largest"},
                 {k->sorted, "sorted"},
                 {k->circular, "circular"}};
    put(t, "  %s axis %d", names[k->what], k->axis);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (flags[i].on) put(t, " %s", flags[i].name);
    if (k->reduction != PL_REDUCE_NONE) put(t, " %s", reducer_name(k->reduction));
    put(t, "\n  in");
    for (int i = 0; i < 4; i++) put(t, k->input[i] < 0 ? " -" : " b%d", k->input[i]);
    put(t, " out");
    for (int i = 0; i < 2; i++) put(t, k->output[i] < 0 ? " -" : " b%d", k->output[i]);
    put(t, "\n");
}

static void put_body(text *t, const pl_kernel *k);

static void put_recurrence(text *t, const pl_recurrence *k)
{
    put(t, "  for step<");
    put_dim(t, k->steps);
    put(t, "\n");
    for (int i = 0; i < k->kernel_count; i++) {
        put(t, "  %s\n", k->kernels[i].name);
        put_body(t, &k->kernels[i]);
    }
}

static void put_body(text *t, const pl_kernel *k)
{
    switch (k->kind) {
    case PL_LINEAR:
        put_linear(t, &k->linear);
        break;
    case PL_ATTENTION:
        put_attention(t, &k->attention);
        break;
    case PL_NORM:
        put_norm(t, &k->norm);
        break;
    case PL_NEST:
        put_nest(t, &k->nest);
        break;
    case PL_SEQUENTIAL:
        put_sequential(t, &k->sequential);
        break;
    case PL_RECURRENCE:
        put_recurrence(t, &k->recurrence);
        break;
    }
}

static void put_kernel(text *t, int number, const pl_kernel *k)
{
    put(t, "%d %s: %s", number, k->name, k->origin);
    if (k->is_rowwise) put(t, " | rowwise");
    if (k->unit_offset != 0) put(t, " of L%+" PRId64, k->unit_offset);
    put(t, "\n");
    put_body(t, k);
}

char *pl_print(const pl_plan *plan, ir_arena *arena)
{
    text t = {.arena = arena};
    put(&t, "plan L<=%" PRId64 " scratch %" PRId64 " kernels %d", plan->max_length, plan->scratch_bytes,
        plan->kernel_count);
    if (plan->most_items > 0) put(&t, " items %d", plan->most_items);
    put(&t, "\n");
    for (int k = 0; k < plan->buffer_count; k++) put_buffer(&t, k, &plan->buffers[k]);
    for (int k = 0; k < plan->kernel_count; k++) put_kernel(&t, k, &plan->kernels[k]);
    return finish(&t);
}
