/* test_parameter_inputs.c — frontend/job/parameter_inputs.c: parameters declared as graph inputs in a file. */
#include "tests/support/assertions.h"
#include "tests/support/job_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Adds a value, stored or declared as an input by the file. */
static void parameter(onnx_builder *b, bool stored, const char *name, const char *shape)
{
    if (stored) {
        onnx_initializer(b, name, MDOT_DTYPE_F32, shape, NULL);
    } else {
        onnx_input(b, name, MDOT_DTYPE_F32, shape);
    }
}

/* Names the parameters as PyTorch does, or with meaningless names. */
static onnx_builder *classifier(bool stored, bool named)
{
    static const char *const names[][2] = {
        {"stem.conv.weight", "a"},    {"stem.bn.weight", "b"}, {"stem.bn.bias", "c"}, {"stem.bn.running_mean", "d"},
        {"stem.bn.running_var", "e"}, {"fc.weight", "f"},      {"fc.bias", "g"}};
    static const char *const shapes[] = {"16,3,3,3", "16", "16", "16", "16", "10,16", "10"};
    char conv[64], norm[256], transpose[64], add[64];
    const char *n[7];
    onnx_builder *b = job_begin("N,3,8,8");
    for (int i = 0; i < 7; i++) {
        n[i] = names[i][named ? 0 : 1];
        parameter(b, stored, n[i], shapes[i]);
    }
    snprintf(conv, sizeof conv, "x,%s", n[0]);
    snprintf(norm, sizeof norm, "conv,%s,%s,%s,%s", n[1], n[2], n[3], n[4]);
    snprintf(transpose, sizeof transpose, "%s", n[5]);
    snprintf(add, sizeof add, "%s,product", n[6]);
    onnx_node(b, "Conv", conv, "conv");
    onnx_node(b, "BatchNormalization", norm, "norm");
    onnx_node(b, "GlobalAveragePool", "norm", "pool");
    onnx_node(b, "Flatten", "pool", "flat");
    onnx_node(b, "Transpose", transpose, "turned");
    onnx_node(b, "MatMul", "flat,turned", "product");
    if (named || stored) {
        onnx_node(b, "Add", add, "y");
        onnx_output(b, "y");
    } else {
        onnx_output(b, "product"); /* an added input may be data */
    }
    return b;
}

static void inputs_with_names_of_parameters_are_parameters(void **state)
{
    (void)state;
    job_reading stored = job_expect(classifier(true, true)), left = job_expect(classifier(false, true));
    assert_string_equal(stored.warnings, "");
    assert_non_null(
        strstr(left.warnings, "7 inputs of the graph, 'stem.conv.weight' first, are treated as parameters"));
    assert_compare(job_info(&left).parameters, ==, 16 * 27 + 2 * 16 + 160 + 10);
    job_expect_same(&stored, &left);
    job_end(&stored);
    job_end(&left);
}

static void inputs_in_parameter_positions_are_parameters(void **state)
{
    (void)state;
    job_reading r = job_expect(classifier(false, false));
    assert_non_null(strstr(r.warnings, "6 inputs of the graph, 'a' first, are treated as parameters"));
    assert_compare(job_info(&r).parameters, ==, 16 * 27 + 2 * 16 + 160);
    job_end(&r);
}

static void table_inputs_are_parameters_without_stored_ones(void **state)
{
    (void)state;
    for (int stored = 0; stored < 2; stored++) {
        onnx_builder *b = onnx_begin(17);
        onnx_input(b, "ids", MDOT_DTYPE_I64, "N,32");
        onnx_input(b, "rows", MDOT_DTYPE_F32, "1000,16");
        parameter(b, stored != 0, "weight", "16,8");
        onnx_node(b, "Gather", "rows,ids", "e");
        onnx_node(b, "MatMul", "e,weight", "y");
        job_reading r = job_expect_output(b, "y");
        assert_compare(job_info(&r).parameters, ==, stored ? 128 : 16128);
        job_end(&r);
    }
}

enum { WEIGHTS = 4 };

typedef struct position {
    const char *op_type, *data, *operands[WEIGHTS];
    int64_t parameters; /* with all of them */
} position;

/* Reads one operator. The operands in `declared` are inputs, and the others are stored. */
static job_reading read_position(const position *p, unsigned declared)
{
    char inputs[32] = "x";
    onnx_builder *b = onnx_begin(23);
    onnx_input(b, "x", MDOT_DTYPE_F32, p->data);
    for (int i = 0; i < WEIGHTS && p->operands[i] != NULL; i++) {
        char name[2] = {(char)('p' + i), '\0'};
        parameter(b, (declared >> i & 1) == 0, name, p->operands[i]);
        strcat(strcat(inputs, ","), name);
    }
    onnx_node(b, p->op_type, inputs, "y");
    if (strstr("LSTM GRU RNN", p->op_type) != NULL) onnx_attr_int(b, "hidden_size", 4);
    if (strcmp("GroupNormalization", p->op_type) == 0) onnx_attr_int(b, "num_groups", 2);
    return job_expect_output(b, "y");
}

