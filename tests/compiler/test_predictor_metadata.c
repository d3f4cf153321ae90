/* test_predictor_metadata.c — compiler/predictor_metadata.c: a model's declarations of input columns, and refusals that
 * name them. tests/runtime/predict/test_predictor_schema.c tests the columns in predictions. */
#include "compiler/compiler.h"
#include "frontend/onnx/onnx.h"
#include "tests/support/assertions.h"
#include "tests/support/decimal_point.h"
#include "tests/support/onnx_builder.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { TABLE, IDS, VECTOR, OPEN, CONFIGURATION, INPUT_COUNT };

typedef struct reading {
    ir_arena *arena;
    const cg_columns *columns;
    char warnings[1024];
    mdot_error err;
} reading;

static void keep_warning(void *user, const char *message)
{
    reading *r = user;
    snprintf(r->warnings + strlen(r->warnings), sizeof r->warnings - strlen(r->warnings), "%s\n", message);
}

/* Reads a model with inputs of several types and these metadata: key, value, … NULL. */
static mdot_status read_notes(reading *r, const char *const *notes)
{
    *r = (reading){.arena = ir_arena_create(0)};
    assert_non_null(r->arena);
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "table", MDOT_DTYPE_F32, "L,4");
    onnx_input(b, "ids", MDOT_DTYPE_I64, "3");
    onnx_input(b, "vector", MDOT_DTYPE_F32, "3");
    onnx_input(b, "open", MDOT_DTYPE_F32, "L");
    onnx_input(b, "configuration", MDOT_DTYPE_F32, "3,16");
    onnx_node(b, "Identity", "table", "y");
    onnx_output(b, "y");
    for (; *notes != NULL; notes += 2) {
        onnx_metadata(b, notes[0], notes[1]);
    }
    pb_buffer model = onnx_finish(b);
    ir_graph *graph = NULL;
    const co_hooks hooks = {.warning = keep_warning, .user = r};
    mdot_status status = fe_import_bytes(model.data, model.size, "m.onnx", NULL, NULL, r->arena, &graph, &r->err);
    if (status == MDOT_OK) {
        assert_int_equal(graph->input_count, INPUT_COUNT);
        status = co_read_columns(graph, &hooks, r->arena, &r->columns, &r->err);
    }
    pb_free(&model);
    return status;
}

static void defaults_apply_to_the_last_columns(void **state)
{
    (void)state;
    reading r;
    static const char *const notes[] = {"mdot.defaults.vector", "1", "author", "someone", "mdot.defaults.table",
                                        " -2.5 , 1e-3 ,0,4",    NULL};
    assert_int_equal(read_notes(&r, notes), MDOT_OK);
    static const float table[] = {-2.5F, 1e-3F, 0, 4};
    assert_int_equal(r.columns[TABLE].default_count, 4);
    assert_memory_equal(r.columns[TABLE].defaults, table, sizeof table);
    assert_int_equal(r.columns[VECTOR].default_count, 1);
    assert_compare(r.columns[VECTOR].defaults[0], ==, 1);
    assert_int_equal(r.columns[IDS].default_count + r.columns[OPEN].default_count, 0);
    assert_string_equal(r.warnings, "");
    ir_arena_destroy(r.arena);
}

/* A program that uses libmdotc may set a locale whose decimal comma would end a list item. */
static void numbers_use_a_decimal_point_in_every_locale(void **state)
{
    (void)state;
    reading r;
    static const char *const notes[] = {"mdot.defaults.table", "0.5,1,-2.25e-1", NULL};
    static const float table[] = {0.5F, 1, -0.225F};
    decimal_point_begin("<U002C>");
    mdot_status status = read_notes(&r, notes);
    decimal_point_end();
    if (status != MDOT_OK) fail_msg("%s", r.err.message);
    assert_int_equal(r.columns[TABLE].default_count, 3);
    assert_memory_equal(r.columns[TABLE].defaults, table, sizeof table);
    ir_arena_destroy(r.arena);
}

