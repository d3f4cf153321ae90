/* test_cpu_kind.c — the CPU backend's function table for each kernel kind is complete. */
#include "codegen/cpu/cpu_kind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

static void every_kernel_kind_has_functions_for_code_and_signature(void **state)
{
    (void)state;
    for (int k = 0; k < PL_KIND_COUNT; k++) {
        assert_non_null(cg_kinds[k]);
        assert_non_null(cg_kinds[k]->emit);
        assert_non_null(cg_kinds[k]->sign);
    }
}

static void a_kind_without_scratch_needs_none(void **state)
{
    (void)state;
    const pl_plan plan = {.max_length = 8};
    const pl_kernel nest = {.kind = PL_NEST};
    assert_int_equal(cg_kernel_scratch_bytes(&plan, &nest, cg_cpu_target_find(MDOT_CPU_X86_64_V3, CG_FP32)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kernel_kind_has_functions_for_code_and_signature),
        cmocka_unit_test(a_kind_without_scratch_needs_none),
    };
    return cmocka_run_group_tests_name("cpu_kind", tests, NULL, NULL);
}
