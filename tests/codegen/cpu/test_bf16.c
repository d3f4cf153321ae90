/* test_bf16.c — bf16 on the CPU: single conversions and pair dot products, and whole plans for every kernel kind. The
 * plans are compared with an interpretation in bf16 and with the reference evaluation. */
#include "codegen/cpu/dot_products.h"
#include "ir/ops.h"
#include "plan/planner.h"
#include "tests/support/assertions.h"
#include "tests/support/cg_harness.h"
#include "tests/support/graph_notation.h"
#include "tests/support/infer_graph.h"
#include "tests/support/plan_interpreter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 16 };
typedef void (*on_vectors)(const void *a, const void *b, void *out, int64_t length);

/* narrow: out = bf16(a). products: out += dot product over pairs in a and b. */
static void build_values(cg_emitter *e)
{
    LLVMTypeRef floats = cg_vector(e, e->f32, LANES), words = cg_vector(e, e->i32, LANES);
    harness_begin_function(e, "narrow", 3);
    cg_store(e, cg_f32_to_bf16(e, cg_load(e, floats, cg_pointer(e, 0), 0)), cg_pointer(e, 2), 0);
    cg_end_function(e);
    harness_begin_function(e, "products", 3);
    LLVMValueRef a = cg_load(e, words, cg_pointer(e, 0), 0), b = cg_load(e, words, cg_pointer(e, 1), 0);
    LLVMValueRef sum = cg_bf16_dot(e, a, b, cg_load(e, floats, cg_pointer(e, 2), 0));
    cg_store(e, sum, cg_pointer(e, 2), 0);
    cg_end_function(e);
}

static float random_float(void) { return ldexpf((float)(rand() % 65536 - 32768) / 32768, rand() % 24 - 12); }

static void check_narrowing(const harness *h)
{
    on_vectors narrow = (on_vectors)(uintptr_t)harness_get(h, "narrow");
    float in[LANES] = {0, -0.0F, 1, -1, INFINITY, -INFINITY, NAN, 1.00390625F, 1.01171875F, 3e38F, 3.4e38F};
    for (int turn = 0; turn < 2000; turn++) {
        uint16_t out[LANES];
        for (int i = 0; turn > 0 && i < LANES; i++) in[i] = random_float();
        narrow(in, in, out, 0);
        for (int i = 0; i < LANES; i++) assert_int_equal(out[i], ir_f32_to_bf16(in[i]));
    }
}

static void check_multiplication(const harness *h)
{
    on_vectors products = (on_vectors)(uintptr_t)harness_get(h, "products");
    for (int turn = 0; turn < 2000; turn++) {
        uint16_t a[2 * LANES], b[2 * LANES];
        float sum[LANES], before[LANES];
        for (int i = 0; i < 2 * LANES; i++)
            a[i] = ir_f32_to_bf16(random_float()), b[i] = ir_f32_to_bf16(random_float());
        for (int i = 0; i < LANES; i++) before[i] = sum[i] = random_float();
        products(a, b, sum, 0);
        for (int i = 0; i < LANES; i++) {
            float want = fmaf(ir_bf16_to_f32(a[2 * i + 1]), ir_bf16_to_f32(b[2 * i + 1]), before[i]);
            want = fmaf(ir_bf16_to_f32(a[2 * i]), ir_bf16_to_f32(b[2 * i]), want);
            assert_compare(sum[i], ==, want);
        }
    }
}

static void emulation_equals_the_bf16_instructions(void **state)
{
    (void)state;
    int count;
    const cg_cpu_target *const *targets = harness_targets(&count);
    for (int t = 0; t < count; t++) {
        if (targets[t]->matmul < CG_MATMUL_BF16) continue;
        harness h;
        harness_begin_for(&h, targets[t]);
        build_values(&h.e);
        harness_load(&h);
        check_narrowing(&h);
        check_multiplication(&h);
        harness_end(&h);
    }
}

enum { MAX_LENGTH = 130, MAX_TENSORS = 4 };

typedef struct half_case {
    const char *name, *notation;
    double of_interpretation; /* the kernel rounds softmax weights before the division, the interpreter after it */
    double of_evaluation;
} half_case;

