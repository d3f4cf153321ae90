/* The images from cg_cpu_make_images: shared kernels, names, entry functions, refusals. */
#include "codegen/cpu/cpu_images.h"
#include "tests/support/assertions.h"
#include "tests/support/plan_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

static const pl_expr *load(plan_fixture *f, int buffer)
{
    return pl_load(f->arena, buffer, f->buffers[buffer].type.dtype, pl_index(f->arena, 0));
}

/* out[i] = in[i] + addend */
static void add_number(plan_fixture *f, int in, int out, double addend)
{
    const pl_expr *sum = pl_binary(f->arena, PL_ADD, load(f, in), pl_const_f(f->arena, MDOT_DTYPE_F32, addend));
    plan_nest(f, (pl_nest){.loop_count = 1,
                           .extent = {PLAN_L},
                           .store_count = 1,
                           .store = {{.buffer = out, .index = pl_index(f->arena, 0), .value = sum}}});
}

static int add_scratch(plan_fixture *f, int64_t offset_bytes)
{
    int buffer = plan_output(f, MDOT_DTYPE_F32, PLAN_SHAPE(PLAN_L));
    f->output_count--;
    f->buffers[buffer].kind = PL_SCRATCH;
    f->buffers[buffer].offset_bytes = offset_bytes;
    return buffer;
}

/* in → scratch → scratch → out, adding `first`, 1 and 1 */
static void build_chain(plan_fixture *f, int64_t max_length, double first)
{
    plan_begin(f, max_length);
    int in = plan_input(f, MDOT_DTYPE_F32, PLAN_SHAPE(PLAN_L)),
        out = plan_output(f, MDOT_DTYPE_F32, PLAN_SHAPE(PLAN_L));
    int64_t bytes = (max_length * 4 + 63) / 64 * 64;
    int a = add_scratch(f, 0), b = add_scratch(f, bytes);
    f->plan.scratch_bytes = 2 * bytes;
    add_number(f, in, a, first);
    add_number(f, a, b, 1);
    add_number(f, b, out, 1);
}

typedef struct text_sink {
    char *text;
} text_sink;

static void keep_text(void *user, const char *text) { ((text_sink *)user)->text = strdup(text); }

static mdot_status compile(plan_fixture *const *plans, int count, mdot_cpu_isa level, const char *dump, char **out_text,
                           mdot_error *err)
{
    pl_plan *list[4];
    for (int p = 0; p < count; p++) list[p] = &plans[p]->plan;
    text_sink sink = {NULL};
    cg_entry entry = {.name = "predict", .plan_count = count, .plans = list};
    cg_target target = {.kind = MDOT_IMAGE_CPU, .number = level};
    cg_options options = {.predictor_name = "test",
                          .target_count = 1,
                          .targets = &target,
                          .dump = dump,
                          .dump_text = keep_text,
                          .user = &sink};
    cg_cpu_images images;
    mdot_status status = cg_cpu_make_images(&entry, 1, &options, plans[0]->arena, &images, err);
    cg_cpu_images_done(&images);
    *out_text = sink.text;
    return status;
}

static int occurrences(const char *text, const char *word)
{
    int count = 0;
    for (; (text = strstr(text, word)) != NULL; text += strlen(word)) count++;
    return count;
}

static void equal_kernels_share_one_function(void **state)
{
    (void)state;
    plan_fixture *small = malloc(sizeof *small), *large = malloc(sizeof *large);
    build_chain(small, 32, 1);
    build_chain(large, 64, 1);
    mdot_error err;
    char *text;
    assert_int_equal(compile((plan_fixture *[]){small, large}, 2, MDOT_CPU_X86_64_V3, "llvm", &text, &err), MDOT_OK);
    assert_int_equal(occurrences(text, "\ndefine"), 1 + 2); /* the kernel and two entries */
    assert_int_equal(occurrences(text, "@k0.v3 ="), 0);
    assert_int_equal(occurrences(text, "@k1.v3 = hidden alias"), 1);
    assert_int_equal(occurrences(text, "@k2.v3 = hidden alias"), 1);
    assert_non_null(strstr(text, "@predict.n32.v3"));
    assert_non_null(strstr(text, "@predict.n64.v3"));
    free(text);
    plan_end(small);
    plan_end(large);
    free(small);
    free(large);
}

static void different_kernels_of_one_name_get_a_bucket_suffix(void **state)
{
    (void)state;
    plan_fixture *small = malloc(sizeof *small), *large = malloc(sizeof *large);
    build_chain(small, 32, 2);
    build_chain(large, 64, 3);
    mdot_error err;
    char *text;
    assert_int_equal(compile((plan_fixture *[]){small, large}, 2, MDOT_CPU_X86_64_V4, "llvm", &text, &err), MDOT_OK);
    assert_int_equal(occurrences(text, "void @k0.v4("), 1 + 1); /* one definition and one call */
    assert_int_equal(occurrences(text, "void @k0.n64.v4("), 1 + 1);
    free(text);
    plan_end(small);
    plan_end(large);
    free(small);
    free(large);
}

static void dumping_assembly_still_makes_the_object(void **state)
{
    (void)state;
    plan_fixture *f = malloc(sizeof *f);
    build_chain(f, 32, 1);
    mdot_error err;
    char *text;
    assert_int_equal(compile(&f, 1, MDOT_CPU_X86_64_V4, "asm", &text, &err), MDOT_OK);
    assert_non_null(strstr(text, "zmm")); /* the vectors have the level's full width */
    free(text);
    plan_end(f);
    free(f);
}

