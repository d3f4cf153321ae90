/* check_directory.c — see check_directory.h. */
#include "tests/support/check_directory.h"

#include "tests/support/encoder_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

void write_check_directory(const char *folder, const char *name, float second)
{
    char path[4096], set[4096 + 32];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    snprintf(set, sizeof set, "%s/test_data_set_0", path);
    assert_int_equal(mkdir(path, 0777), 0);
    assert_int_equal(mkdir(set, 0777), 0);
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "3");
    onnx_node(b, "Add", "x,x", "y");
    onnx_output(b, "y");
    free(write_model(path, "model.onnx", onnx_finish(b)));
    const float input[] = {1, 2, 3}, output[] = {2, second, 6};
    free(write_model(set, "input_0.pb", onnx_tensor("x", MDOT_DTYPE_F32, "3", input)));
    free(write_model(set, "output_0.pb", onnx_tensor("y", MDOT_DTYPE_F32, "3", output)));
}
