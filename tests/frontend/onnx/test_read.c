/* test_read.c — files whose owner changes them while they are read. */
#include "frontend/onnx/source.h"
#include "tests/support/assertions.h"

#include "mdot/mdotjob.h"
#include "tests/support/frontend_fixture.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { CHUNKS = 5, TAIL_BYTES = 100, FILE_BYTES = (CHUNKS - 1) * FE_CHUNK_BYTES + TAIL_BYTES };

/* A file with CHUNKS chunks, each filled with its letter. The caller removes it. */
static int make_file(char path[32])
{
    strcpy(path, "/tmp/mdot-read-XXXXXX");
    int file = mkstemp(path);
    assert_compare(file, >=, 0);
    for (int i = 0; i < FILE_BYTES; i++) {
        char letter = (char)('a' + i / FE_CHUNK_BYTES);
        assert_int_equal(pwrite(file, &letter, 1, i), 1);
        if (i % FE_CHUNK_BYTES == 0 && i + 1 < FILE_BYTES - TAIL_BYTES) i += FE_CHUNK_BYTES - 2; /* ends are enough */
    }
    return file;
}

static void each_byte_is_read_once_and_only_when_needed(void **state)
{
    (void)state;
    char path[32];
    int file = make_file(path);
    ir_arena *arena = ir_arena_create(0);
    fe_source source;
    assert_int_equal(fe_open_source(path, arena, &source, NULL), MDOT_OK);
    assert_int_equal(source.size_bytes, FILE_BYTES);
    assert_int_equal(fe_need(&source, 2 * FE_CHUNK_BYTES, 1, NULL), MDOT_OK);
    assert_int_equal(source.bytes[2 * FE_CHUNK_BYTES], 'c');
    for (int i = 0; i < CHUNKS; i++) assert_int_equal(pwrite(file, "Z", 1, (off_t)i * FE_CHUNK_BYTES), 1);
    assert_int_equal(source.bytes[0], 0);
    assert_int_equal(fe_need(&source, 0, FILE_BYTES, NULL), MDOT_OK);
    assert_int_equal(source.bytes[0], 'Z');
    assert_int_equal(source.bytes[2 * FE_CHUNK_BYTES], 'c');
    assert_int_equal(source.bytes[3 * FE_CHUNK_BYTES], 'Z');
    assert_int_equal(source.bytes[FILE_BYTES - 1], 'e');
    fe_close_source(&source);
    ir_arena_destroy(arena);
    close(file);
    unlink(path);
}

static void truncated_file_is_refused_when_its_end_is_needed(void **state)
{
    (void)state;
    char path[32];
    int file = make_file(path);
    mdot_error err;
    ir_arena *arena = ir_arena_create(0);
    fe_source source;
    assert_int_equal(fe_open_source(path, arena, &source, NULL), MDOT_OK);
    assert_int_equal(ftruncate(file, FE_CHUNK_BYTES), 0);
    assert_int_equal(fe_need(&source, 0, FE_CHUNK_BYTES, NULL), MDOT_OK);
    assert_int_equal(fe_need(&source, FILE_BYTES - 1, 1, &err), MDOT_MALFORMED);
    assert_non_null(strstr(err.message, "the file was truncated while it was read"));
    assert_null(fe_read_range(file, FE_CHUNK_BYTES - 1, 2, arena));
    fe_close_source(&source);
    ir_arena_destroy(arena);
    close(file);
    unlink(path);
}

/* A job whose type names fill more than a page. */
static pb_buffer long_job(void)
{
    onnx_builder *b = onnx_begin(17);
    char from[16] = "x", to[16];
    onnx_input(b, "x", MDOT_DTYPE_F32, "N,8");
    for (int i = 0; i < 2000; i++) {
        snprintf(to, sizeof to, "v%d", i);
        onnx_node(b, "Relu", from, to);
        strcpy(from, to);
    }
    onnx_output(b, from);
    return onnx_finish(b);
}