static void chains_pass_through_scratch_memory(void **state)
{
    (void)state;
    for (mdot_cpu_isa level = MDOT_CPU_X86_64_V3; level <= MDOT_CPU_AARCH64_NEON; level++) {
        if (!harness_runs_fp32(level)) continue;
        plan_fixture *f = malloc(sizeof *f);
        build_chain(f, 32, 5);
        float in[19], out[20] = {0};
        for (int i = 0; i < 19; i++) in[i] = (float)i;
        harness_run_plan(&f->plan, level, (const void *[]){in}, (void *[]){out}, 19);
        for (int i = 0; i < 19; i++) assert_compare(out[i], ==, in[i] + 7);
        assert_compare(out[19], ==, 0);
        plan_end(f);
        free(f);
    }
}

static void weights_are_found_at_their_offsets(void **state)
{
    (void)state;
    for (mdot_cpu_isa level = MDOT_CPU_X86_64_V3; level <= MDOT_CPU_AARCH64_NEON; level++) {
        if (!harness_runs_fp32(level)) continue;
        plan_fixture *f = malloc(sizeof *f);
        static const float first[3] = {1, 2, 3}, second[3] = {10, 20, 30};
        ir_tensor constants[2] = {{.dtype = MDOT_DTYPE_F32, .rank = 1, .dims = {3}, .count = 3, .data = first},
                                  {.dtype = MDOT_DTYPE_F32, .rank = 1, .dims = {3}, .count = 3, .data = second}};
        plan_begin(f, 0);
        int weight[2], out = plan_output(f, MDOT_DTYPE_F32, PLAN_SHAPE(PLAN_N(3)));
        for (int w = 0; w < 2; w++) {
            weight[w] = add_scratch(f, 0);
            f->buffers[weight[w]].kind = PL_WEIGHT;
            f->buffers[weight[w]].constant = &constants[w];
        }
        plan_nest(f, (pl_nest){.loop_count = 1,
                               .extent = {PLAN_N(3)},
                               .store_count = 1,
                               .store = {{out, pl_index(f->arena, 0),
                                          pl_binary(f->arena, PL_ADD, load(f, weight[0]), load(f, weight[1]))}}});
        float got[3];
        harness_run_plan(&f->plan, level, NULL, (void *[]){got}, 0);
        for (int i = 0; i < 3; i++) assert_compare(got[i], ==, first[i] + second[i]);
        plan_end(f);
        free(f);
    }
}

static void unknown_levels_are_refused(void **state)
{
    (void)state;
    plan_fixture *f = malloc(sizeof *f);
    build_chain(f, 32, 1);
    mdot_error err;
    char *text;
    assert_int_equal(compile(&f, 1, (mdot_cpu_isa)77, NULL, &text, &err), MDOT_UNSUPPORTED);
    assert_non_null(strstr(err.message, "77"));
    pl_plan *plan = &f->plan;
    cg_entry entry = {.name = "predict", .plan_count = 1, .plans = &plan};
    cg_options none = {.predictor_name = "test"};
    cg_cpu_images images;
    assert_int_equal(cg_cpu_make_images(&entry, 1, &none, f->arena, &images, &err), MDOT_INVALID_ARGUMENT);
    assert_null(images.code);
    cg_cpu_images_done(&images);
    plan_end(f);
    free(f);
}

static void a_kernel_of_too_many_tensors_is_refused_by_name(void **state)
{
    (void)state;
    plan_fixture *f = malloc(sizeof *f);
    plan_begin(f, 0);
    f->plan.buffers = IR_NEW_ARRAY(f->arena, pl_buffer, CG_MAX_POINTERS + 1);
    f->plan.buffer_count = CG_MAX_POINTERS + 1;
    const pl_expr *sum = pl_const_f(f->arena, MDOT_DTYPE_F32, 0), *zero = pl_const_i(f->arena, MDOT_DTYPE_I64, 0);
    for (int b = 0; b <= CG_MAX_POINTERS; b++) {
        f->plan.buffers[b] = (pl_buffer){.kind = b ? PL_INPUT : PL_OUTPUT, .type = {.dtype = MDOT_DTYPE_F32}};
        if (b) sum = pl_binary(f->arena, PL_ADD, sum, pl_load(f->arena, b, MDOT_DTYPE_F32, zero));
    }
    plan_nest(f, (pl_nest){.store_count = 1, .store = {{.buffer = 0, .index = zero, .value = sum}}});
    mdot_error err;
    char *text;
    assert_int_equal(compile(&f, 1, MDOT_CPU_X86_64_V3, NULL, &text, &err), MDOT_UNSUPPORTED);
    assert_non_null(strstr(err.message, "k0"));
    plan_end(f);
    free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_kernels_share_one_function),
        cmocka_unit_test(different_kernels_of_one_name_get_a_bucket_suffix),
        cmocka_unit_test(dumping_assembly_still_makes_the_object),
        cmocka_unit_test(chains_pass_through_scratch_memory),
        cmocka_unit_test(weights_are_found_at_their_offsets),
        cmocka_unit_test(unknown_levels_are_refused),
        cmocka_unit_test(a_kernel_of_too_many_tensors_is_refused_by_name),
    };
    return cmocka_run_group_tests_name("cg_module", tests, NULL, NULL);
}
