/* test_batch_items.c — items with unequal lengths in one call of mdot_run_many. The answers equal separate calls, on
 * every CPU level and in bf16. The tests also check which entries run items together. */
#include "codegen/artefact.h"
#include "compiler/compiler.h"
#include "mdot/mdot.h"
#include "plan/planner.h"
#include "tests/support/assertions.h"
#include "tests/support/graph_notation.h"
#include "tests/support/process.h"
#include "tests/support/shard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ATTENTION "{q_num_heads=2, kv_num_heads=2}\n"

/* In 40-row buckets these are several groups, some full, and one with a single item. They fill a bucket of 256 rows. */
static const int64_t lengths[] = {1, 5, 7, 1, 16, 2, 31, 9, 40, 13, 3, 3, 20, 6, 4, 1, 1, 11, 24, 8, 30, 20};
enum { ITEMS = sizeof lengths / sizeof lengths[0], BUCKET = 40, LARGE_BUCKET = 256, MAX_TENSORS = 4, GUARD = 16 };

/* Operators between kernels over the rows of all items and kernels over separate items. */
static const struct {
    const char *name, *notation;
    bool is_taken_together;
} entries[] = {
    {"encoder",
     "x = input f32[1,L,8]\nm = input bool[1,1,1,L]\nw = weights f32[8,32]\nb = weights f32[32]\n"
     "h = mdot.Linear(x, w, b)\nwq = weights f32[32,32]\nwk = weights f32[32,32]\nwv = weights f32[32,32]\n"
     "q = mdot.Linear(h, wq)\nk = mdot.Linear(h, wk)\nv = mdot.Linear(h, wv)\n"
     "a = Attention(q, k, v, m) " ATTENTION "wo = weights f32[32,32]\no = mdot.Linear(a, wo)\nr = Add(h, o)\n"
     "g = weights f32[32]\nn = LayerNormalization(r, g)\nw1 = weights f32[32,48]\nf = mdot.Linear(n, w1)\n"
     "e = Gelu(f)\nw2 = weights f32[48,32]\nd = mdot.Linear(e, w2)\ns = Add(r, d)\naxes = constant i64[1] [1]\n"
     "p = ReduceMean(s, axes) {keepdims=0}\nwh = weights f32[32,1]\nt = mdot.Linear(p, wh)\nreturn t, s\n",
     true},
    {"token",
     "x = input f32[1,L,16]\nc = weights f32[1,1,16]\nw = weights f32[16,32]\nu = mdot.Linear(x, w)\n"
     "w0 = weights f32[1,1,32]\nh = Concat(w0, u) {axis=1}\nwq = weights f32[32,32]\nq = mdot.Linear(h, wq)\n"
     "a = Attention(q, q, h) " ATTENTION "g = weights f32[32]\nn = LayerNormalization(a, g)\n"
     "w1 = weights f32[32,48]\nf = mdot.Linear(n, w1)\ne = Relu(f)\nw2 = weights f32[48,32]\nd = mdot.Linear(e, w2)\n"
     "zero = constant i64[1] [0]\none = constant i64[1] [1]\nt = Slice(d, zero, one, one)\nreturn t, d\n",
     true},
    {"traits",
     "x = input f32[L,8]\nc = input f32[1,24]\nw = weights f32[8,24]\nh = mdot.Linear(x, w)\nf = Mul(h, c)\n"
     "w1 = weights f32[24,24]\ng = mdot.Linear(f, w1)\ns = Tanh(c)\nwc = weights f32[24,24]\ns2 = mdot.Linear(s, wc)\n"
     "k = Add(g, s2)\nw2 = weights f32[24,96]\ne = mdot.Linear(k, w2)\n"
     "w3 = weights f32[96,7]\ny = mdot.Linear(e, w3)\nz = Add(k, s)\nreturn y, z, s2\n",
     true},
    {"bias",
     "x = input f32[1,L,32]\nw = weights f32[32,32]\nq = mdot.Linear(x, w)\n"
     "d = input f32[1,2,L,L]\nb = Tanh(d)\na = Attention(q, q, x, b) " ATTENTION
     "w1 = weights f32[32,512]\nh = mdot.Linear(a, w1)\ng = Gelu(h)\nw2 = weights f32[512,32]\n"
     "i = mdot.Linear(g, w2)\n"
     "c = Attention(i, x, i, b) " ATTENTION "w3 = weights f32[32,32]\ny = mdot.Linear(c, w3)\nreturn y, b\n",
     true},
    {"convolution",
     "x = input f32[1,16,L]\nk = weights f32[32,16,3]\nc = Conv(x, k) {pads=[1,1]}\nr = Relu(c)\n"
     "t = Transpose(r) {perm=[0,2,1]}\nw = weights f32[32,64]\nh = mdot.Linear(t, w)\ng = Gelu(h)\n"
     "w2 = weights f32[64,64]\ni = mdot.Linear(g, w2)\ns = Softmax(i)\nreturn s, c\n",
     true},
    {"within",
     "x = input f32[L,3,32]\nw = weights f32[32,32]\nq = mdot.Linear(x, w)\na = Attention(q, q, x) " ATTENTION
     "w1 = weights f32[32,48]\nh = mdot.Linear(a, w1)\ng = Gelu(h)\naxes = constant i64[1] [1]\n"
     "y = ReduceSum(g, axes) {keepdims=0}\nreturn y\n",
     true},
    {"places",
     "x = input f32[L,16]\ni = input i64[L]\nt = weights f32[9,16]\nz = constant i64[] [0]\ne = Gather(t, i) {axis=0}\n"
     "p = weights f32[64,16]\nsh = Shape(x) {end=1}\none = constant i64[1] [1]\nzero = constant i64[1] [0]\n"
     "pl = Slice(p, zero, sh, zero, one)\nh = Add(x, e)\nj = Add(h, pl)\nw = weights f32[16,33]\n"
     "k = mdot.Linear(j, w)\nax = constant i64[] [0]\ns = CumSum(k, ax)\nw2 = weights f32[33,33]\n"
     "y = mdot.Linear(s, w2)\nm = Max(y, k)\nreturn m, i\n",
     true},
    {"images",
     "x = input f32[L,16,3,3]\nk = weights f32[32,16,3,3]\nc = Conv(x, k) {pads=[1,1,1,1]}\nr = Relu(c)\n"
     "k2 = weights f32[5,32,2,2]\nd = Conv(r, k2) {strides=[2,1], dilations=[1,2]}\nreturn d\n",
     true},
    {"dilated", /* windows slide over the units, but the other linears run items together */
     "x = input f32[1,16,L]\nk = weights f32[32,16,3]\nc = Conv(x, k) {pads=[2,2], dilations=[2]}\nr = Relu(c)\n"
     "t = Transpose(r) {perm=[0,2,1]}\nw = weights f32[32,64]\nh = mdot.Linear(t, w)\ng = Gelu(h)\n"
     "w2 = weights f32[64,64]\ni = mdot.Linear(g, w2)\nreturn i, c\n",
     true},
    {"strided", /* the joint row count of several items differs from the sum */
     "x = input f32[1,16,L]\nk = weights f32[32,16,3]\nc = Conv(x, k) {pads=[1,1], strides=[2]}\n"
     "t = Transpose(c) {perm=[0,2,1]}\nw = weights f32[32,64]\nh = mdot.Linear(t, w)\nreturn h\n",
     false},
    {"padding", /* adds more positions than a bucket has, so that two items never fit */
     "x = input f32[1,16,L]\nk = weights f32[32,16,3]\nc = Conv(x, k) {pads=[44,44], dilations=[22]}\n"
     "t = Transpose(c) {perm=[0,2,1]}\nw = weights f32[32,64]\nh = mdot.Linear(t, w)\nreturn h\n",
     false},
    {"across",
     "x = input f32[1,L,32]\na = Attention(x, x, x) " ATTENTION "g = weights f32[32]\n"
     "n = LayerNormalization(a, g)\nreturn n\n",
     false},
    {"none", "x = input f32[4,8]\nw = weights f32[8,8]\ny = mdot.Linear(x, w)\nreturn y\n", false},
};
enum { ENTRIES = sizeof entries / sizeof entries[0] };

