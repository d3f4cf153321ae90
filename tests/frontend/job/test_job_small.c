/* test_job_small.c — frontend/job*.c: scalars, empty tensors and operands with unknown rank, from shape and mask
 * computations. Every operator in the table handles them. */
#include "ir/ops.h"
#include "tests/support/assertions.h"
#include "tests/support/job_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef enum empty_form { AS_CONSTANT, AS_INITIALIZER, AS_VALUE_INTS } empty_form;

/* ConstantOfShape(i64[0]) is a scalar: torch.ones(()), the beginning of a transformers mask export. */
static onnx_builder *with_mask(empty_form form)
{
    static const bool yes = true;
    static const int64_t sizes[] = {1, 1, 16, 16};
    onnx_builder *b = job_begin("N,4,16,16");
    onnx_input(b, "kept", MDOT_DTYPE_BOOL, "N,1,1,16");
    if (form == AS_INITIALIZER) {
        onnx_initializer(b, "no_dims", MDOT_DTYPE_I64, "0", NULL);
    } else {
        onnx_node(b, "Constant", "", "no_dims");
        if (form == AS_CONSTANT) onnx_attr_tensor(b, "value", MDOT_DTYPE_I64, "0", NULL);
        if (form == AS_VALUE_INTS) onnx_attr_ints(b, "value_ints", 0, NULL);
    }
    onnx_node(b, "ConstantOfShape", "no_dims", "yes");
    onnx_attr_tensor(b, "value", MDOT_DTYPE_BOOL, "1", &yes);
    onnx_node(b, "And", "yes,kept", "both");
    onnx_initializer(b, "sizes", MDOT_DTYPE_I64, "4", sizes);
    onnx_node(b, "Expand", "both,sizes", "mask");
    const float nothing = 0, hidden = -1e38F;
    onnx_initializer(b, "nothing", MDOT_DTYPE_F32, "", &nothing);
    onnx_initializer(b, "hidden", MDOT_DTYPE_F32, "", &hidden);
    onnx_node(b, "Where", "mask,nothing,hidden", "bias");
    onnx_node(b, "Add", "x,bias", "y");
    onnx_output(b, "y");
    return b;
}

static void shape_without_dimensions_gives_scalars(void **state)
{
    (void)state;
    for (int form = AS_CONSTANT; form <= AS_VALUE_INTS; form++) {
        job_reading r = job_expect(with_mask((empty_form)form));
        assert_string_equal(r.warnings, "");
        assert_int_equal(job_info(&r).unknown_count, 0);
        mdot_job_operator last = job_operator(&r, job_info(&r).operator_count - 1);
        assert_string_equal(last.type, "Add");
        assert_compare(last.per_sample[MDOT_PHASE_FORWARD].bytes_written, ==, 4.0 * 4 * 16 * 16);
        job_end(&r);
    }
}

/* One operator with the required number of inputs, all with this shape. They come through a Neg, so each input is
 * variable. */
static onnx_builder *alone(const ir_op *op, mdot_dtype dtype, const char *shape, int inputs)
{
    char names[256] = "", outputs[256] = "", type[128];
    onnx_builder *b = onnx_begin(22);
    if (*op->domain) onnx_import(b, op->domain, 1);
    onnx_input(b, "x", dtype, shape);
    onnx_input(b, "other", MDOT_DTYPE_F32, "2,3");
    for (int i = 0; i < inputs; i++) strcat(names, i == 0 ? "x" : ",x");
    for (int i = 0; i < op->min_outputs || i < 1; i++)
        snprintf(outputs + strlen(outputs), sizeof outputs - strlen(outputs), "%sy%d", i == 0 ? "" : ",", i);
    snprintf(type, sizeof type, "%s%s%s", op->domain, *op->domain ? ":" : "", op->name);
    onnx_node(b, type, names, outputs);
    onnx_node(b, "Relu", "other", "z");
    onnx_output(b, "y0");
    onnx_output(b, "z");
    return b;
}

static void expect_sound(const job_reading *r, const char *what)
{
    if (r->status != MDOT_OK) {
        if (r->status != MDOT_MALFORMED || r->err.message[0] == '\0') fail_msg("%s: %s", what, r->err.message);
        return;
    }
    for (size_t i = 0; i < job_info(r).operator_count; i++) {
        mdot_job_operator op = job_operator(r, i);
        for (int s = 0; s < MDOT_SETTING_COUNT; s++) {
            if (op.setting[s] < 0 || op.setting[s] > 1 << 20)
                fail_msg("%s: %s has %s = %lld", what, op.type, mdot_setting_name((mdot_setting)s),
                         (long long)op.setting[s]);
        }
        for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++)
            if (op.per_sample[phase].bytes_written > 1 << 20) fail_msg("%s: %s writes too much", what, op.type);
    }
}

static void every_operator_accepts_small_tensors(void **state)
{
    (void)state;
    static const char *const shapes[] = {"", "0", "1", "2", "0,3", "2,0,3", "1,1", "2,3,0,5", "2,3,4,5", NULL};
    static const mdot_dtype dtypes[] = {MDOT_DTYPE_F32, MDOT_DTYPE_I64, MDOT_DTYPE_BOOL};
    int read = 0;
    for (int opcode = 0; opcode < IR_OP_COUNT; opcode++) {
        const ir_op *op = &ir_ops[opcode];
        if (strcmp(op->domain, "mdot") == 0 || op->min_inputs == 0) continue;
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
            for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++) {
                for (int inputs = op->min_inputs; inputs <= op->max_inputs && inputs <= op->min_inputs + 3; inputs++) {
                    char what[256];
                    snprintf(what, sizeof what, "%s of %d %s [%s]", op->name, inputs, mdot_dtype_name(dtypes[d]),
                             shapes[s] != NULL ? shapes[s] : "no rank");
                    job_reading r = job_read_model(alone(op, dtypes[d], shapes[s], inputs), NULL, 0);
                    expect_sound(&r, what);
                    read += r.status == MDOT_OK;
                    job_end(&r);
                }
            }
        }
    }
    print_message("%d graphs read\n", read);
    assert_compare(read, >, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shape_without_dimensions_gives_scalars),
        cmocka_unit_test(every_operator_accepts_small_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
