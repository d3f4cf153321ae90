/* test_job_read.c — frontend/job/: batches, unknown operators, training graphs and bad input. */
#include "tests/support/assertions.h"
#include "tests/support/frontend_fixture.h"
#include "tests/support/job_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

/* ---- Batches and symbols ---------------------------------------------------------------------------------------- */

static onnx_builder *batched(const char *shape)
{
    onnx_builder *b = job_begin(shape);
    job_add_conv(b, "x", "c", "16,3,3,3", 1, true);
    onnx_node(b, "Relu", "c", "r");
    onnx_node(b, "GlobalAveragePool", "r", "g");
    onnx_node(b, "Flatten", "g", "f");
    onnx_initializer(b, "w", MDOT_DTYPE_F32, "16,10", NULL);
    onnx_node(b, "MatMul", "f,w", "y");
    onnx_output(b, "y");
    return b;
}

static void flops_and_bytes_per_sample_are_independent_of_the_batch(void **state)
{
    (void)state;
    job_reading open = job_expect(batched("N,3,8,8")), one = job_expect(batched("1,3,8,8"));
    job_reading eight = job_expect(batched("8,3,8,8"));
    assert_int_equal(job_info(&open).batch, 1);
    assert_int_equal(job_info(&eight).batch, 8);
    job_expect_same(&open, &one);
    job_expect_same(&open, &eight);
    job_end(&open);
    job_end(&one);
    job_end(&eight);
}

static void unbound_symbols_are_listed(void **state)
{
    (void)state;
    static const mdot_dim_binding height[] = {{"H", 8, NULL}}, both[] = {{"H", 8, NULL}, {"W", 8, NULL}};
    job_reading r = job_read_model(batched("N,3,H,W"), NULL, 0);
    assert_int_equal(r.status, MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(r.err.message, "'H', 'W'"));
    assert_non_null(strstr(r.err.message, "--dim"));
    assert_null(strstr(r.err.message, "'N'"));
    job_reading s = job_read_model(batched("N,3,H,W"), height, 1);
    assert_int_equal(s.status, MDOT_INVALID_ARGUMENT);
    assert_non_null(strstr(s.err.message, "'W'"));
    job_reading t = job_read_model(batched("N,3,H,W"), both, 2), fixed = job_expect(batched("1,3,8,8"));
    assert_int_equal(t.status, MDOT_OK);
    job_expect_same(&t, &fixed);
    job_end(&t);
    job_end(&fixed);
}

/* PyTorch's nn.Transformer and nn.LSTM have the sequence dimension first. */
static onnx_builder *sequence_first(const char *shape)
{
    onnx_builder *b = job_begin(shape);
    onnx_initializer(b, "w", MDOT_DTYPE_F32, "32,10", NULL);
    onnx_node(b, "MatMul", "x,w", "y");
    onnx_output(b, "y");
    return b;
}

static void named_batch_is_found_at_any_position(void **state)
{
    (void)state;
    static const mdot_dim_binding four = {"batch_size", 4, NULL};
    job_reading open = job_expect(sequence_first("16,batch_size,32"));
    job_reading bound = job_read_model(sequence_first("16,batch_size,32"), &four, 1);
    assert_int_equal(bound.status, MDOT_OK);
    assert_int_equal(job_info(&open).batch, 1);
    assert_int_equal(job_info(&bound).batch, 4);
    job_expect_load(job_operator(&open, 0).per_sample[MDOT_PHASE_FORWARD], 2 * 16 * 32 * 10, 4 * 16 * 32, 4 * 16 * 10);
    assert_int_equal(job_operator(&bound, 0).setting[MDOT_SETTING_SIZE_IN], 16);
    job_expect_same(&open, &bound);
    job_end(&open);
    job_end(&bound);
}