static void a_model_without_metadata_has_no_defaults(void **state)
{
    (void)state;
    reading r;
    static const char *const notes[] = {"author", "someone", "amdot.defaults.table", "1", NULL};
    assert_int_equal(read_notes(&r, notes), MDOT_OK);
    assert_null(r.columns);
    assert_string_equal(r.warnings, "");
    ir_arena_destroy(r.arena);
}

static void metadata_of_later_versions_is_named(void **state)
{
    (void)state;
    reading r;
    static const char *const notes[] = {"mdot.colour", "red", "mdot.default.table", "1", NULL};
    assert_int_equal(read_notes(&r, notes), MDOT_OK);
    assert_non_null(strstr(r.warnings, "m.onnx: metadata mdot.colour is unknown to mdot " MDOT_VERSION_STRING));
    assert_non_null(strstr(r.warnings, "mdot.default.table"));
    ir_arena_destroy(r.arena);
}

static void expect_refused(const char *key, const char *value, const char *part)
{
    reading r;
    const char *const notes[] = {key, value, NULL};
    assert_int_equal(read_notes(&r, notes), MDOT_MALFORMED);
    if (strstr(r.err.message, part) == NULL || strstr(r.err.message, "m.onnx: metadata mdot.") == NULL)
        fail_msg("\"%s\" does not say \"%s\"", r.err.message, part);
    ir_arena_destroy(r.arena);
}

