/* test_inner_loops.c — inner loop instructions in the matrix kernels, counted in every shipped target's assembly:
 * multiplications, loads, and zero spills. The test executes no kernel code, so it counts all targets on every
 * machine. */
#include "codegen/codegen.h"
#include "codegen/cpu/cpu_images.h"
#include "ir/ops.h"
#include "ir/passes.h"
#include "plan/planner.h"
#include "tests/support/cg_harness.h"
#include "tests/support/graph_notation.h"
#include "tests/support/infer_graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void keep_text(void *user, const char *text) { *(char **)user = strdup(text); }

/* Returns a plan's kernel assembly on one target. The caller frees it. */
static char *assembly_of(const cg_cpu_target *target, const char *notation)
{
    ir_arena *arena = ir_arena_create(0);
    mdot_error err = {0};
    pl_plan *plan;
    ir_graph *graph = graph_from_notation(notation, 1024, arena);
    if (ir_infer(graph, &err) != MDOT_OK || ir_run_passes(graph, NULL, &err) != MDOT_OK) fail_msg("%s", err.message);
    if (pl_build(graph, arena, &plan, &err) != MDOT_OK) fail_msg("%s", err.message);
    char *text = NULL;
    cg_entry entry = {.name = "run", .graph = graph, .plan_count = 1, .plans = &plan};
    cg_options options = {.predictor_name = "loops", .dump = "asm", .dump_text = keep_text, .user = &text};
    cg_cpu_images images;
    mdot_status status = cg_cpu_make_images_for(&target, 1, &entry, 1, &options, arena, &images, &err);
    if (status != MDOT_OK) fail_msg("%s", err.message);
    cg_cpu_images_done(&images);
    ir_arena_destroy(arena);
    assert_non_null(text);
    return text;
}

typedef struct counts {
    int multiply_adds; /* multiply-add instructions */
    int tile_loads;    /* tileloadd */
    int reads;         /* x86-64: memory operands read; AArch64: registers loaded */
    int broadcasts;    /* AArch64: instructions that copy one element to a whole vector */
    int stack;         /* memory operands on the stack */
} counts;

static bool begins_with(const char *text, const char *with) { return strncmp(text, with, strlen(with)) == 0; }

static void count_x86_64(char *text, const char *multiply, counts *c)
{
    char *comment = strchr(text, '#');
    if (comment != NULL) *comment = '\0';
    const char *mnemonic = text + strspn(text, " \t");
    const char *memory = strchr(mnemonic, '('), *last = strrchr(mnemonic, ',');
    if (mnemonic[0] == '.' || begins_with(mnemonic, "lea")) return;
    c->multiply_adds += begins_with(mnemonic, multiply);
    c->tile_loads += begins_with(mnemonic, "tileloadd");
    c->stack += strstr(mnemonic, "(%rsp") != NULL;
    bool is_store = memory != NULL && mnemonic[0] == 'v' && last != NULL && strchr(last, ')') != NULL && memory > last;
    c->reads += memory != NULL && !is_store;
}

static void count_aarch64(const char *text, const char *multiply, counts *c)
{
    const char *mnemonic = text + strspn(text, " \t");
    if (mnemonic[0] == '.') return;
    c->multiply_adds += begins_with(mnemonic, multiply);
    c->broadcasts += begins_with(mnemonic, "dup") || begins_with(mnemonic, "ld1r");
    c->stack += strstr(mnemonic, "[sp") != NULL;
    c->reads += begins_with(mnemonic, "ldp") ? 2 : begins_with(mnemonic, "ld");
}

static void count_line(const char *line, size_t length, const cg_machine *machine, const char *multiply, counts *c)
{
    char text[256];
    if (length >= sizeof text) length = sizeof text - 1;
    memcpy(text, line, length);
    text[length] = '\0';
    if (machine == &cg_machine_aarch64)
        count_aarch64(text, multiply, c);
    else
        count_x86_64(text, multiply, c);
}