/* An embedding and a recurrence over the rows, as PyTorch exports an LSTM with and without batch_first. */
static onnx_builder *recurrent(const char *shape, bool turned)
{
    onnx_builder *b = onnx_begin(17);
    onnx_input(b, "words", MDOT_DTYPE_I64, shape);
    onnx_initializer(b, "table", MDOT_DTYPE_F32, "100,8", NULL);
    onnx_initializer(b, "w", MDOT_DTYPE_F32, "1,64,8", NULL);
    onnx_initializer(b, "r", MDOT_DTYPE_F32, "1,64,16", NULL);
    onnx_node(b, "Gather", "table,words", "rows");
    if (turned) {
        onnx_node(b, "Transpose", "rows", "first");
        onnx_attr_ints(b, "perm", 3, (int64_t[]){1, 0, 2});
    }
    onnx_node(b, "LSTM", turned ? "first,w,r" : "rows,w,r", "y");
    onnx_attr_int(b, "hidden_size", 16);
    onnx_output(b, "y");
    return b;
}

static void recurrence_layout_determines_the_batch(void **state)
{
    (void)state;
    job_reading sequences = job_expect(recurrent("35,20", false)), batches = job_expect(recurrent("20,35", true));
    assert_int_equal(job_info(&sequences).batch, 20);
    assert_int_equal(job_info(&batches).batch, 20);
    job_expect_load(job_operator(&sequences, 0).per_sample[MDOT_PHASE_FORWARD], 0, 4 * 35 * 8, 4 * 35 * 8);
    for (int phase = 0; phase < MDOT_PHASE_COUNT; phase++) {
        mdot_load a = job_operator(&sequences, 1).per_sample[phase];
        mdot_load b = job_operator(&batches, (int)job_info(&batches).operator_count - 1).per_sample[phase];
        job_expect_load(a, b.flops, b.bytes_read, b.bytes_written);
    }
    job_end(&sequences);
    job_end(&batches);
}

/* ---- Unknown operators ------------------------------------------------------------------------------------------- */

static onnx_builder *with_unknown(bool stated)
{
    onnx_builder *b = job_begin("N,3,8,8");
    onnx_import(b, "com.example", 1);
    onnx_node(b, "com.example:Fancy", "x", "f");
    onnx_node(b, "Relu", "f", "y");
    onnx_output(b, "y");
    if (stated) { /* GraphProto.value_info: f is f32[N,5] */
        pb_buffer dims = {0}, n = {0}, five = {0}, tensor = {0}, type = {0}, info = {0};
        pb_text(&n, 2, "N");
        pb_int(&five, 1, 5);
        pb_message(&dims, 1, &n);
        pb_message(&dims, 1, &five);
        pb_int(&tensor, 1, MDOT_DTYPE_F32);
        pb_message(&tensor, 2, &dims);
        pb_message(&type, 1, &tensor);
        pb_text(&info, 1, "f");
        pb_message(&info, 2, &type);
        onnx_graph_raw(b, 13, &info);
    }
    return b;
}

static void unknown_operators_become_opaque(void **state)
{
    (void)state;
    job_reading stated = job_expect(with_unknown(true)), guessed = job_expect(with_unknown(false));
    job_expect_types(&stated, "com.example:Fancy Relu");
    assert_false(job_operator(&stated, 0).known);
    assert_true(job_operator(&stated, 1).known);
    assert_int_equal(job_info(&stated).unknown_count, 1);
    job_expect_load(job_operator(&stated, 0).per_sample[MDOT_PHASE_FORWARD], 0, 4 * 192, 4 * 5);
    assert_non_null(strstr(stated.warnings, "com.example:Fancy"));
    assert_null(strstr(stated.warnings, "assumed to be as large"));
    job_expect_load(job_operator(&guessed, 0).per_sample[MDOT_PHASE_FORWARD], 0, 4 * 192, 4 * 192);
    assert_non_null(strstr(guessed.warnings, "assumed to be as large as its first input"));
    job_end(&stated);
    job_end(&guessed);
}

static void known_operators_that_break_rules_become_opaque(void **state)
{
    (void)state;
    onnx_builder *b = job_begin("N,3,8,8");
    job_add_conv(b, "x", "c", "16,5,3,3", 1, false);
    job_reading r = job_expect_output(b, "c");
    job_expect_types(&r, "Conv");
    assert_false(job_operator(&r, 0).known);
    assert_non_null(strstr(r.warnings, "the input has 3"));
    job_end(&r);
}

/* ---- Training graphs -------------------------------------------------------------------------------------------- */