static char *folder, *artefact;
static const ir_graph *graphs[ENTRIES];
static ir_arena *arena;

/* Compiles the first `count` entries. */
static void compile(int count, int64_t bucket, const char *target, const char *kernel_precision)
{
    static const co_hooks silent;
    cg_entry planned[ENTRIES];
    mdot_error err = {0};
    co_targets targets;
    if (co_parse_targets(&target, 1, kernel_precision, &targets, &err) != MDOT_OK) fail_msg("%s", err.message);
    for (int e = 0; e < count; e++) {
        ir_graph *graph = graph_from_notation(entries[e].notation, INT64_MAX, arena);
        if (strstr(entries[e].notation, "L,") == NULL && strstr(entries[e].notation, "L]") == NULL)
            graph->symbol = NULL;
        if (co_plan_entry(entries[e].name, graph, &bucket, 1, false, &silent, arena, &planned[e], &err) != MDOT_OK)
            fail_msg("%s: %s", entries[e].name, err.message);
        graphs[e] = planned[e].graph;
    }
    const cg_options options = {
        .predictor_name = "items", .target_count = targets.count, .targets = targets.target, .in_process = true};
    if (cg_write_artefact(planned, count, &options, artefact, arena, &err) != MDOT_OK) fail_msg("%s", err.message);
}