/* Each operand that is a weight by its position, in every operator that has one: any of them may be declared as inputs,
 * and the job is that of stored ones. */
static void every_weight_position_counts(void **state)
{
    (void)state;
    static const position rows[] = {
        {"Conv", "N,3,8,8", {"16,3,3,3", "16"}, 432 + 16},
        {"ConvTranspose", "N,3,8,8", {"3,16,3,3", "16"}, 432 + 16},
        {"BatchNormalization", "N,3,8", {"3", "3", "3", "3"}, 6},
        {"InstanceNormalization", "N,3,8", {"3", "3"}, 6},
        {"GroupNormalization", "N,4,8", {"4", "4"}, 8},
        {"LayerNormalization", "N,4,8", {"8", "8"}, 16},
        {"RMSNormalization", "N,4,8", {"8"}, 8},
        {"PRelu", "N,3,8", {"3,1"}, 3},
        {"LSTM", "4,2,8", {"1,16,8", "1,16,4", "1,32"}, 128 + 64 + 32},
        {"GRU", "4,2,8", {"1,12,8", "1,12,4", "1,24"}, 96 + 48 + 24},
        {"RNN", "4,2,8", {"1,4,8", "1,4,4", "1,8"}, 32 + 16 + 8},
        {"MatMul", "N,8", {"8,5"}, 40},
        {"Gemm", "N,8", {"8,5", "1,5"}, 45},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int count = 0;
        while (count < WEIGHTS && rows[i].operands[count] != NULL) count++;
        bool may_be_data = strstr("MatMul Gemm", rows[i].op_type) != NULL; /* beside stored parameters */
        job_reading stored = read_position(&rows[i], 0);
        if (job_info(&stored).parameters != rows[i].parameters)
            fail_msg("%s: %lld parameters", rows[i].op_type, (long long)job_info(&stored).parameters);
        for (unsigned declared = 1; declared < 1u << count; declared++) {
            if (may_be_data && declared + 1 != 1u << count) continue;
            char expected[96];
            int inputs = __builtin_popcount(declared);
            snprintf(expected, sizeof expected, "%d input%s of the graph, '%c'%s treated", inputs,
                     inputs == 1 ? "" : "s", 'p' + __builtin_ctz(declared), inputs == 1 ? ", is" : " first, are");
            job_reading r = read_position(&rows[i], declared);
            if (strstr(r.warnings, expected) == NULL) fail_msg("%s %x: %s", rows[i].op_type, declared, r.warnings);
            job_expect_same(&stored, &r);
            job_end(&r);
        }
        job_end(&stored);
    }
}

static void data_inputs_stay_inputs(void **state)
{
    (void)state;
    static const struct {
        const char *op_type, *first, *second;
        bool stored; /* whether the file stores the parameters */
    } rows[] = {{"MatMul", "N,8", "8,8", true}, {"MatMul", "N,4,8", "N,8,8", false}, {"Add", "N,8", "8", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        onnx_builder *b = job_begin(rows[i].first);
        onnx_input(b, "other", MDOT_DTYPE_F32, rows[i].second);
        onnx_node(b, rows[i].op_type, "x,other", "y");
        if (rows[i].stored) {
            onnx_initializer(b, "w", MDOT_DTYPE_F32, "8,8", NULL);
            onnx_node(b, "MatMul", "y,w", "z");
        }
        job_reading r = job_expect_output(b, rows[i].stored ? "z" : "y");
        assert_string_equal(r.warnings, "");
        assert_int_equal(job_operator(&r, 0).setting[MDOT_SETTING_INPUTS], 2);
        job_end(&r);
    }
}

/* A file from PyTorch's dynamo exporter with export_params=False. The parameter shapes are unknown. */
static void missing_parameters_are_refused_with_the_remedy(void **state)
{
    (void)state;
    onnx_builder *b = job_begin("N,3,8,8");
    onnx_node(b, "Conv", "x,conv1.weight", "y");
    onnx_output(b, "y");
    job_reading r = job_read_model(b, NULL, 0);
    assert_int_equal(r.status, MDOT_MALFORMED);
    assert_non_null(strstr(r.err.message, "'conv1.weight', is undefined; if it is a parameter, export the"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inputs_with_names_of_parameters_are_parameters),
        cmocka_unit_test(inputs_in_parameter_positions_are_parameters),
        cmocka_unit_test(table_inputs_are_parameters_without_stored_ones),
        cmocka_unit_test(every_weight_position_counts),
        cmocka_unit_test(data_inputs_stay_inputs),
        cmocka_unit_test(missing_parameters_are_refused_with_the_remedy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