/* Linear, Relu, Linear, loss. `training` adds gradients as ONNX Runtime writes them, and an optimizer. */
static onnx_builder *classifier(bool training)
{
    onnx_builder *b = job_begin("N,64");
    onnx_import(b, "com.microsoft", 1);
    onnx_input(b, "labels", MDOT_DTYPE_I64, "N");
    static const char *const names[] = {"w1", "b1", "w2", "b2"}, *const shapes[] = {"32,64", "32", "10,32", "10"};
    for (int i = 0; i < 4; i++) {
        if (training) {
            onnx_input(b, names[i], MDOT_DTYPE_F32, shapes[i]);
        } else {
            onnx_initializer(b, names[i], MDOT_DTYPE_F32, shapes[i], NULL);
        }
    }
    onnx_node(b, "Gemm", "x,w1,b1", "h");
    onnx_attr_int(b, "transB", 1);
    onnx_node(b, "Relu", "h", "r");
    onnx_node(b, "Gemm", "r,w2,b2", "scores");
    onnx_attr_int(b, "transB", 1);
    onnx_node(b, "SoftmaxCrossEntropyLoss", "scores,labels", "loss,log_prob");
    onnx_output(b, "loss");
    if (!training) return b;
    onnx_node(b, "com.microsoft:SoftmaxCrossEntropyLossGrad", "loss,log_prob,labels", "scores_grad");
    onnx_node(b, "Gemm", "scores_grad,w2", "r_grad");
    onnx_node(b, "Gemm", "scores_grad,r", "w2_grad");
    onnx_attr_int(b, "transA", 1);
    onnx_node(b, "ReduceSum", "scores_grad", "b2_grad");
    onnx_node(b, "com.microsoft:ReluGrad", "r_grad,r", "h_grad");
    onnx_node(b, "Transpose", "x", "xt"); /* stands in the forward graph, but only the gradients read it */
    onnx_node(b, "MatMul", "xt,h_grad", "w1_grad");
    onnx_node(b, "ReduceSum", "h_grad", "b1_grad");
    onnx_node(b, "com.microsoft:AdamWOptimizer", "w1,w1_grad,w2,w2_grad,b1,b1_grad,b2,b2_grad", "updated");
    onnx_output(b, "w1_grad");
    onnx_output(b, "updated");
    return b;
}

static void gradients_and_updates_count_for_their_operators(void **state)
{
    (void)state;
    job_reading forward = job_expect(classifier(false)), training = job_expect(classifier(true));
    job_expect_types(&training, "Linear Relu Linear SoftmaxCrossEntropyLoss");
    job_expect_same(&forward, &training);
    assert_false(job_info(&forward).has_optimizer);
    assert_true(job_info(&training).has_optimizer);
    assert_int_equal(job_info(&training).optimizer, MDOT_OPTIMIZER_ADAMW);
    assert_compare(job_info(&training).parameters, ==, 32 * 64 + 32 + 320 + 10);
    assert_int_equal(job_info(&training).unknown_count, 0);
    job_end(&forward);
    job_end(&training);
}

/* A training graph operator is only treated as an alias if it has the inputs needed by the other operator. */
static void alias_without_its_inputs_becomes_opaque(void **state)
{
    (void)state;
    onnx_builder *b = job_begin("N,3,8,8");
    onnx_import(b, "com.microsoft", 1);
    onnx_initializer(b, "scale", MDOT_DTYPE_F32, "3", NULL);
    onnx_node(b, "com.microsoft:BatchNormInternal", "x,scale", "n");
    onnx_node(b, "Relu", "n", "y");
    job_reading r = job_expect_output(b, "y");
    job_expect_types(&r, "com.microsoft:BatchNormInternal Relu");
    job_end(&r);
}

static void optimizer_alone_stays_an_operator(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(17);
    onnx_import(b, "com.microsoft", 1);
    onnx_input(b, "w", MDOT_DTYPE_F32, "10,10");
    onnx_input(b, "g", MDOT_DTYPE_F32, "10,10");
    onnx_node(b, "com.microsoft:SGDOptimizerV2", "w,g", "updated");
    job_reading r = job_expect_output(b, "updated");
    job_expect_types(&r, "com.microsoft:SGDOptimizerV2");
    assert_int_equal(job_info(&r).unknown_count, 1);
    job_end(&r);
}