static bool is_conditional_jump(const char *mnemonic, const cg_machine *machine)
{
    if (machine == &cg_machine_x86_64) return mnemonic[0] == 'j' && !begins_with(mnemonic, "jmp");
    return begins_with(mnemonic, "b.") || begins_with(mnemonic, "cb") || begins_with(mnemonic, "tb");
}

/* Returns the line beginning with `label` and a colon. */
static const char *find_label(const char *text, const char *end, const char *label, size_t length)
{
    for (const char *line = text; line < end; line = strchr(line, '\n') + 1)
        if (strncmp(line, label, length) == 0 && line[length] == ':') return line;
    return NULL;
}

/* Counts the loop with the most multiplications among the loops without inner branches. A loop extends from a label to
 * a jump back to it. */
static counts busiest_loop(const char *text, const cg_machine *machine, const char *multiply)
{
    counts most = {0};
    for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1) {
        const char *at = line + strspn(line, " \t");
        if (!is_conditional_jump(at, machine)) continue;
        const char *label = strstr(at, ".LBB");
        if (label == NULL || label > strchr(at, '\n')) continue;
        const char *begin = find_label(text, line, label, strcspn(label, " \t\n#"));
        counts c = {0};
        bool has_label = false;
        for (const char *in = begin; in != NULL && in < line; in = strchr(in, '\n') + 1) {
            has_label = has_label || (in > begin && begins_with(in, ".LBB"));
            count_line(in, strcspn(in, "\n"), machine, multiply, &c);
        }
        if (!has_label && c.multiply_adds > most.multiply_adds) most = c;
    }
    return most;
}

static const char linear[] = "x = input f32[L,64]\nw = weights f32[64,256]\nb = weights f32[256]\n"
                             "h = mdot.Linear(x, w, b)\nr = Relu(h)\nu = weights f32[256,256]\n"
                             "y = mdot.Linear(r, u)\nreturn y\n";

/* Tiles: 6×4 vectors and four steps of k, 6×2 on v3; two steps of pairs; 2×2 matrix tiles. Each row element and each
 * panel vector is loaded once; v3 prefetches a line per step. On AArch64, a load takes four row steps, and products are
 * by element. bfmmla multiplies two pair steps for two rows, each half a vector. */
static void linear_kernels_load_each_factor_once_without_spills(void **state)
{
    (void)state;
    static const struct {
        mdot_cpu_isa level;
        cg_compute kernel_precision;
        const char *multiply;
        int multiply_adds, reads, tile_loads;
    } cases[] = {
        {MDOT_CPU_X86_64_V3, CG_FP32, "vfmadd", 4 * 6 * 2, 4 * (6 + 2 + 1), 0},
        {MDOT_CPU_X86_64_V4, CG_FP32, "vfmadd", 4 * 6 * 4, 4 * (6 + 4), 0},
        {MDOT_CPU_X86_64_V3, CG_BF16, "vfmadd", 4 * 6 * 2, 4 * (6 + 2), 0},
        {MDOT_CPU_X86_64_V4, CG_BF16, "vfmadd", 4 * 6 * 4, 4 * (6 + 4), 0},
        {MDOT_CPU_X86_64_BF16, CG_BF16, "vdpbf16ps", 2 * 6 * 4, 2 * (6 + 4), 0},
        {MDOT_CPU_X86_64_AMX, CG_BF16, "tdpbf16ps", 4, 4, 4},
        {MDOT_CPU_AARCH64_NEON, CG_FP32, "fmla", 4 * 6 * 4, 6 + 4 * 4, 0},
        {MDOT_CPU_AARCH64_NEON, CG_BF16, "fmla", 4 * 6 * 4, 6 + 4 * 4, 0},
        {MDOT_CPU_AARCH64_BF16, CG_BF16, "bfmmla", 6 * 4, 6 + 2 * 4, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const cg_cpu_target *target = cg_cpu_target_find(cases[i].level, cases[i].kernel_precision);
        char *text = assembly_of(target, linear);
        counts c = busiest_loop(text, target->machine, cases[i].multiply);
        free(text);
        if (c.multiply_adds != cases[i].multiply_adds || c.reads != cases[i].reads ||
            c.tile_loads != cases[i].tile_loads || c.broadcasts != 0 || c.stack != 0)
            fail_msg("%s, %s: %d products, %d reads, %d tile loads, %d broadcasts, %d on the stack", target->name,
                     cg_compute_name(cases[i].kernel_precision), c.multiply_adds, c.reads, c.tile_loads, c.broadcasts,
                     c.stack);
    }
}

static const char product[] = "x = input f32[L,64]\nz = input f32[L,64]\nt = Transpose(z) {perm=[1,0]}\n"
                              "y = MatMul(x, t)\nreturn y\n";

/* The sum runs along the rows of both factors, in a linear kernel's loop. */
static void products_of_two_inputs_load_each_factor_once_without_spills(void **state)
{
    (void)state;
    static const mdot_cpu_isa levels[] = {MDOT_CPU_X86_64_V3, MDOT_CPU_X86_64_V4, MDOT_CPU_AARCH64_NEON};
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        const cg_cpu_target *target = cg_cpu_target_find(levels[i], CG_FP32);
        char *text = assembly_of(target, product);
        bool by_element = target->by_element;
        counts c = busiest_loop(text, target->machine, by_element ? "fmla" : "vfmadd");
        free(text);
        assert_int_equal(c.multiply_adds, 4 * target->tile_rows * target->tile_vectors);
        assert_int_equal(c.reads, (by_element ? 1 : 4) * target->tile_rows + 4 * target->tile_vectors);
        assert_int_equal(c.broadcasts, 0);
        assert_int_equal(c.stack, 0);
    }
}

