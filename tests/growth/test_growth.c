/* test_growth.c — the work of reading a job, importing, planning and generating code grows nearly linearly with the
 * model, rather than quadratically. A prediction goes through a job's operators only as often as necessary. Work is
 * counted in basic blocks and in bytes of the arena. A special build of the libraries calls the counter below in
 * every block (-fsanitize-coverage=trace-pc), so that the counts are the same on every machine under any load. Four
 * times the nodes may cost as much more as n log n does, and a little for tables whose size is a power of two.
 * Quadratic work costs more, even if it is only a thirtieth of the work on the small model. For LLVM, the test counts
 * the module that its optimiser receives: instructions, and for each alias the uses of its target, because LLVM looks
 * at all of them. */
#include "cli/report/report.h"
#include "codegen/cpu/cpu_images.h"
#include "frontend/onnx/onnx.h"
#include "ir/ops.h"
#include "ir/passes.h"
#include "mdot/mdotjob.h"
#include "plan/plan.h"
#include "plan/planner.h"
#include "runtime/perf/analysis_parts.h"
#include "runtime/perf/step_time.h"
#include "runtime/predict/analytic_correction.h"
#include "tests/growth/growth_models.h"
#include "tests/support/assertions.h"

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SMALL = 1500, TIMES = 4, LENGTH = 16 };
static const double most = 1.1 * TIMES;

/* ---- Counting ---------------------------------------------------------------------------------------------------- */

static uint64_t blocks;

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void) { blocks++; }

static double allocated_bytes; /* in all arenas */

void *__real_ir_arena_alloc(ir_arena *arena, size_t count, size_t size_bytes);
void *__wrap_ir_arena_alloc(ir_arena *arena, size_t count, size_t size_bytes);
void *__wrap_ir_arena_alloc(ir_arena *arena, size_t count, size_t size_bytes)
{
    allocated_bytes += (double)count * (double)size_bytes;
    return __real_ir_arena_alloc(arena, count, size_bytes);
}

static double llvm_work; /* for the last module */

static double count_instructions(LLVMValueRef function)
{
    double count = 0;
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(function); b != NULL; b = LLVMGetNextBasicBlock(b))
        for (LLVMValueRef i = LLVMGetFirstInstruction(b); i != NULL; i = LLVMGetNextInstruction(i)) count++;
    return count;
}

static double count_uses(LLVMValueRef value)
{
    double count = 0;
    for (LLVMUseRef use = LLVMGetFirstUse(value); use != NULL; use = LLVMGetNextUse(use)) count++;
    return count;
}

LLVMErrorRef __wrap_LLVMRunPasses(LLVMModuleRef module, const char *passes, LLVMTargetMachineRef machine,
                                  LLVMPassBuilderOptionsRef options);
LLVMErrorRef __wrap_LLVMRunPasses(LLVMModuleRef module, const char *passes, LLVMTargetMachineRef machine,
                                  LLVMPassBuilderOptionsRef options)
{
    (void)passes, (void)machine, (void)options;
    llvm_work = 0;
    for (LLVMValueRef f = LLVMGetFirstFunction(module); f != NULL; f = LLVMGetNextFunction(f))
        llvm_work += count_instructions(f);
    for (LLVMValueRef a = LLVMGetFirstGlobalAlias(module); a != NULL; a = LLVMGetNextGlobalAlias(a))
        llvm_work += count_uses(LLVMAliasGetAliasee(a));
    return NULL;
}

LLVMBool __wrap_LLVMTargetMachineEmitToMemoryBuffer(LLVMTargetMachineRef machine, LLVMModuleRef module,
                                                    LLVMCodeGenFileType type, char **out_message,
                                                    LLVMMemoryBufferRef *out_buffer);
LLVMBool __wrap_LLVMTargetMachineEmitToMemoryBuffer(LLVMTargetMachineRef machine, LLVMModuleRef module,
                                                    LLVMCodeGenFileType type, char **out_message,
                                                    LLVMMemoryBufferRef *out_buffer)
{
    (void)machine, (void)module, (void)type, (void)out_buffer;
    *out_message = LLVMCreateMessage("not requested");
    return true;
}

typedef struct work {
    double blocks, bytes;
    double llvm; /* for code generation */
} work;

/* ---- Measured stages --------------------------------------------------------------------------------------------- */

static bool has_length(const growth_model *model) { return strcmp(model->name, "encoder") == 0; }

static work read_job(const growth_model *model, const pb_buffer *bytes)
{
    const mdot_dim_binding length = {.name = "N", .value = LENGTH};
    mdot_job_options options = MDOT_INIT(mdot_job_options);
    options.dims = &length;
    options.dim_count = has_length(model);
    mdot_job *job = NULL;
    mdot_error err = {0};
    blocks = 0;
    mdot_status status = mdot_job_read_bytes(bytes->data, bytes->size, model->name, &options, &job, &err);
    const work done = {.blocks = (double)blocks};
    if (status != MDOT_OK) fail_msg("%s", err.message);
    mdot_job_destroy(job);
    return done;
}