/* ---- Bad input -------------------------------------------------------------------------------------------------- */

static void graphs_without_operators_are_refused(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(17), *views = onnx_begin(17);
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,4");
    onnx_output(b, "x");
    onnx_input(views, "x", MDOT_DTYPE_F32, "N,4");
    onnx_node(views, "Flatten", "x", "y");
    onnx_output(views, "y");
    job_reading r = job_read_model(b, NULL, 0), s = job_read_model(views, NULL, 0);
    assert_int_equal(r.status, MDOT_MALFORMED);
    assert_non_null(strstr(r.err.message, "job.onnx: the graph contains only operators that are free"));
    assert_int_equal(s.status, MDOT_MALFORMED);
}

static void invalid_onnx_is_refused(void **state)
{
    (void)state;
    mdot_job *job = NULL;
    mdot_error err = {0};
    assert_int_equal(mdot_job_read_bytes("", 0, "empty", NULL, &job, &err), MDOT_MALFORMED);
    assert_int_equal(mdot_job_read_bytes("nonsense", 8, "text", NULL, &job, &err), MDOT_MALFORMED);
    assert_int_equal(mdot_job_read("/nonexistent/job.onnx", NULL, &job, &err), MDOT_NOT_FOUND);
    assert_non_null(strstr(err.message, "/nonexistent/job.onnx"));
    assert_null(job);
}

static void empty_dimensions_are_read_or_refused_with_a_message(void **state)
{
    (void)state;
    job_reading r = job_read_model(batched("0,3,8,8"), NULL, 0), s = job_read_model(batched("N,3,0,0"), NULL, 0);
    assert_true(r.status == MDOT_OK || r.err.message[0] != '\0');
    assert_true(s.status == MDOT_OK || s.err.message[0] != '\0');
    job_end(&r);
    job_end(&s);
}

static void excessive_flops_and_bytes_are_refused(void **state)
{
    (void)state;
    onnx_builder *b = job_begin("1,4611686018427387904");
    onnx_node(b, "Relu", "x", "y");
    onnx_output(b, "y");
    job_reading r = job_read_model(b, NULL, 0);
    assert_int_equal(r.status, MDOT_MALFORMED);
    assert_non_null(strstr(r.err.message, "job.onnx: operator 0 of the job (Relu)"));
    job_end(&r);
    b = onnx_begin(17); /* the summed dimension exceeds an integer's range, although each operand is smaller */
    onnx_input(b, "x", MDOT_DTYPE_F32, "1,1048576,1048576");
    onnx_input(b, "y", MDOT_DTYPE_F32, "1048576,1048576,1048576");
    onnx_node(b, "Einsum", "x,y", "z"); /* with a diagonal, because other sums become smaller products */
    onnx_attr_string(b, "equation", "naa,bcd->n");
    onnx_output(b, "z");
    r = job_read_model(b, NULL, 0);
    assert_int_equal(r.status, MDOT_MALFORMED);
    assert_non_null(strstr(r.err.message, "job.onnx: operator 0 of the job (Einsum)"));
    job_end(&r);
}

/* Each byte in a small training graph is changed once. The file is then refused or read. */
static void damaged_models_are_refused_or_read(void **state)
{
    (void)state;
    pb_buffer bytes = onnx_finish(classifier(true));
    for (size_t i = 0; i < bytes.size; i++) {
        unsigned char whole = bytes.data[i];
        for (int flip = 1; flip < 256; flip *= 4) {
            mdot_job *job = NULL;
            mdot_error err = {0};
            bytes.data[i] = (unsigned char)(whole ^ flip);
            mdot_status status = mdot_job_read_bytes(bytes.data, bytes.size, "job.onnx", NULL, &job, &err);
            assert_int_equal(status == MDOT_OK, job != NULL);
            if (status != MDOT_OK) assert_compare(err.message[0], !=, '\0');
            mdot_job_destroy(job);
        }
        bytes.data[i] = whole;
    }
    pb_free(&bytes);
}