static const char attention[] = "x = input f32[1,L,128]\nm = input f32[1,1,1,L]\nw = weights f32[128,384]\n"
                                "p = mdot.Linear(x, w)\nsizes = constant i64[3] [128, 128, 128]\n"
                                "q, k, v = Split(p, sizes) {axis=-1}\n"
                                "a = Attention(q, k, v, m) {q_num_heads=4, kv_num_heads=4}\n"
                                "u = weights f32[128,128]\ny = mdot.Linear(a, u)\nreturn y\n";

/* Overlapping windows of the rows side by side read each element once: with 5 taps and 4 rows 8 rows instead of 20. A
 * vector of an image that is read by every second element is one load, and serves 6 or 8 filters. */
static void convolutions_load_each_element_once_without_spills(void **state)
{
    (void)state;
    static const char by_channel[] = "x = input f32[L,8,40,64]\nw = weights f32[8,1,5,5]\n"
                                     "y = Conv(x, w) {pads=[2, 2, 2, 2], group=8}\nreturn y\n";
    static const char strided[] = "x = input f32[L,3,40,128]\nw = weights f32[24,3,3,3]\n"
                                  "y = Conv(x, w) {pads=[1, 1, 1, 1], strides=[2, 2]}\nreturn y\n";
    static const struct {
        mdot_cpu_isa level;
        int rows, vectors, filters;
    } cases[] = {{MDOT_CPU_X86_64_V3, 5, 2, 6}, {MDOT_CPU_X86_64_V4, 4, 4, 8}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const cg_cpu_target *target = cg_cpu_target_find(cases[i].level, CG_FP32);
        char *text = assembly_of(target, by_channel);
        counts c = busiest_loop(text, target->machine, "vfmadd");
        free(text);
        assert_int_equal(c.multiply_adds, 5 * cases[i].rows * cases[i].vectors);
        assert_int_equal(c.reads, (cases[i].rows + 4) * cases[i].vectors + 5);
        assert_int_equal(c.stack, 0);
        text = assembly_of(target, strided);
        c = busiest_loop(text, target->machine, "vfmadd");
        free(text);
        assert_int_equal(c.multiply_adds % (2 * cases[i].filters), 0);
        assert_int_equal(c.reads, c.multiply_adds / (2 * cases[i].filters) * (2 + cases[i].filters));
        assert_int_equal(c.stack, 0);
    }
}

static int count_word(const char *from, const char *end, const char *word)
{
    int count = 0;
    for (const char *at = from; (at = strstr(at, word)) != NULL && at < end; at += strlen(word)) count++;
    return count;
}

