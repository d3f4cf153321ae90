/* job_fixture.c — see job_fixture.h. */
#include "tests/support/job_fixture.h"
#include "tests/support/assertions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void note_warning(void *user, const char *message)
{
    job_reading *r = user;
    size_t used = strlen(r->warnings);
    snprintf(r->warnings + used, sizeof r->warnings - used, "%s\n", message);
}

onnx_builder *job_begin(const char *shape)
{
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, shape);
    return b;
}

job_reading job_read_model(onnx_builder *b, const mdot_dim_binding *dims, size_t dim_count)
{
    job_reading r = {.status = MDOT_OK};
    pb_buffer bytes = onnx_finish(b);
    mdot_job_options options = {
        .struct_size = sizeof options, .dims = dims, .dim_count = dim_count, .warning = note_warning, .user = &r};
    r.status = mdot_job_read_bytes(bytes.data, bytes.size, "job.onnx", &options, &r.job, &r.err);
    pb_free(&bytes);
    return r;
}

job_reading job_expect(onnx_builder *b)
{
    job_reading r = job_read_model(b, NULL, 0);
    if (r.status != MDOT_OK) fail_msg("%s", r.err.message);
    return r;
}

job_reading job_expect_output(onnx_builder *b, const char *output)
{
    onnx_output(b, output);
    return job_expect(b);
}

mdot_job_info job_info(const job_reading *r)
{
    mdot_job_info info = MDOT_INIT(mdot_job_info);
    mdot_job_get_info(r->job, &info);
    return info;
}

mdot_job_operator job_operator(const job_reading *r, size_t index)
{
    mdot_job_operator op = MDOT_INIT(mdot_job_operator);
    if (mdot_job_get_operator(r->job, index, &op) != MDOT_OK) fail_msg("there is no operator %zu", index);
    return op;
}

void job_expect_types(const job_reading *r, const char *expected)
{
    char types[1024] = "";
    for (size_t i = 0; i < job_info(r).operator_count; i++) {
        strcat(types, i ? " " : "");
        strcat(types, job_operator(r, i).type);
    }
    assert_string_equal(types, expected);
}

void job_expect_load(mdot_load load, double flops, double read, double written)
{
    if (load.flops == flops && load.bytes_read == read && load.bytes_written == written) return;
    fail_msg("%.0f FLOPs, %.0f read, %.0f written; expected %.0f, %.0f, %.0f", load.flops, load.bytes_read,
             load.bytes_written, flops, read, written);
}

void job_expect_same(const job_reading *a, const job_reading *b)
{
    assert_int_equal(job_info(a).operator_count, job_info(b).operator_count);
    for (size_t i = 0; i < job_info(a).operator_count; i++) {
        mdot_job_operator p = job_operator(a, i), q = job_operator(b, i);
        assert_string_equal(p.type, q.type);
        assert_memory_equal(p.setting, q.setting, sizeof p.setting);
        for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) {
            mdot_load x = q.per_sample[phase], y = q.per_step[phase];
            job_expect_load(p.per_sample[phase], x.flops, x.bytes_read, x.bytes_written);
            job_expect_load(p.per_step[phase], y.flops, y.bytes_read, y.bytes_written);
        }
        assert_compare(p.parameters, ==, q.parameters);
        assert_int_equal(p.input_count, q.input_count);
        assert_memory_equal(p.inputs, q.inputs, p.input_count * sizeof *p.inputs);
    }
}

void job_end(job_reading *r) { mdot_job_destroy(r->job); }

void job_add_conv(onnx_builder *b, const char *in, const char *out, const char *weight_shape, int64_t group, bool bias)
{
    char weight[64], name[64], inputs[256];
    snprintf(weight, sizeof weight, "%s_weight", out);
    snprintf(name, sizeof name, "%s_bias", out);
    onnx_initializer(b, weight, MDOT_DTYPE_F32, weight_shape, NULL);
    if (bias) {
        char channels[32];
        snprintf(channels, sizeof channels, "%d", atoi(weight_shape));
        onnx_initializer(b, name, MDOT_DTYPE_F32, channels, NULL);
    }
    snprintf(inputs, sizeof inputs, bias ? "%s,%s,%s" : "%s,%s", in, weight, name);
    onnx_node(b, "Conv", inputs, out);
    onnx_attr_ints(b, "pads", 4, (int64_t[]){1, 1, 1, 1});
    if (group != 1) onnx_attr_int(b, "group", group);
}