static void twenty_thousand_nodes_are_read(void **state)
{
    (void)state;
    onnx_builder *b = onnx_begin(17);
    char in[32] = "x", out[32];
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,64");
    for (int i = 0; i < 20000; i++) {
        snprintf(out, sizeof out, "y%d", i);
        onnx_node(b, i % 2 ? "Sigmoid" : "Relu", in, out);
        memcpy(in, out, sizeof in);
    }
    job_reading r = job_expect_output(b, in);
    assert_int_equal(job_info(&r).operator_count, 20000);
    assert_int_equal(job_operator(&r, 19999).depth, 19999);
    assert_int_equal(job_operator(&r, 0).height, 19999);
    job_end(&r);
}

static void unknown_options_are_refused(void **state)
{
    (void)state;
    mdot_job_options options = MDOT_INIT(mdot_job_options);
    options.reserved = 1;
    mdot_job *job = NULL;
    mdot_error err = {0};
    assert_int_equal(mdot_job_read_bytes("", 0, "job.onnx", &options, &job, &err), MDOT_INCOMPATIBLE);
    options = (mdot_job_options){0};
    assert_int_equal(mdot_job_read_bytes("", 0, "job.onnx", &options, &job, &err), MDOT_INVALID_ARGUMENT);
    assert_string_equal(err.message, "the struct_size of a mdot_job_options is 0 instead of sizeof(mdot_job_options)");
    assert_null(job);
}

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

/* Returns "c0,c1,c2 …". The caller frees it. */
static char *list_names(char letter, int count)
{
    char *names = malloc((size_t)count * 8), *at = names;
    assert_non_null(names);
    for (int i = 0; i < count; i++) at += sprintf(at, i == 0 ? "%c%d" : ",%c%d", letter, i);
    return names;
}

static long peak_kib(void)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_maxrss;
}

/* mdot reports an output once, rather than once for each other output. */
static void unknown_operator_with_many_outputs_needs_little_memory(void **state)
{
    (void)state;
    enum { OUTPUTS = 8000, MOST_KIB = 512 << 10 };
    onnx_builder *b = onnx_begin(17);
    char *names = list_names('o', OUTPUTS);
    onnx_input(b, "x", MDOT_DTYPE_F32, "1,4");
    onnx_node(b, "Fancy", "x", names);
    onnx_node(b, "Sum", names, "y");
    onnx_output(b, "y");
    long before = peak_kib();
    job_reading r = job_expect(b);
    assert_compare(peak_kib() - before, <, MOST_KIB);
    assert_int_equal(job_info(&r).operator_count, 2);
    assert_compare(job_operator(&r, 0).per_sample[MDOT_PHASE_FORWARD].bytes_written, ==, OUTPUTS * 16.0);
    job_end(&r);
    free(names);
}

/* Each node takes twenty file bytes, and a thousand times as much after constant folding. */
static void job_beyond_its_memory_limit_is_refused(void **state)
{
    (void)state;
    enum { CONSTANTS = 4000 };
    static const int64_t zero = 0, one = 1, size = 8192;
    onnx_builder *b = onnx_begin(17);
    char *names = list_names('c', CONSTANTS);
    onnx_input(b, "x", MDOT_DTYPE_I64, "1,8192");
    onnx_initializer(b, "zero", MDOT_DTYPE_I64, "", &zero);
    onnx_initializer(b, "one", MDOT_DTYPE_I64, "", &one);
    onnx_initializer(b, "size", MDOT_DTYPE_I64, "", &size);
    for (int i = 0; i < CONSTANTS; i++) {
        char name[16];
        snprintf(name, sizeof name, "c%d", i);
        onnx_node(b, "Range", "zero,size,one", name);
    }
    onnx_node(b, "Sum", names, "s");
    onnx_node(b, "Add", "s,x", "y");
    onnx_output(b, "y");
    job_reading r = job_read_model(b, NULL, 0);
    assert_int_equal(r.status, MDOT_OUT_OF_MEMORY);
    assert_null(r.job);
    assert_non_null(strstr(r.err.message, "reading takes more memory than is allowed for a file of this size: "));
    assert_non_null(strstr(r.err.message, " MiB"));
    job_end(&r);
    free(names);
}