static work import(const growth_model *model, const pb_buffer *bytes, ir_arena *arena, ir_graph **out_graph)
{
    mdot_error err = {0};
    blocks = 0;
    mdot_status status =
        fe_import_bytes(bytes->data, bytes->size, model->name, NULL, &(fe_options){0}, arena, out_graph, &err);
    const work done = {.blocks = (double)blocks, .bytes = (double)arena->used_bytes};
    if (status != MDOT_OK) fail_msg("%s", err.message);
    return done;
}

static work plan(ir_graph *graph, ir_arena *arena, pl_plan **out_plan)
{
    mdot_error err = {0};
    pl_plan *made = NULL;
    size_t before = arena->used_bytes;
    blocks = 0;
    if (graph->symbol != NULL) graph->max_length = LENGTH;
    mdot_status status = ir_run_passes(graph, NULL, &err);
    if (status == MDOT_OK) status = pl_build(graph, arena, &made, &err);
    const work done = {.blocks = (double)blocks, .bytes = (double)(arena->used_bytes - before)};
    if (status != MDOT_OK) fail_msg("%s", err.message);
    *out_plan = made;
    return done;
}

/* Generates code up to LLVM's input. */
static work generate(pl_plan *plan, ir_arena *arena)
{
    const cg_cpu_target *target = cg_cpu_target_find(MDOT_CPU_X86_64_V3, CG_FP32);
    const cg_entry entry = {.name = "run", .graph = plan->graph, .plan_count = 1, .plans = &plan};
    const cg_options options = {.predictor_name = "growth", .in_process = true};
    cg_cpu_images images;
    mdot_error err = {0};
    blocks = 0;
    allocated_bytes = llvm_work = 0;
    mdot_status status = cg_cpu_make_images_for(&target, 1, &entry, 1, &options, arena, &images, &err);
    const work done = {(double)blocks, allocated_bytes, llvm_work};
    cg_cpu_images_done(&images);
    assert_int_equal(status, MDOT_TOOLCHAIN);
    assert_non_null(strstr(err.message, "not requested"));
    return done;
}

enum { JOB, IMPORT, PLAN, CODE, STAGES };
static const char *const stages[] = {"reading it as a job", "importing it", "planning it", "generating its code"};

static void work_on(const growth_model *model, int nodes, work *out)
{
    pb_buffer bytes = model->build(nodes);
    ir_arena *arena = ir_arena_create(0);
    ir_graph *graph = NULL;
    assert_non_null(arena);
    out[JOB] = read_job(model, &bytes);
    out[IMPORT] = import(model, &bytes, arena, &graph);
    pl_plan *made;
    out[PLAN] = plan(graph, arena, &made);
    out[CODE] = generate(made, arena);
    ir_arena_destroy(arena);
    pb_free(&bytes);
}

static void work_grows_linearly_with_the_model(void **state)
{
    (void)state;
    bool grows_faster = false;
    for (int m = 0; m < growth_model_count; m++) {
        const growth_model *model = &growth_models[m];
        work small[STAGES], large[STAGES];
        work_on(model, SMALL, small);
        work_on(model, TIMES * SMALL, large);
        for (int s = 0; s < STAGES; s++) {
            double more = large[s].blocks / small[s].blocks;
            double more_bytes = small[s].bytes > 0 ? large[s].bytes / small[s].bytes : 0;
            double more_llvm = small[s].llvm > 0 ? large[s].llvm / small[s].llvm : 0;
            assert_compare(small[s].blocks, >, SMALL); /* checks that the counter works */
            print_message("%-9s %-20s %6.0f blocks a node, %.2f times; %6.0f bytes, %.2f times", model->name, stages[s],
                          small[s].blocks / SMALL, more, small[s].bytes / SMALL, more_bytes);
            if (s == CODE) print_message("; %4.0f of LLVM's, %.2f times", small[s].llvm / SMALL, more_llvm);
            print_message("\n");
            if (more <= most && more_bytes <= most && more_llvm <= most) continue;
            print_error("%s (%s): %d times the nodes, and %s takes %.1f times the work, %.1f times the memory and %.1f "
                        "times LLVM's work\n",
                        model->name, model->what, TIMES, stages[s], more, more_bytes, more_llvm);
            grows_faster = true;
        }
    }
    assert_false(grows_faster);
}

/* ---- Worst-case jobs --------------------------------------------------------------------------------------------- */

enum { COLLIDING = 500, SLOTS = 1 << 14 }; /* more slots than any table has for so many operators */

/* Different operators with the same low hash bits. */
static void make_colliding(mdot_job_operator *operators, size_t count)
{
    mdot_job_operator op = {.struct_size = sizeof op, .type = "Relu", .known = true, .traits.number = 7};
    for (size_t i = 0; i < count; i++) {
        do op.parameters++;
        while (rt_hash_operator(&op) % SLOTS != 0);
        operators[i] = op;
    }
}