typedef struct block {
    const char *begin, *end;
    int instructions, words;
} block;

/* The straight code piece, from a label or jump to the next, with the most `word`s. */
static block busiest_block(const char *text, const char *word)
{
    block most = {text, text, 0, 0}, now = {text, text, 0, 0};
    for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1) {
        const char *at = line + strspn(line, " \t");
        bool ends = *line == '.' || *at == 'j' || begins_with(at, "ret");
        now.end = line;
        if (ends && now.words > most.words) most = now;
        if (ends) now = (block){line, line, 0, 0};
        if (!ends && at > line && *at != '.' && *at != '#') now.instructions++;
        if (!ends) now.words += begins_with(at, word);
    }
    return most;
}

/* The pipeline item: 32 keys of 16 queries by heads with 32 channels, so 32 score vectors stand between four products.
 * A score is stored by a tile and loaded once; 2^score takes four instructions; the mask is an operand. */
static void amx_attention_computes_weights_between_products(void **state)
{
    (void)state;
    enum { VECTORS = 32, PRODUCTS = 4 };
    char *text = assembly_of(cg_cpu_target_find(MDOT_CPU_X86_64_AMX, CG_BF16), attention);
    block b = busiest_block(text, "vscalefps");
    assert_int_equal(b.words, VECTORS);
    assert_int_equal(count_word(b.begin, b.end, "vreduceps"), VECTORS);
    assert_int_equal(count_word(b.begin, b.end, "vfmadd"), 3 * VECTORS);
    assert_int_equal(count_word(b.begin, b.end, "{1to16}"), VECTORS);
    assert_int_equal(count_word(b.begin, b.end, "tdpbf16ps"), PRODUCTS);
    assert_int_equal(count_word(b.begin, b.end, "tilestored"), 2);
    assert_in_range(b.instructions, 0, 12 * VECTORS);
    assert_in_range(count_word(b.begin, b.end, "(%rsp"), 0, 8); /* addresses, and one vector of sums */
    const char *from = b.begin;
    for (int i = 0; i < PRODUCTS; i++) {
        const char *dot = strstr(from, "tdpbf16ps"), *next = strstr(dot + 1, "tdpbf16ps");
        if (i == PRODUCTS - 1) next = b.end;
        assert_int_equal(count_word(dot, next, "vscalefps"), VECTORS / PRODUCTS);
        from = next;
    }
    free(text);
}

static const char feed_forward[] = "x = input f32[L,128]\nw = weights f32[128,256]\nb = weights f32[256]\n"
                                   "h = mdot.Linear(x, w, b)\ng = Gelu(h)\nu = weights f32[256,128]\n"
                                   "y = mdot.Linear(g, u)\nreturn y\n";

/* A block has 64 vectors, and 128 channels have four steps: four vectors of GELU after each product. */
static void amx_linear_computes_gelu_between_products(void **state)
{
    (void)state;
    char *text = assembly_of(cg_cpu_target_find(MDOT_CPU_X86_64_AMX, CG_BF16), feed_forward);
    block b = busiest_block(text, "vpermps");
    assert_int_equal(b.words, 4 * 16);
    assert_int_equal(count_word(b.begin, b.end, "(%rsp"), 0);
    assert_in_range(b.instructions, 0, 21 * 16);
    assert_int_equal(count_word(b.begin, b.end, "tdpbf16ps"), 4);
    const char *from = b.begin;
    for (int i = 0; i < 4; i++) {
        const char *dot = strstr(from, "tdpbf16ps"), *next = i < 3 ? strstr(dot + 1, "tdpbf16ps") : b.end;
        assert_int_equal(count_word(dot, next, "vpermps"), 4 * 4);
        from = next;
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_kernels_load_each_factor_once_without_spills),
        cmocka_unit_test(products_of_two_inputs_load_each_factor_once_without_spills),
        cmocka_unit_test(convolutions_load_each_element_once_without_spills),
        cmocka_unit_test(amx_attention_computes_weights_between_products),
        cmocka_unit_test(amx_linear_computes_gelu_between_products),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