/* Equal nodes are found in one walk. A separate search for each node would take minutes. */
static void equal_readers_are_merged(void **state)
{
    (void)state;
    enum { READERS = 100000, SUMMED = 1000 };
    onnx_builder *b = job_begin("N,8");
    char name[32], *all = calloc(SUMMED, sizeof name), *sums = calloc(READERS / SUMMED, sizeof name);
    assert_non_null(all);
    assert_non_null(sums);
    for (int i = 0; i < READERS; i++) {
        snprintf(name, sizeof name, "r%d", i);
        onnx_node(b, "Relu", "x", name);
    }
    for (int i = 0, used = 0; i < READERS / SUMMED; i++) {
        for (int k = 0, at = 0; k < SUMMED; k++) at += sprintf(all + at, "%sr%d", k > 0 ? "," : "", SUMMED * i + k);
        snprintf(name, sizeof name, "s%d", i);
        onnx_node(b, "Sum", all, name);
        used += sprintf(sums + used, "%s%s", i > 0 ? "," : "", name);
    }
    onnx_node(b, "Sum", sums, "y");
    job_reading r = job_expect_output(b, "y");
    job_expect_types(&r, "Relu Sum Sum");
    job_end(&r);
    free(all);
    free(sums);
}

/* Without a name, the batch is the first dimension of the first input with two or more that is not empty. */
static void the_first_input_with_rows_gives_the_batch(void **state)
{
    (void)state;
    unsigned seed = 3;
    for (int round = 0; round < 300; round++) {
        onnx_builder *b = onnx_begin(17);
        int64_t wanted = 1;
        bool is_found = false;
        for (int i = 0; i < 3; i++) {
            char name[4], hidden[4], shape[32] = "";
            snprintf(name, sizeof name, "i%d", i);
            snprintf(hidden, sizeof hidden, "h%d", i);
            int rank = (int)((seed = seed * 1664525 + 1013904223) >> 16) % 4;
            for (int axis = 0; axis < rank; axis++) {
                int extent = (int)((seed = seed * 1664525 + 1013904223) >> 16) % 6;
                sprintf(shape + strlen(shape), "%s%d", axis > 0 ? "," : "", extent);
                if (axis == 0 && rank > 1 && extent > 0 && !is_found) {
                    wanted = extent;
                    is_found = true;
                }
            }
            onnx_input(b, name, MDOT_DTYPE_F32, shape);
            onnx_node(b, "Sigmoid", name, hidden);
            onnx_output(b, hidden);
        }
        job_reading r = job_read_model(b, NULL, 0);
        if (r.status == MDOT_OK) assert_compare(job_info(&r).batch, ==, wanted);
        job_end(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unknown_options_are_refused),
        cmocka_unit_test(unknown_operator_with_many_outputs_needs_little_memory),
        cmocka_unit_test(job_beyond_its_memory_limit_is_refused),
        cmocka_unit_test(flops_and_bytes_per_sample_are_independent_of_the_batch),
        cmocka_unit_test(unbound_symbols_are_listed),
        cmocka_unit_test(named_batch_is_found_at_any_position),
        cmocka_unit_test(recurrence_layout_determines_the_batch),
        cmocka_unit_test(the_first_input_with_rows_gives_the_batch),
        cmocka_unit_test(unknown_operators_become_opaque),
        cmocka_unit_test(known_operators_that_break_rules_become_opaque),
        cmocka_unit_test(gradients_and_updates_count_for_their_operators),
        cmocka_unit_test(alias_without_its_inputs_becomes_opaque),
        cmocka_unit_test(optimizer_alone_stays_an_operator),
        cmocka_unit_test(graphs_without_operators_are_refused),
        cmocka_unit_test(invalid_onnx_is_refused),
        cmocka_unit_test(empty_dimensions_are_read_or_refused_with_a_message),
        cmocka_unit_test(excessive_flops_and_bytes_are_refused),
        cmocka_unit_test(damaged_models_are_refused_or_read),
        cmocka_unit_test(twenty_thousand_nodes_are_read),
        cmocka_unit_test(equal_readers_are_merged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
