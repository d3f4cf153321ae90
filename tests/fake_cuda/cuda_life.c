/* cuda_life.c — see cuda_life.h. */
#include "tests/fake_cuda/cuda_life.h"
#include "tests/support/assertions.h"

#include "runtime/core/objects.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

const char *const cuda_functions[CUDA_FUNCTION_COUNT] = {
#define NAME(name, suffix, parameters) #name,
    RT_CUDA_SYMBOL_MAP(NAME)
#undef NAME
};

enum { BATCH = 20, LONE_CALLS = 3 };

static void note_answer(cuda_life *l, const predict_call *c)
{
    if (predict_is_right(c, true)) {
        if (l->cpu_answers > 0) fail_msg("the GPU answers after the CPU has");
        l->gpu_answers++;
    } else {
        predict_assert(c, false);
        l->cpu_answers++;
    }
}

static void run_calls(mdot_context *context, cuda_life *l)
{
    static predict_call calls[BATCH];
    rt_item items[BATCH];
    for (int i = 0; i < LONE_CALLS; i++) {
        predict_prepare(&calls[0], 3 + 6 * i, i);
        assert_int_equal(predict_run(context, &calls[0], &l->err), MDOT_OK);
        note_answer(l, &calls[0]);
    }
    for (int i = 0; i < BATCH; i++) {
        predict_prepare(&calls[i], 9, i);
        items[i] = (rt_item){calls[i].inputs, calls[i].outputs};
    }
    rt_run_many(context, rt_entry(context->predictor->table, 0), 9, items, BATCH);
    for (int i = 0; i < BATCH; i++) {
        note_answer(l, &calls[i]);
        if (predict_is_right(&calls[i], true) != predict_is_right(&calls[0], true))
            fail_msg("a batch's answers come from both devices");
    }
}

cuda_life cuda_live(const char *device)
{
    cuda_life l = {0};
    mdot_predictor *predictor = NULL;
    mdot_context *context = NULL;
    l.open_status = cuda_fixture_predictor(&cuda_fixture_shared, device, &predictor, &l.err);
    if (l.open_status != MDOT_OK) {
        assert_null(predictor);
        return l;
    }
    l.create_status = mdot_context_create(predictor, &context, &l.err);
    if (l.create_status == MDOT_OK) {
        mdot_predictor_info info = MDOT_INIT(mdot_predictor_info);
        const char *message;
        mdot_predictor_get_info(predictor, &info);
        l.runs_on_gpu = strcmp(info.device, "cpu") != 0;
        run_calls(context, &l);
        l.device_status = mdot_context_get_device_status(context, &message);
        strcpy(l.message, message);
    } else {
        assert_null(context);
    }
    mdot_context_destroy(context);
    mdot_predictor_close(predictor);
    return l;
}

static void assert_reported(mdot_status status, const char *message)
{
    if (status != MDOT_DEVICE && status != MDOT_OUT_OF_MEMORY) fail_msg("%s", mdot_status_name(status));
    assert_compare(message[0], !=, '\0');
}

void cuda_life_check(const cuda_life *l, bool is_required)
{
    if (!is_required) {
        assert_int_equal(l->open_status, MDOT_OK);
        assert_int_equal(l->create_status, MDOT_OK);
    }
    if (l->open_status != MDOT_OK) assert_reported(l->open_status, l->err.message);
    if (l->create_status != MDOT_OK) assert_reported(l->create_status, l->err.message);
    if (l->open_status == MDOT_OK && l->create_status == MDOT_OK) {
        assert_int_equal(l->gpu_answers + l->cpu_answers, LONE_CALLS + BATCH);
        if (l->runs_on_gpu && l->cpu_answers > 0) assert_reported(l->device_status, l->message);
        if (l->cpu_answers == 0) assert_int_equal(l->device_status, MDOT_OK);
        if (!l->runs_on_gpu) assert_int_equal(l->device_status, MDOT_OK);
    }
}

bool cuda_life_was_noticed(const cuda_life *l)
{
    return l->open_status != MDOT_OK || l->create_status != MDOT_OK || l->device_status != MDOT_OK || !l->runs_on_gpu;
}