static int setup(void **state)
{
    (void)state;
    folder = process_make_folder();
    assert_compare(asprintf(&artefact, "%s/items.mdot", folder), >, 0);
    arena = ir_arena_create(0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    ir_arena_destroy(arena);
    free(artefact);
    process_remove_folder(folder);
    return 0;
}

typedef struct call {
    int64_t length;
    const void *inputs[MAX_TENSORS];
    unsigned char *alone[MAX_TENSORS], *together[MAX_TENSORS];
    size_t bytes[MAX_TENSORS];
} call;

static void prepare(call *c, const ir_graph *graph, int64_t length, uint64_t seed)
{
    ir_wide **wide = random_inputs(graph, length, seed, arena);
    c->length = graph->symbol != NULL ? length : 0;
    for (int i = 0; i < graph->input_count; i++) c->inputs[i] = ir_tensor_from_wide(arena, wide[i])->data;
    for (int o = 0; o < graph->output_count; o++) {
        const ir_type *type = &graph->outputs[o]->type;
        c->bytes[o] = (size_t)ir_type_count_at(type, length) * mdot_dtype_size_bytes(type->dtype);
        c->alone[o] = malloc(c->bytes[o] + GUARD);
        c->together[o] = malloc(c->bytes[o] + GUARD);
        assert_non_null(c->alone[o]);
        assert_non_null(c->together[o]);
        memset(c->together[o], 0x5a, c->bytes[o] + GUARD);
    }
}

static void compare(const call *c, const ir_graph *graph, const char *where, int item)
{
    for (int o = 0; o < graph->output_count; o++) {
        if (memcmp(c->alone[o], c->together[o], c->bytes[o]) != 0)
            fail_msg("%s: output %d of item %d, of length %d, differs", where, o, item, (int)c->length);
        for (int i = 0; i < GUARD; i++) assert_int_equal(c->together[o][c->bytes[o] + (size_t)i], 0x5a);
        free(c->alone[o]);
        free(c->together[o]);
    }
}

static void check_entry(mdot_context *context, size_t e, const char *where)
{
    static call calls[ITEMS];
    mdot_item items[ITEMS];
    mdot_error err = {0};
    for (int i = 0; i < ITEMS; i++) {
        prepare(&calls[i], graphs[e], lengths[i], (uint64_t)i + 1);
        if (mdot_run_ordered(context, e, calls[i].length, calls[i].inputs, (void *const *)calls[i].alone, &err) !=
            MDOT_OK)
            fail_msg("%s: %s", where, err.message);
        items[i] = (mdot_item){calls[i].length, calls[i].inputs, (void *const *)calls[i].together};
    }
    if (mdot_run_many(context, e, items, ITEMS, &err) != MDOT_OK) fail_msg("%s: %s", where, err.message);
    for (int i = 0; i < ITEMS; i++) compare(&calls[i], graphs[e], where, i);
}

/* Returns NULL if the machine lacks the level. */
static mdot_context *open_level(const char *level, uint32_t threads)
{
    mdot_predictor *predictor;
    mdot_context *context;
    mdot_error err = {0};
    const mdot_open_options options = {.struct_size = sizeof options, .cpu_isa = level, .device = "cpu"};
    mdot_status status = mdot_predictor_open(artefact, &options, &predictor, &err);
    if (status == MDOT_INCOMPATIBLE) {
        print_message("%s\n", err.message);
        return NULL;
    }
    if (status != MDOT_OK) fail_msg("%s", err.message);
    const mdot_context_options with = {.struct_size = sizeof with, .threads = threads};
    assert_int_equal(mdot_context_create_with(predictor, &with, &context, &err), MDOT_OK);
    mdot_predictor_close(predictor); /* the context keeps the predictor alive */
    return context;
}

static void check_level(int count, const char *level, uint32_t threads)
{
    mdot_context *context = open_level(level, threads);
    for (int e = 0; context != NULL && e < count; e++) {
        char where[64];
        snprintf(where, sizeof where, "%s, %s", entries[e].name, level);
        check_entry(context, (size_t)e, where);
    }
    mdot_context_destroy(context);
}

static void items_match_single_calls(void **state)
{
    (void)state;
    compile(ENTRIES, BUCKET, "cpu:x86-64-v3", "fp32");
    check_level(ENTRIES, "x86-64-v3", 1);
}

static void every_level_batches_items(void **state)
{
    (void)state;
    compile(1, BUCKET, "cpu", "cpu=bf16");
    check_level(1, "x86-64-v3", 1);
    check_level(1, "x86-64-v4", 1);
    check_level(1, "x86-64-bf16", 1);
    check_level(1, "x86-64-amx", 1);
}

/* Calls of 256 rows are shared. The result is the same for any distribution over threads. */
static void threads_share_batched_items(void **state)
{
    (void)state;
    compile(1, LARGE_BUCKET, "cpu:x86-64-v3", "fp32");
    check_level(1, "x86-64-v3", 3);
}

static void entries_report_their_batch_capacity(void **state)
{
    (void)state;
    static const co_hooks silent;
    const int64_t bucket = BUCKET;
    for (int e = 0; e < ENTRIES - 1; e++) {
        mdot_error err = {0};
        cg_entry entry;
        ir_graph *graph = graph_from_notation(entries[e].notation, INT64_MAX, arena);
        assert_int_equal(co_plan_entry("run", graph, &bucket, 1, false, &silent, arena, &entry, &err), MDOT_OK);
        if ((entry.plans[0]->most_items > 1) != entries[e].is_taken_together)
            fail_msg("%s takes %d items together:\n%s", entries[e].name, entry.plans[0]->most_items,
                     pl_print(entry.plans[0], arena));
    }
}

static void a_wrong_item_is_named_and_no_item_runs(void **state)
{
    (void)state;
    compile(1, BUCKET, "cpu:x86-64-v3", "fp32");
    mdot_context *context = open_level("x86-64-v3", 1);
    if (context == NULL) skip();
    mdot_error err = {0};
    float x[8] = {0}, t[1] = {5}, s[32] = {5};
    bool m[1] = {true};
    const void *inputs[] = {x, m};
    void *outputs[] = {t, s};
    mdot_item items[] = {{1, inputs, outputs}, {BUCKET + 1, inputs, outputs}};
    assert_int_equal(mdot_run_many(context, 0, items, 2, &err), MDOT_OUT_OF_RANGE);
    assert_string_equal(err.message, "item 1: entry encoder takes lengths from 1 to 40; the length is 41");
    items[1] = (mdot_item){1, inputs, NULL};
    assert_int_equal(mdot_run_many(context, 0, items, 2, &err), MDOT_INVALID_ARGUMENT);
    assert_string_equal(err.message, "item 1: inputs or outputs is NULL");
    assert_compare(t[0], ==, 5);
    assert_compare(s[0], ==, 5);
    assert_int_equal(mdot_run_many(context, 0, NULL, 0, &err), MDOT_OK);
    mdot_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_match_single_calls),
        cmocka_unit_test(every_level_batches_items),
        cmocka_unit_test(threads_share_batched_items),
        cmocka_unit_test(entries_report_their_batch_capacity),
        cmocka_unit_test(a_wrong_item_is_named_and_no_item_runs),
    };
    return shard_run_group_tests(tests, setup, teardown);
}
