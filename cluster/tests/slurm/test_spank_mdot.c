/* test_spank_mdot.c — the option --mdot in sbatch, salloc and srun. This program takes the place of Slurm's commands:
 * it registers the option, calls it, and collects the environment that the plugin writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "slurm/request.h"
#include "tests/slurm/support/small_job.h"
#include "tests/support/process.h"

#include <slurm/spank.h>

static struct spank_option option;
static spank_context_t context;
static char *environment[24];
static size_t variables, most_variables;
static char message[1024];

spank_err_t spank_option_register(spank_t spank, struct spank_option *registered)
{
    (void)spank;
    option = *registered;
    return ESPANK_SUCCESS;
}

spank_context_t spank_context(void) { return context; }

const char *spank_strerror(spank_err_t code) { return code == ESPANK_NOSPACE ? "Buffer too small" : "another reason"; }

spank_err_t spank_job_control_setenv(spank_t spank, const char *name, const char *value, int overwrites)
{
    (void)spank;
    assert_int_equal(overwrites, 1);
    if (variables >= most_variables) return ESPANK_NOSPACE;
    size_t bytes = strlen(name) + strlen(value) + 2;
    environment[variables] = malloc(bytes);
    snprintf(environment[variables++], bytes, "%s=%s", name, value);
    return ESPANK_SUCCESS;
}

void slurm_error(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
}

static char *folder, *path;
static unsigned char *job;
static size_t job_bytes;

static int set_up(void **state)
{
    (void)state;
    folder = process_make_folder();
    path = process_in_folder(folder, "many.job");
    small_job_save(1500, path, &job, &job_bytes);
    assert_true(job_bytes > SL_PIECE_BYTES);
    assert_true(job_bytes < 128 * 1024); /* several pieces, within the default limit */
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    process_remove_folder(folder);
    free(path);
    free(job);
    return 0;
}

static int reset(void **state)
{
    (void)state;
    for (size_t i = 0; i < variables; i++) free(environment[i]);
    variables = 0;
    most_variables = sizeof environment / sizeof environment[0];
    message[0] = '\0';
    context = S_CTX_ALLOCATOR;
    return 0;
}

static char plugin_line[64]; /* argument of the plugin in plugstack.conf; empty: none */

/* Runs a command with --mdot=`text`, or without the option if it is NULL. */
static void run(const char *text)
{
    char *arguments[] = {plugin_line};
    int count = plugin_line[0] != '\0';
    assert_int_equal(slurm_spank_init(NULL, count, arguments), ESPANK_SUCCESS);
    assert_string_equal(option.name, "mdot");
    assert_int_equal(option.has_arg, 1);
    if (text != NULL) assert_int_equal(option.cb(option.val, text, 0), ESPANK_SUCCESS);
    assert_int_equal(slurm_spank_init_post_opt(NULL, count, arguments), ESPANK_SUCCESS);
    assert_int_equal(slurm_spank_exit(NULL, count, arguments), ESPANK_SUCCESS);
}

static void run_with_file(const char *settings)
{
    char text[1024];
    snprintf(text, sizeof text, "%s%s", path, settings);
    run(text);
}

static void expect_parcel(const char *settings)
{
    sl_parcel parcel;
    mdot_error err = {0};
    assert_string_equal(message, "");
    mdot_status status = sl_parcel_open((const char *const *)environment, variables, SL_MAX_JOB_BYTES, &parcel, &err);
    if (status != MDOT_OK) fail_msg("%s", err.message);
    assert_null(parcel.problem);
    assert_string_equal(parcel.settings, settings);
    assert_int_equal(parcel.job_bytes, job_bytes);
    assert_memory_equal(parcel.job, job, job_bytes);
    sl_parcel_close(&parcel);
}

/* Expects this reason in the user's message and in the environment, which has no job. */
static void expect_problem(const char *reason)
{
    sl_parcel parcel;
    expect_contains(message, reason);
    expect_contains(message, "--mdot: ");
    expect_contains(message, "; submitted without a prediction");
    assert_int_equal(sl_parcel_open((const char *const *)environment, variables, SL_MAX_JOB_BYTES, &parcel, NULL),
                     MDOT_OK);
    assert_non_null(parcel.problem);
    expect_contains(parcel.problem, reason);
    assert_null(parcel.job);
    sl_parcel_close(&parcel);
}

static void the_job_and_its_settings_travel_with_the_request(void **state)
{
    static const spank_context_t contexts[] = {S_CTX_LOCAL, S_CTX_ALLOCATOR};
    for (size_t i = 0; i < sizeof contexts / sizeof contexts[0]; i++) {
        reset(state);
        context = contexts[i];
        run_with_file(",batch=32,steps=10");
        expect_parcel("batch=32,steps=10");
    }
}