static void invalid_lists_of_defaults_are_refused(void **state)
{
    (void)state;
    static const char *const lists[] = {"", ",", "1,", ",1", "1;2", "1 2", "one", "1,,2", "nan", "inf", "1e39", "1,2x"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        expect_refused("mdot.defaults.table", lists[i], "expected a comma-separated list of numbers");
    expect_refused("mdot.defaults.table", "1,2,3,4,5", "more numbers than the input has columns");
    expect_refused("mdot.defaults.vector", "1,2,3,4", "more numbers than the input has columns");
    expect_refused("mdot.defaults.ids", "1", "must be f32 with a fixed number of columns");
    expect_refused("mdot.defaults.open", "1", "must be f32 with a fixed number of columns");
    expect_refused("mdot.defaults.y", "1", "the model lacks this input");
    expect_refused("mdot.defaults.", "1", "the model lacks this input");
}

static void repeated_lists_for_one_input_are_refused(void **state)
{
    (void)state;
    reading r;
    static const char *const notes[] = {"mdot.defaults.table", "1", "mdot.defaults.table", "1", NULL};
    assert_int_equal(read_notes(&r, notes), MDOT_MALFORMED);
    assert_non_null(strstr(r.err.message, "twice"));
    ir_arena_destroy(r.arena);
}

static void names_cover_all_columns(void **state)
{
    (void)state;
    reading r;
    static const char *const notes[] = {"mdot.reads.configuration", " torch ,batch,is_amp", NULL};
    assert_int_equal(read_notes(&r, notes), MDOT_OK);
    assert_string_equal(r.columns[CONFIGURATION].names, "torch,batch,is_amp");
    assert_null(r.columns[TABLE].names);
    assert_string_equal(r.warnings, "");
    ir_arena_destroy(r.arena);
    static const char *const later[] = {"mdot.reads.configuration", "batch,is_amp,altitude",
                                        "mdot.defaults.configuration", "8848", NULL};
    assert_int_equal(read_notes(&r, later), MDOT_OK);
    assert_string_equal(r.columns[CONFIGURATION].names, "batch,is_amp,altitude");
    assert_int_equal(r.columns[CONFIGURATION].default_count, 1);
    ir_arena_destroy(r.arena);
}

static void invalid_lists_of_names_are_refused(void **state)
{
    (void)state;
    static const char key[] = "mdot.reads.configuration";
    static const char *const lists[] = {"",      ",",           "batch,", ",batch", "batch torch", "batch;torch",
                                        "Batch", "batch,,torch"};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        expect_refused(key, lists[i], "expected a comma-separated list of names");
    expect_refused(key, "batch,torch", "differs from the number of f32 columns");
    expect_refused(key, "batch,torch,is_amp,is_nhwc", "differs from the number of f32 columns");
    expect_refused(key, "batch,torch,batch", "has batch twice");
    expect_refused(key, "batch,torch,altitude", "lacks the configuration number altitude");
    expect_refused(key, "batch,torhc,is_amp", "torhc (did you mean torch?)");
    reading r;
    static const char *const first[] = {key, "altitude,batch,torch", "mdot.defaults.configuration", "1", NULL};
    assert_int_equal(read_notes(&r, first), MDOT_MALFORMED);
    ir_arena_destroy(r.arena);
    static const char *const twice[] = {key, "batch,torch,is_amp", key, "batch,torch,is_amp", NULL};
    assert_int_equal(read_notes(&r, twice), MDOT_MALFORMED);
    assert_non_null(strstr(r.err.message, "the entry occurs twice"));
    ir_arena_destroy(r.arena);
    static const char *const other[] = {"mdot.reads.table", "a,b,c,d", NULL};
    assert_int_equal(read_notes(&r, other), MDOT_OK);
    assert_non_null(strstr(r.warnings, "metadata mdot.reads.table is unknown"));
    ir_arena_destroy(r.arena);
}

static void an_assumed_version_of_pytorch_is_one_number(void **state)
{
    (void)state;
    reading r;
    static const char key[] = "mdot.assumes.torch";
    static const struct {
        const char *text;
        uint32_t number;
    } versions[] = {{"2.9", 209}, {"1.12", 112}, {"99.99", 9999}, {"1.0", 100}};
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        const char *const notes[] = {key, versions[i].text, NULL};
        assert_int_equal(read_notes(&r, notes), MDOT_OK);
        assert_int_equal(r.columns[CONFIGURATION].assumed_torch, versions[i].number);
        assert_int_equal(r.columns[TABLE].assumed_torch, 0);
        assert_string_equal(r.warnings, "");
        ir_arena_destroy(r.arena);
    }
    static const char *const others[] = {"", "2", "2.", ".9", "0.9", "2.9.1", "2.9 ", "100.1", "2.100", "newest"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        expect_refused(key, others[i], "expected a version from 1.0 to 99.99, for example 2.9");
    static const char *const twice[] = {key, "2.9", key, "2.9", NULL};
    assert_int_equal(read_notes(&r, twice), MDOT_MALFORMED);
    assert_non_null(strstr(r.err.message, "the entry occurs twice"));
    ir_arena_destroy(r.arena);
}

/* A block of configurations has one default per column, independent of the configuration count. */
static void defaults_fill_the_columns_of_a_configuration(void **state)
{
    (void)state;
    reading r;
    static const char *const notes[] = {"mdot.defaults.configuration", "1,2,3", NULL};
    assert_int_equal(read_notes(&r, notes), MDOT_OK);
    ir_arena_destroy(r.arena);
    expect_refused(notes[0], "1,2,3,4", "more numbers than the input has columns");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_apply_to_the_last_columns),
        cmocka_unit_test(numbers_use_a_decimal_point_in_every_locale),
        cmocka_unit_test(a_model_without_metadata_has_no_defaults),
        cmocka_unit_test(metadata_of_later_versions_is_named),
        cmocka_unit_test(invalid_lists_of_defaults_are_refused),
        cmocka_unit_test(repeated_lists_for_one_input_are_refused),
        cmocka_unit_test(names_cover_all_columns),
        cmocka_unit_test(invalid_lists_of_names_are_refused),
        cmocka_unit_test(an_assumed_version_of_pytorch_is_one_number),
        cmocka_unit_test(defaults_fill_the_columns_of_a_configuration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