static mdot_job *job_of(const mdot_job_operator *operators, size_t count)
{
    mdot_job *job = NULL;
    mdot_error err = {0};
    mdot_job_description description = MDOT_INIT(mdot_job_description);
    description.operators = operators;
    description.operator_count = count;
    description.batch = 1;
    if (mdot_job_create(&description, &job, &err) != MDOT_OK) fail_msg("%s", err.message);
    return job;
}

static double work_of_job(const mdot_job_operator *operators, size_t count)
{
    blocks = 0;
    mdot_job *job = job_of(operators, count);
    const double done = (double)blocks;
    mdot_job_destroy(job);
    return done;
}

static void hash_collisions_cost_no_extra_time(void **state)
{
    (void)state;
    static mdot_job_operator operators[TIMES * COLLIDING];
    make_colliding(operators, TIMES * COLLIDING);
    double more = work_of_job(operators, TIMES * COLLIDING) / work_of_job(operators, COLLIDING);
    print_message("%d times the operators, %.2f times the work\n", TIMES, more);
    assert_compare(more, <=, most);
}

/* ---- Predictions ------------------------------------------------------------------------------------------------- */

static rt_configuration configuration_of(mdot_configuration c)
{
    rt_configuration configuration;
    rt_gpu_names names = {0};
    mdot_error err = {0};
    c.struct_size = sizeof c;
    c.gpu = "A100";
    c.batch = 8;
    if (rt_configuration_read(&c, 0, &names, &configuration, &err) != MDOT_OK) fail_msg("%s", err.message);
    return configuration;
}

/* A scheduler round's queries to a predictor that reads at most the number of GPUs. */
/* Work of summing times over operators with different types, as in a hostile job. */
static double work_of_types(size_t count)
{
    cli_type_time *rows = calloc(count, sizeof *rows);
    char(*names)[8] = calloc(count, sizeof *names);
    assert_non_null(rows);
    assert_non_null(names);
    for (size_t i = 0; i < count; i++) {
        snprintf(names[i], sizeof names[i], "%zx", i * 2654435761u % 1048573);
        rows[i] = (cli_type_time){.type = names[i], .ms = {1}};
    }
    blocks = 0;
    assert_int_equal(cli_sum_by_type(rows, count), count);
    double sum_work = (double)blocks;
    free(names);
    free(rows);
    return sum_work;
}

static void report_of_many_types_takes_nearly_linear_time(void **state)
{
    (void)state;
    double small = work_of_types(20000), large = work_of_types(20000 * TIMES);
    if (large > 1.3 * TIMES * small) fail_msg("%.0f blocks for a quarter, %.0f for all", small, large);
}

static void analytic_correction_adds_up_equal_rooflines_once(void **state)
{
    (void)state;
    enum { OPERATORS = 500 };
    static const struct {
        mdot_configuration c;
        int rooflines; /* of both configurations at a typical batch, if their micro-steps differ */
    } cases[] = {
        {{.gpu_count = 1}, 0},
        {{.gpu_count = 8}, 0},
        {{.gpu_count = 8, .zero_stage = 2}, 0},
        {{.gpu_count = 16, .node_count = 2}, 0},
        {{.accumulate = 4}, 0},
        {{.compiled = 1}, 2}, /* the job has no operators that could be fused */
        {{.precision = MDOT_PRECISION_BF16}, 2},
    };
    const rt_configuration_set reads =
        RT_CONFIGURATION_BIT(RT_CONFIGURATION_BATCH) | RT_CONFIGURATION_BIT(RT_CONFIGURATION_IS_EAGER);
    static mdot_job_operator operators[OPERATORS];
    for (size_t i = 0; i < OPERATORS; i++) {
        operators[i] = (mdot_job_operator){.struct_size = sizeof operators[i], .type = "Relu", .known = true};
        operators[i].parameters = 1 + (double)i;
        operators[i].per_sample[MDOT_PHASE_FORWARD] = (mdot_load){1000 + (double)i, 4000, 4000};
    }
    mdot_job *job = job_of(operators, OPERATORS);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        rt_configuration configuration = configuration_of(cases[i].c), projected;
        rt_resolved_configuration requested, queried;
        rt_project_configuration(&configuration, job, reads, &projected);
        rt_resolve(job, &configuration, &requested);
        rt_resolve(job, &projected, &queried);
        blocks = 0;
        rt_roofline_of(job, &requested);
        const double one = (double)blocks;
        assert_compare(one, >, OPERATORS);
        blocks = 0;
        rt_correct(&requested, &queried, job, &(rt_step_parts){.host_ms = 100}, &(rt_typical_rooflines){0});
        print_message("configuration %zu: %.2f rooflines\n", i, (double)blocks / one);
        assert_int_equal((int)((double)blocks / one + 0.5), cases[i].rooflines);
    }
    mdot_job_destroy(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_grows_linearly_with_the_model),
        cmocka_unit_test(hash_collisions_cost_no_extra_time),
        cmocka_unit_test(report_of_many_types_takes_nearly_linear_time),
        cmocka_unit_test(analytic_correction_adds_up_equal_rooflines_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
