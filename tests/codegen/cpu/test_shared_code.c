/* test_shared_code.c — buckets share equal kernels' code (kernel_signature.h), so the code must be independent of the
 * bucket length. Each kernel's code for a short bucket is compared with the code for a long one. */
#include "codegen/cpu/cpu_images.h"
#include "tests/support/graph_code.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHORT = 32, LONG = 1024 };

static void keep_text(void *user, const char *text) { *(char **)user = strdup(text); }

/* The module's code for these plans as LLVM's text. The caller frees it. */
static char *code_of(pl_plan *const *plans, int count, const cg_target *target, ir_arena *arena)
{
    char *text = NULL;
    cg_entry entry = {.name = "run", .plan_count = count, .plans = (pl_plan **)plans};
    cg_options options = {.predictor_name = "test",
                          .target_count = 1,
                          .targets = target,
                          .dump = "llvm",
                          .dump_text = keep_text,
                          .user = &text};
    cg_cpu_images images;
    mdot_error err = {0};
    if (cg_cpu_make_images(&entry, 1, &options, arena, &images, &err) != MDOT_OK) fail_msg("%s", err.message);
    cg_cpu_images_done(&images);
    assert_non_null(text);
    return text;
}

/* A function definition, without the numbers of attributes and metadata, which the module's other functions change.
 * NULL if the module lacks it. */
static char *definition_of(const char *text, const char *name)
{
    char start[256];
    snprintf(start, sizeof start, "void @%s(", name);
    for (const char *at = text; (at = strstr(at, "\ndefine ")) != NULL; at++) {
        const char *end = strchr(at + 1, '\n'), *found = strstr(at, start);
        if (found == NULL || found > end) continue;
        end = strstr(at, "\n}\n");
        char *copy = malloc((size_t)(end - found) + 1), *to = copy;
        for (; found < end; found++) {
            *to++ = *found;
            if (*found != '#' && *found != '!') continue;
            while (isdigit((unsigned char)found[1])) found++;
        }
        *to = '\0';
        return copy;
    }
    return NULL;
}

/* Compares each kernel in the graph. Returns the number of kernels shared by the buckets. */
static int count_shared(const char *notation, const cg_target *target)
{
    ir_arena *arena = ir_arena_create(0);
    pl_plan *plans[] = {graph_plan(notation, SHORT, arena), graph_plan(notation, LONG, arena)};
    char *small = code_of(&plans[0], 1, target, arena), *large = code_of(&plans[1], 1, target, arena);
    char *both = code_of(plans, 2, target, arena);
    int count = 0;
    for (const char *at = large; (at = strstr(at, "\ndefine ")) != NULL; at++) {
        char name[128], inserted[160];
        const char *begin = strchr(at, '@') + 1;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(begin, "("), begin);
        const char *suffix = strrchr(name, '.');
        if (strncmp(name, "run.n", 5) == 0) continue; /* the entry */
        assert_non_null(suffix);
        snprintf(inserted, sizeof inserted, "%.*s.n%d%s", (int)(suffix - name), name, LONG, suffix);
        char *in_small = definition_of(small, name), *in_large = definition_of(large, name);
        char *of_its_own = definition_of(both, inserted);
        if (in_small != NULL && of_its_own == NULL) {
            bool takes_tiles = target->number == MDOT_CPU_X86_64_AMX && strncmp(name, "attention.", 10) == 0;
            assert_true(!takes_tiles || strstr(in_large, "tdpbf16ps") != NULL);
            if (strcmp(in_small, in_large) != 0)
                fail_msg("the code of %s depends on the bucket's length:\n%s\n%s", name, in_small, in_large);
            count++;
        }
        free(in_small);
        free(in_large);
        free(of_its_own);
    }
    free(small);
    free(large);
    free(both);
    ir_arena_destroy(arena);
    return count;
}

/* Projections, because tiles multiply activations stored in bf16. */
#define HEADS(mask, attributes)                                                                                        \
    "x = input f32[1,L,128]\nwq = weights f32[128,128]\nwk = weights f32[128,128]\nwv = weights f32[128,128]\n"        \
    "q = MatMul(x, wq)\nk = MatMul(x, wk)\nv = MatMul(x, wv)\na = Attention(q, k, v" mask                              \
    ") {q_num_heads=4, kv_num_heads=4" attributes "}\nreturn a\n"

static const char *const graphs[] = {
    HEADS("", ""),
    "m = input f32[1,1,1,L]\n" HEADS(", m", ""),
    "m = input f32[1,1,L,L]\n" HEADS(", m", ""),
    HEADS("", ", is_causal=1"),
    "x = input f32[L,L]\ny = Softmax(x) {axis=1}\nreturn y\n",
    "x = input f32[L,64]\nz = input f32[64,L]\ny = MatMul(x, z)\nreturn y\n",
    "x = input f32[24,L]\nz = input f32[L,24]\ny = MatMul(x, z)\nreturn y\n",
    "x = input f32[L,64]\nw = weights f32[64,96]\nh = MatMul(x, w)\ny = Relu(h)\nreturn y\n",
    "x = input f32[L,64]\ny = Transpose(x) {perm=[1, 0]}\nreturn y\n",
    "x = input f32[L,8]\na = constant i64[] [0]\ny = CumSum(x, a)\nreturn y\n",
};

static void check_graphs(const cg_target *target)
{
    for (size_t i = 0; i < sizeof graphs / sizeof graphs[0]; i++)
        if (count_shared(graphs[i], target) == 0) fail_msg("the buckets share no kernel of\n%s", graphs[i]);
}

static void code_with_tiles_is_independent_of_the_bucket(void **state)
{
    (void)state;
    check_graphs(&(cg_target){.kind = MDOT_IMAGE_CPU, .number = MDOT_CPU_X86_64_AMX, .kernel_precision = CG_BF16});
}

static void code_with_vectors_is_independent_of_the_bucket(void **state)
{
    (void)state;
    check_graphs(&(cg_target){.kind = MDOT_IMAGE_CPU, .number = MDOT_CPU_X86_64_V4, .kernel_precision = CG_FP32});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(code_with_tiles_is_independent_of_the_bucket),
        cmocka_unit_test(code_with_vectors_is_independent_of_the_bucket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