/* Truncates and restores the file until it is killed. */
static void rewrite_forever(const char *path, const pb_buffer *model)
{
    int file = open(path, O_WRONLY);
    if (file < 0) _exit(1);
    for (;;)
        if (ftruncate(file, 4096) != 0 || pwrite(file, model->data + 4096, model->size - 4096, 4096) < 0) _exit(1);
}

static void job_is_read_or_refused_while_its_owner_truncates_it(void **state)
{
    (void)state;
    enum { READS = 300 };
    pb_buffer model = long_job();
    assert_compare(model.size, >, 4 * 4096);
    char path[] = "/tmp/mdot-read-XXXXXX";
    int file = mkstemp(path);
    assert_int_equal(pwrite(file, model.data, model.size, 0), model.size);
    pid_t writer = fork();
    assert_compare(writer, >=, 0);
    if (writer == 0) rewrite_forever(path, &model);
    for (int i = 0; i < READS; i++) {
        mdot_job *job = NULL;
        mdot_error err = {0};
        mdot_status status = mdot_job_read(path, NULL, &job, &err);
        assert_compare(status == MDOT_OK, ==, job != NULL);
        if (status != MDOT_OK) assert_int_equal(status, MDOT_MALFORMED);
        mdot_job_destroy(job);
    }
    kill(writer, SIGKILL);
    waitpid(writer, NULL, 0);
    pb_free(&model);
    close(file);
    unlink(path);
}

/* A model with raw_data in a file hole, which takes no disk space. */
static void weights_of_a_job_stay_unread(void **state)
{
    (void)state;
    enum { WEIGHT_BYTES = 256 << 20 };
    pb_buffer tensor = {0}, graph = {0}, model = {0}, node = {0}, opset = {0};
    pb_int(&tensor, 1, WEIGHT_BYTES / 4);
    pb_int(&tensor, 2, 1); /* f32 */
    pb_text(&tensor, 8, "w");
    pb_varint(&tensor, 9 << 3 | 2);
    pb_varint(&tensor, WEIGHT_BYTES);
    pb_text(&node, 1, "w");
    pb_text(&node, 2, "y");
    pb_text(&node, 4, "Relu");
    pb_message(&graph, 1, &node);
    pb_varint(&graph, 5 << 3 | 2);
    pb_varint(&graph, tensor.size + WEIGHT_BYTES);
    pb_raw(&graph, tensor.data, tensor.size);
    pb_int(&opset, 2, 17);
    pb_message(&model, 8, &opset);
    pb_varint(&model, 7 << 3 | 2);
    pb_varint(&model, graph.size + WEIGHT_BYTES);
    pb_raw(&model, graph.data, graph.size);
    char path[] = "/tmp/mdot-read-XXXXXX";
    int file = mkstemp(path);
    assert_int_equal(pwrite(file, model.data, model.size, 0), model.size);
    assert_int_equal(ftruncate(file, (off_t)model.size + WEIGHT_BYTES), 0);
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    mdot_job *job = NULL;
    mdot_error err = {0};
    mdot_status status = mdot_job_read(path, NULL, &job, &err);
    getrusage(RUSAGE_SELF, &after);
    /* the job is refused or read; either way the scan has passed the weights */
    assert_true(status == MDOT_OK || strstr(err.message, "byte") == NULL);
    assert_compare((after.ru_maxrss - before.ru_maxrss) * 1024, <, WEIGHT_BYTES / 4);
    mdot_job_destroy(job);
    pb_free(&tensor);
    pb_free(&graph);
    pb_free(&model);
    close(file);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_byte_is_read_once_and_only_when_needed),
        cmocka_unit_test(truncated_file_is_refused_when_its_end_is_needed),
        cmocka_unit_test(job_is_read_or_refused_while_its_owner_truncates_it),
        cmocka_unit_test(weights_of_a_job_stay_unread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