static void other_programs_and_commands_without_the_option_send_nothing(void **state)
{
    (void)state;
    static const spank_context_t contexts[] = {S_CTX_ERROR, S_CTX_REMOTE, S_CTX_SLURMD, S_CTX_JOB_SCRIPT};
    for (size_t i = 0; i < sizeof contexts / sizeof contexts[0]; i++) {
        context = contexts[i];
        run_with_file("");
        assert_int_equal(variables, 0);
    }
    context = S_CTX_ALLOCATOR;
    run(NULL);
    assert_int_equal(variables, 0);
    assert_string_equal(message, "");
}

static void the_command_line_replaces_the_script(void **state)
{
    (void)state;
    char text[1024];
    assert_int_equal(slurm_spank_init(NULL, 0, NULL), ESPANK_SUCCESS);
    assert_int_equal(option.cb(option.val, "/nonexistent/a.job", 0), ESPANK_SUCCESS);
    snprintf(text, sizeof text, "%s,steps=5", path);
    assert_int_equal(option.cb(option.val, text, 0), ESPANK_SUCCESS);
    assert_int_equal(option.cb(option.val, "/nonexistent/b.job", 1), ESPANK_SUCCESS); /* on the node */
    assert_int_equal(slurm_spank_init_post_opt(NULL, 0, NULL), ESPANK_SUCCESS);
    slurm_spank_exit(NULL, 0, NULL);
    expect_parcel("steps=5");
}

static void faults_reach_the_user_and_the_controller(void **state)
{
    run("/nonexistent/a.job");
    char reason[128];
    snprintf(reason, sizeof reason, "/nonexistent/a.job: %s", strerror(ENOENT));
    expect_problem(reason);
    reset(state);
    run("");
    expect_problem("the file is missing: FILE.job must come first");
    reset(state);
    run("steps=10");
    expect_problem("FILE.job");
    reset(state);
    run_with_file(",colour=red");
    expect_problem("colour");
    reset(state);
    option.cb(option.val, NULL, 0);
    assert_int_equal(slurm_spank_init_post_opt(NULL, 0, NULL), ESPANK_SUCCESS);
    slurm_spank_exit(NULL, 0, NULL);
    expect_problem("the file is missing");
}

static void a_full_environment_is_a_fault(void **state)
{
    static const char *const names[] = {SL_SETTINGS_NAME, "MDOT_JOB_1", "MDOT_JOB_2"};
    for (size_t i = 0; i < 3; i++) {
        char reason[64];
        reset(state);
        most_variables = i;
        run_with_file("");
        snprintf(reason, sizeof reason, "%s: Buffer too small", names[i]);
        expect_contains(message, reason);
    }
}

static void the_limit_of_bytes_is_that_of_plugstack_conf(void **state)
{
    char large[1024], line[1200];
    snprintf(plugin_line, sizeof plugin_line, "max_bytes=%zu", job_bytes);
    run_with_file("");
    expect_parcel("");
    reset(state);
    snprintf(plugin_line, sizeof plugin_line, "max_bytes=%zu", job_bytes - 1);
    run_with_file("");
    expect_problem("has more than");
    static const char *const wrong[] = {"max_bytes=0", "max_bytes=786433", "max_bytes=x"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) { /* the default limit applies */
        reset(state);
        snprintf(plugin_line, sizeof plugin_line, "%s", wrong[i]);
        run_with_file("");
        expect_contains(message, "plugstack.conf: max_bytes must be between 1 and 786432");
        assert_true(variables > 2);
    }
    static const char *const right[] = {"max_bytes=786432", "other=1"};
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        reset(state);
        snprintf(plugin_line, sizeof plugin_line, "%s", right[i]);
        run_with_file("");
        expect_parcel("");
    }
    reset(state);
    plugin_line[0] = '\0';
    unsigned char *bytes;
    size_t count;
    snprintf(large, sizeof large, "%s/large.job", folder);
    small_job_save(3000, large, &bytes, &count);
    assert_true(count > 128 * 1024);
    free(bytes);
    run(large);
    expect_problem("has more than 131072");
    reset(state);
    snprintf(plugin_line, sizeof plugin_line, "max_bytes=1");
    snprintf(line, sizeof line, "%s", large);
    run(line);
    expect_problem("has more than 1 ");
    plugin_line[0] = '\0';
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_job_and_its_settings_travel_with_the_request, reset, reset),
        cmocka_unit_test_setup_teardown(other_programs_and_commands_without_the_option_send_nothing, reset, reset),
        cmocka_unit_test_setup_teardown(the_command_line_replaces_the_script, reset, reset),
        cmocka_unit_test_setup_teardown(faults_reach_the_user_and_the_controller, reset, reset),
        cmocka_unit_test_setup_teardown(a_full_environment_is_a_fault, reset, reset),
        cmocka_unit_test_setup_teardown(the_limit_of_bytes_is_that_of_plugstack_conf, reset, reset),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