static const half_case cases[] = {
    {"two linears", /* the buffer between them has 16 bits and an odd k; a GELU near a tie may round to the other side */
     "x = input f32[L,40]\nw = weights f32[40,37]\nb = weights f32[37]\nh = mdot.Linear(x, w, b)\n"
     "g = Gelu(h)\nu = weights f32[37,70]\ny = mdot.Linear(g, u)\nreturn y\n",
     5e-4, 1e-2},
    {"a nest before a linear",
     "x = input f32[L,96]\nr = input f32[L,33]\ns = Sigmoid(x)\nt = Mul(s, x)\nw = weights f32[96,33]\n"
     "h = mdot.Linear(t, w)\ny = Add(h, r)\nreturn y\n",
     1e-5, 1e-2},
    {"a norm before a linear",
     "x = input f32[L,48]\ng = weights f32[48]\nb = weights f32[48]\nn = LayerNormalization(x, g, b)\n"
     "w = weights f32[48,64]\nh = mdot.Linear(n, w)\ny = Relu(h)\nreturn y\n",
     1e-5, 1e-2},
    {"a softmax before a linear",
     "x = input f32[L,50]\nn = Softmax(x) {axis=-1}\nw = weights f32[50,20]\ny = mdot.Linear(n, w)\nreturn y\n", 1e-5,
     1e-2},
    {"a running sum before a linear",
     "x = input f32[L,32]\naxis = constant i64[] [1]\nc = CumSum(x, axis)\nw = weights f32[32,32]\n"
     "y = mdot.Linear(c, w)\nreturn y\n",
     1e-5, 1e-2},
    {"few rows stay in f32",
     "x = input f32[L,32]\naxes = constant i64[1] [0]\nm = ReduceMean(x, axes) {keepdims=1}\nw = weights f32[32,32]\n"
     "y = mdot.Linear(m, w)\nreturn y\n",
     1e-5, 1e-5},
    {"a layer",
     "x = input f32[1,L,64]\ng = weights f32[64]\nn1 = LayerNormalization(x, g) {axis=-1}\n"
     "w = weights f32[64,192]\nqkv = mdot.Linear(n1, w)\nsizes = constant i64[3] [64, 64, 64]\n"
     "q, k, v = Split(qkv, sizes) {axis=-1}\na = Attention(q, k, v) {q_num_heads=2, kv_num_heads=2}\n"
     "wo = weights f32[64,64]\no = mdot.Linear(a, wo)\nh = Add(x, o)\nn2 = LayerNormalization(h, g) {axis=-1}\n"
     "w1 = weights f32[64,256]\nf1 = mdot.Linear(n2, w1)\nr = Gelu(f1)\nw2 = weights f32[256,64]\n"
     "f2 = mdot.Linear(r, w2)\ny = Add(h, f2)\nreturn y\n",
     1.5e-2, 2e-2},
};
enum { CASES = sizeof cases / sizeof cases[0] };

static double worst(const float *got, const ir_wide *want)
{
    double most = 0, largest = 1e-3;
    for (int64_t i = 0; i < want->count; i++) {
        most = fmax(most, fabs(got[i] - want->f[i]));
        largest = fmax(largest, fabs(want->f[i]));
    }
    return most / largest;
}

static void check_length(const half_case *c, const ir_graph *graph, const pl_plan *plan, const cg_cpu_target *target,
                         const harness_plan *code, int64_t length)
{
    static const int64_t cuts[] = {INT64_C(1) << 28, INT64_C(3) << 30};
    mdot_error err = {0};
    ir_arena *arena = ir_arena_create(0);
    ir_wide **wide = random_inputs(graph, length, 7, arena), **want = IR_NEW_ARRAY(arena, ir_wide *, MAX_TENSORS);
    ir_wide **rounded = IR_NEW_ARRAY(arena, ir_wide *, MAX_TENSORS);
    const ir_wide *const *in = (const ir_wide *const *)wide;
    const void *inputs[MAX_TENSORS];
    for (int i = 0; i < graph->input_count; i++) inputs[i] = ir_tensor_from_wide(arena, wide[i])->data;
    if (ir_evaluate(graph, in, arena, want, &err) != MDOT_OK) fail_msg("%s", err.message);
    if (pl_interpret_in(plan, MDOT_DTYPE_BF16, length, in, arena, rounded, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    float *out = calloc((size_t)want[0]->count, sizeof *out), *shared = calloc((size_t)want[0]->count, sizeof *out);
    assert_non_null(out);
    assert_non_null(shared);
    harness_call_plan(code, inputs, (void *[]){out}, length);
    harness_call_slices(code, inputs, (void *[]){shared}, length, cuts, 2);
    assert_memory_equal(out, shared, (size_t)want[0]->count * sizeof *out);
    double of_evaluation = worst(out, want[0]), of_interpretation = worst(out, rounded[0]);
    if (!(of_evaluation <= c->of_evaluation))
        fail_msg("%s, %s, length %d: off by %g", c->name, target->name, (int)length, of_evaluation);
    if (target->matmul > CG_MATMUL_BF16_WEIGHTS && !(of_interpretation <= c->of_interpretation))
        fail_msg("%s, %s, length %d: off by %g of its interpretation", c->name, target->name, (int)length,
                 of_interpretation);
    free(out);
    free(shared);
    ir_arena_destroy(arena);
}

static void every_kernel_kind_in_bf16_stays_within_its_bound(void **state)
{
    (void)state;
    static const int64_t lengths[] = {1, 7, 33, 64, 97, 130};
    int count;
    const cg_cpu_target *const *targets = harness_targets(&count);
    for (int i = 0; i < CASES; i++) {
        ir_arena *arena = ir_arena_create(0);
        mdot_error err = {0};
        pl_plan *plan;
        ir_graph *graph = graph_from_notation(cases[i].notation, MAX_LENGTH, arena);
        if (ir_infer(graph, &err) != MDOT_OK) fail_msg("%s", err.message);
        if (pl_build(graph, arena, &plan, &err) != MDOT_OK) fail_msg("%s", err.message);
        for (int t = 0; t < count; t++) {
            if (targets[t]->matmul == CG_MATMUL_F32) continue;
            harness_plan code;
            harness_load_plan_for(&code, plan, targets[t]);
            for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++)
                check_length(&cases[i], graph, plan, targets[t], &code, lengths[l]);
            harness_unload_plan(&code);
        }
        ir_arena_destroy(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(emulation_equals_the_bf16_instructions),
        cmocka_unit_test(every_kernel_kind_in_bf16_stays_within_its_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
