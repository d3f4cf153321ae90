/* test_gres.c — GPUs in the resource strings that Slurm makes from --gres, --gpus and similar options. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "slurm/partition.h"

static void counts_and_types_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text, *type;
        int64_t count;
        bool is_mixed;
    } cases[] = {{NULL, "", 0, false},
                 {"", "", 0, false},
                 {"gres:gpu", "", 1, false},
                 {"gres:gpu:4", "", 4, false},
                 {"gres/gpu:4", "", 4, false},
                 {"gres/gpu=4", "", 4, false},
                 {"gpu:2", "", 2, false},
                 {"gres:gpu:A100", "a100", 1, false},
                 {"gres:gpu:a100:2", "a100", 2, false},
                 {"gres/gpu:a100=2", "a100", 2, false},
                 {"gres:nic:8,gres:gpu:h100:2,gres:gpu:h100:1", "h100", 1, false}, /* Slurm believes the last */
                 {"gres:gpu:2,gres:gpu:0", "", 0, false},
                 {"gres:gpu:a100:1,gres:gpu:h100:1", "a100", 2, true},
                 {"gres:gpu:a100:1,gres:gpu:1", "a100", 2, true},
                 {"gres:gpu:a100:0,gres:gpu:h100:1", "h100", 1, false},
                 {"gres:gpus:4,gres:mygpu:4,gres:shard:2", "", 0, false},
                 {"gres:gpu:2k", "", 2048, false},
                 {"gres:gpu:0", "", 0, false},
                 {"gres:gpu:99999999999999999999", "", 1 << 20, false},
                 {"gres:gpu:9223372036854775807k", "", 1 << 20, false},
                 {"gres:gpu=-5", "", 1 << 20, false},
                 {"gres:gpu:9223372036854775807,gres:gpu:9223372036854775807", "", 1 << 20, false},
                 {",,gres:gpu:1,", "", 1, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        sl_gres gres = sl_gres_read(cases[i].text);
        if (gres.count != cases[i].count || gres.is_mixed != cases[i].is_mixed || strcmp(gres.type, cases[i].type) != 0)
            fail_msg("%s: %lld of type \"%s\"", cases[i].text, (long long)gres.count, gres.type);
    }
}

/* Types may begin with digits (2080ti, and 1g.10gb of MIG) or consist of them (4090). A number alone is a count. */
static void types_and_counts_have_any_names(void **state)
{
    (void)state;
    static const char *const types[] = {"", "a100", "2080ti", "1g.10gb", "3g", "4090", "a100-sxm4-40gb", "k80", "0x"},
                             *const counts[] = {"", "0", "1", "16", "2k"},
                             *const forms[] = {"gres:gpu", "gres/gpu", "gpu"};
    static const int64_t numbers[] = {1, 0, 1, 16, 2048};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (size_t c = 0; c < sizeof counts / sizeof *counts; c++)
            for (size_t form = 0; form < 6; form++) {
                char text[80];
                bool has_type = *types[t] != '\0', has_count = *counts[c] != '\0';
                snprintf(text, sizeof text, "gres:nic:3,%s%s%s%s%s", forms[form % 3], has_type ? ":" : "", types[t],
                         has_count ? (form < 3 ? ":" : "=") : "", counts[c]);
                sl_gres gres = sl_gres_read(text);
                bool is_count = has_type && !has_count && strcmp(types[t], "4090") == 0;
                if (gres.count != (is_count ? 4090 : numbers[c]) || gres.is_mixed ||
                    strcmp(gres.type, is_count || gres.count == 0 ? "" : types[t]) != 0)
                    fail_msg("%s: %lld of type \"%s\"", text, (long long)gres.count, gres.type);
            }
}

static void long_types_are_cut(void **state)
{
    (void)state;
    char text[300] = "gres:gpu:";
    memset(text + 9, 'x', 200);
    memcpy(text + 209, ":3", 3);
    sl_gres gres = sl_gres_read(text);
    assert_int_equal(gres.count, 3);
    assert_int_equal(strlen(gres.type), SL_GRES_TYPE_BYTES - 1);
    for (size_t length = SL_GRES_TYPE_BYTES - 1; length <= SL_GRES_TYPE_BYTES; length++) {
        memcpy(text + 9 + length, ":3", 3);
        assert_int_equal(strlen(sl_gres_read(text).type), SL_GRES_TYPE_BYTES - 1);
        text[9 + length] = 'x';
    }
}

static void a_type_is_added_to_untyped_requests(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"gres:gpu:4", "gres:gpu:h100:4"},
        {"gres:gpu", "gres:gpu:h100"},
        {"gres/gpu=4", "gres/gpu:h100=4"},
        {"gres:nic:1,gres:gpu:2,gres:mem:3", "gres:nic:1,gres:gpu:h100:2,gres:mem:3"},
        {"gres:gpu:a100:2", "gres:gpu:a100:2"},
        {"gres:nic:1", "gres:nic:1"},
        {"", ""}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *text = sl_gres_with_type(cases[i][0], "h100");
        assert_non_null(text);
        assert_string_equal(text, cases[i][1]);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_and_types_are_read),
        cmocka_unit_test(types_and_counts_have_any_names),
        cmocka_unit_test(long_types_are_cut),
        cmocka_unit_test(a_type_is_added_to_untyped_requests),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
