/* test_artefact.c — plans → cg_write_artefact → the runtime: a scheduler reads the compiler's data. The plans are made
 * by hand: y[i] = x[i] * factor, for two buckets, where the factor is a weight. */
#include "codegen/artefact.h"
#include "codegen/cpu/cpu_images.h"
#include "codegen/cuda/cuda_images.h"
#include "mdot/mdot.h"
#include "plan/kernel_kind.h"
#include "tests/support/artefact_fixture.h"
#include "tests/support/assertions.h"
#include "tests/support/cubin_fixture.h"
#include "tests/support/process.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { BUCKETS = 2 };
static const int64_t max_length[BUCKETS] = {8, 40};

/* One entry point's graph and plans. Tests may change the output's `name` and `dtype` before compilation. */
typedef struct model {
    ir_arena *arena;
    float factor;
    ir_tensor weight;
    ir_value x, y;
    ir_value *inputs[1], *outputs[1];
    ir_graph graph;
    pl_buffer buffers[BUCKETS][3];
    pl_kernel kernels[BUCKETS];
    pl_plan plans[BUCKETS];
    pl_plan *plan_list[BUCKETS];
    cg_entry entry;
} model;

static const ir_type vector_of_l = {.dtype = MDOT_DTYPE_F32, .rank = 1, .dim = {{.scale = 1}}};
static const ir_type scalar_f32 = {.dtype = MDOT_DTYPE_F32, .rank = 0};

static void make_plan(model *m, int bucket)
{
    ir_arena *arena = m->arena;
    pl_buffer *b = m->buffers[bucket];
    b[0] = (pl_buffer){.kind = PL_INPUT, .name = "x", .type = vector_of_l, .index = 0};
    b[1] = (pl_buffer){.kind = PL_OUTPUT, .name = "y", .type = vector_of_l, .index = 0};
    b[2] = (pl_buffer){.kind = PL_WEIGHT,
                       .name = "factor",
                       .type = scalar_f32,
                       .constant = &m->weight,
                       .use = PL_ELEMENTS,
                       .max_bytes = sizeof m->factor};
    const pl_expr *i = pl_index(arena, 0);
    const pl_expr *x = pl_load(arena, 0, MDOT_DTYPE_F32, i);
    const pl_expr *factor = pl_load(arena, 2, MDOT_DTYPE_F32, pl_const_i(arena, MDOT_DTYPE_I64, 0));
    m->kernels[bucket] = (pl_kernel){.kind = PL_NEST,
                                     .name = "nest.scale",
                                     .origin = "Mul",
                                     .flops = (double)max_length[bucket],
                                     .nest = {.loop_count = 1,
                                              .extent = {{.scale = 1}},
                                              .store_count = 1,
                                              .store = {{1, i, pl_binary(arena, PL_MUL, x, factor)}}}};
    m->plans[bucket] = (pl_plan){.arena = arena,
                                 .graph = &m->graph,
                                 .max_length = max_length[bucket],
                                 .buffer_count = 3,
                                 .buffers = b,
                                 .kernel_count = 1,
                                 .kernels = &m->kernels[bucket],
                                 .flops = (double)max_length[bucket]};
    m->plan_list[bucket] = &m->plans[bucket];
}

static void make_model(model *m, const char *entry_name, float factor)
{
    *m = (model){.arena = ir_arena_create(0), .factor = factor};
    m->weight = (ir_tensor){.dtype = MDOT_DTYPE_F32, .rank = 0, .count = 1, .data = &m->factor};
    m->x = (ir_value){.id = 0, .name = "x", .type = vector_of_l, .input = 0};
    m->y = (ir_value){.id = 1, .name = "y", .type = vector_of_l, .input = -1};
    m->inputs[0] = &m->x;
    m->outputs[0] = &m->y;
    m->graph = (ir_graph){.arena = m->arena,
                          .name = "hand-made",
                          .input_count = 1,
                          .output_count = 1,
                          .inputs = m->inputs,
                          .outputs = m->outputs,
                          .value_count = 2,
                          .symbol = "N",
                          .max_length = max_length[BUCKETS - 1]};
    for (int i = 0; i < BUCKETS; i++) make_plan(m, i);
    m->entry = (cg_entry){.name = entry_name, .graph = &m->graph, .plan_count = BUCKETS, .plans = m->plan_list};
}

static const cg_target both_levels[] = {{MDOT_IMAGE_CPU, MDOT_CPU_X86_64_V3, 0, CG_FP32},
                                        {MDOT_IMAGE_CPU, MDOT_CPU_X86_64_V4, 0, CG_FP32}};

static void write_artefact(model *models, int count, const char *path)
{
    cg_entry entries[2];
    for (int i = 0; i < count; i++) entries[i] = models[i].entry;
    cg_options options = {.predictor_name = "hand-made", .target_count = 2, .targets = both_levels};
    mdot_error err = {0};
    if (cg_write_artefact(entries, count, &options, path, models[0].arena, &err) != MDOT_OK)
        fail_msg("%s", err.message);
}

typedef struct place {
    char *folder;
    char path[512];
} place;

static place make_place(void)
{
    place p = {.folder = process_make_folder()};
    snprintf(p.path, sizeof p.path, "%s/predictor.mdot", p.folder);
    return p;
}

static mdot_predictor *open_or_skip(const char *path, const char *level)
{
    if (!fixture_machine_runs(MDOT_CPU_X86_64_V3)) skip();
    mdot_predictor *predictor = NULL;
    mdot_error err = {0};
    if (mdot_predictor_open(path, &(mdot_open_options){.struct_size = sizeof(mdot_open_options), .cpu_isa = level},
                            &predictor, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    return predictor;
}

static void check_results(const mdot_predictor *predictor, size_t entry, float factor)
{
    mdot_context *context = NULL;
    assert_int_equal(mdot_context_create(predictor, &context, NULL), MDOT_OK);
    for (int64_t length = 1; length <= max_length[BUCKETS - 1]; length++) {
        float x[41], y[41];
        for (int i = 0; i < 41; i++) {
            x[i] = (float)(i + 1);
            y[i] = -1;
        }
        mdot_input input = {"x", MDOT_DTYPE_F32, 1, &length, x};
        mdot_output output = {"y", y, sizeof y};
        assert_int_equal(mdot_run(context, entry, &input, 1, &output, 1, NULL), MDOT_OK);
        for (int i = 0; i < 41; i++) assert_compare(y[i], ==, i < length ? x[i] * factor : -1);
    }
    mdot_context_destroy(context);
}

static void written_artefact_runs_on_every_level_of_this_machine(void **state)
{
    (void)state;
    place p = make_place();
    model m;
    make_model(&m, "predict", 2.5f);
    write_artefact(&m, 1, p.path);
    static const char *const names[] = {"x86-64-v3", "x86-64-v4"};
    for (int i = 0; i < 2; i++) {
        if (!fixture_machine_runs((mdot_cpu_isa)both_levels[i].number)) continue;
        mdot_predictor *predictor = open_or_skip(p.path, names[i]);
        check_results(predictor, 0, 2.5f);
        mdot_predictor_close(predictor);
    }
    ir_arena_destroy(m.arena);
    process_remove_folder(p.folder);
}

static void entries_keep_their_own_weights(void **state)
{
    (void)state;
    place p = make_place();
    model m[2];
    make_model(&m[0], "encode", 3);
    make_model(&m[1], "evaluate", 5);
    write_artefact(m, 2, p.path);
    mdot_predictor *predictor = open_or_skip(p.path, NULL);
    size_t entry;
    assert_int_equal(mdot_predictor_find_entry(predictor, "evaluate", &entry), MDOT_OK);
    assert_int_equal(entry, 1);
    check_results(predictor, 0, 3);
    check_results(predictor, 1, 5);
    mdot_predictor_close(predictor);
    for (int i = 0; i < 2; i++) ir_arena_destroy(m[i].arena);
    process_remove_folder(p.folder);
}

static void table_describes_the_plans(void **state)
{
    (void)state;
    place p = make_place();
    model m;
    make_model(&m, "predict", 2);
    write_artefact(&m, 1, p.path);
    mdot_predictor *predictor = open_or_skip(p.path, NULL);
    mdot_predictor_info info = MDOT_INIT(mdot_predictor_info);
    mdot_predictor_get_info(predictor, &info);
    assert_string_equal(info.name, "hand-made");
    assert_string_equal(info.kernel_precision, "fp32");
    assert_non_null(strstr(info.compiler, "mdot " MDOT_VERSION_STRING ", LLVM "));
    assert_null(strstr(info.compiler, "NVRTC"));
    assert_int_equal(info.image_count, 2);
    for (size_t i = 0; i < info.image_count; i++) {
        mdot_image_info image = MDOT_INIT(mdot_image_info);
        assert_int_equal(mdot_predictor_get_image(predictor, i, &image), MDOT_OK);
        assert_string_equal(image.kind, "cpu");
        assert_string_equal(image.target, i == 0 ? "x86-64-v3" : "x86-64-v4");
        assert_string_equal(image.kernel_precision, "fp32");
        assert_compare(image.image_bytes, >, 0);
        assert_int_equal(image.weights_bytes, MDOT_ABI_ALIGNMENT); /* one number, shared by both images */
    }
    assert_compare(info.weights_bytes, >=, sizeof(float));
    mdot_tensor_info tensor = MDOT_INIT(mdot_tensor_info);
    assert_int_equal(mdot_predictor_get_output(predictor, 0, 0, &tensor), MDOT_OK);
    assert_string_equal(tensor.name, "y");
    assert_int_equal(tensor.dim[0].scale, 1);
    mdot_bucket_info bucket = MDOT_INIT(mdot_bucket_info);
    assert_int_equal(mdot_predictor_get_bucket(predictor, 0, 1, &bucket), MDOT_OK);
    assert_int_equal(bucket.max_length, max_length[1]);
    assert_compare(bucket.flops, ==, (double)max_length[1]);
    for (size_t b = 0; b < BUCKETS; b++) {
        mdot_kernel_info kernel = MDOT_INIT(mdot_kernel_info);
        assert_int_equal(mdot_predictor_get_kernel(predictor, 0, b, 0, &kernel), MDOT_OK);
        assert_string_equal(kernel.name, "nest.scale");
        assert_string_equal(kernel.kind, "nest");
        assert_compare(kernel.flops, ==, (double)max_length[b]);
    }
    mdot_predictor_close(predictor);
    ir_arena_destroy(m.arena);
    process_remove_folder(p.folder);
}

/* Whether both buckets point to one kernel list. */
static bool buckets_share_kernels(model *m)
{
    cg_options options = {.predictor_name = "hand-made", .target_count = 2, .targets = both_levels};
    cg_table table = {0};
    assert_int_equal(cg_build_table(&m->entry, 1, &options, (cg_image_set[CG_BACKENDS]){0}, &table, NULL), MDOT_OK);
    const unsigned char *bytes = table.pool.bytes;
    const mdot_abi_entry *entry = (const mdot_abi_entry *)(bytes + ((const mdot_abi_table *)bytes)->entries_at);
    const mdot_abi_bucket *buckets = (const mdot_abi_bucket *)(bytes + entry->buckets_at);
    bool are_shared = buckets[0].kernels_at == buckets[1].kernels_at;
    cg_pool_done(&table.pool);
    return are_shared;
}

static void buckets_of_the_same_kernels_share_one_list(void **state)
{
    (void)state;
    model m;
    make_model(&m, "predict", 2);
    assert_compare(m.kernels[0].flops, !=, m.kernels[1].flops);
    assert_true(buckets_share_kernels(&m));
    m.kernels[1].name = "nest.other";
    assert_false(buckets_share_kernels(&m));
    m.kernels[1].name = m.kernels[0].name;
    assert_true(buckets_share_kernels(&m));
    m.kernels[1].nest.loop_count = 2; /* enough points per row for a split */
    m.kernels[1].nest.extent[1] = ir_dim_affine(0, 64);
    assert_true(pl_is_split(&m.plans[1], &m.kernels[1]));
    assert_false(pl_is_split(&m.plans[0], &m.kernels[0]));
    assert_false(buckets_share_kernels(&m));
    ir_arena_destroy(m.arena);
}

/* ---- CUDA images ------------------------------------------------------------------------------------------------- */

enum { IMAGES = 3 };
static const cg_target image_target[IMAGES] = {
    {MDOT_IMAGE_CUDA, 75, 0, CG_FP16}, {MDOT_IMAGE_CUDA, 80, 0, CG_BF16}, {MDOT_IMAGE_CUDA, 90, 1, CG_BF16}};

/* Two programs, one per precision. Both programs' two kernels are the hand-made cubin's kernel. */
static void make_images(ir_arena *arena, cu_kernel kernels[BUCKETS], cu_images *out)
{
    *out = (cu_images){
        .nvrtc_major = 13, .nvrtc_minor = 2, .count = IMAGES, .image = IR_NEW_ARRAY(arena, cu_image, IMAGES)};
    for (int b = 0; b < BUCKETS; b++)
        kernels[b] = (cu_kernel){.name = "scale",
                                 .bucket = b,
                                 .threads = 128,
                                 .tile_rows = 16,
                                 .blocks_per_tile = 1,
                                 .grid_barriers = 3 + b,
                                 .dynamic_shared_bytes = 4096,
                                 .inline_input_bytes = 512,
                                 .scratch_bytes = 8192};
    size_t bytes;
    const unsigned char *cubin = cubin_by_hand(arena, &bytes);
    for (int i = 0; i < IMAGES; i++) {
        cu_image *image = &out->image[i];
        *image = (cu_image){.target = image_target[i], .weights_bytes = 4};
        out->program[0][image->target.kernel_precision] = (cu_program){.kernel_count = BUCKETS, .kernels = kernels};
        assert_int_equal(cu_cubin_read(cubin, bytes, NULL, arena, &image->cubin, NULL), MDOT_OK);
        image->image_offset = cg_pool_reserve(&out->cubins, bytes, MDOT_ABI_CUDA_ALIGNMENT);
        memcpy(out->cubins.bytes + image->image_offset, cubin, bytes);
        image->weights_offset =
            cg_pool_intern(&out->weights, &image->target.kernel_precision, 4, MDOT_ABI_CUDA_ALIGNMENT);
    }
}

static void write_with_images(model *m, cu_images *images, const char *path)
{
    cg_options options = {.predictor_name = "hand-made", .target_count = 2, .targets = both_levels};
    cg_table table = {0};
    cg_image_set made[CG_BACKENDS] = {0}, *cpu = &made[0], *cuda = &made[1];
    assert_int_equal(cg_cpu_backend.make_images(&m->entry, 1, &options, m->arena, cpu, NULL), MDOT_OK);
    assert_int_equal(cu_export_images(images, m->arena, cuda, NULL), MDOT_OK);
    assert_int_equal(cg_build_table(&m->entry, 1, &options, made, &table, NULL), MDOT_OK);
    const cg_data_section sections[] = {
        {MDOT_ABI_SECTION_TABLE, MDOT_ABI_SYMBOL_TABLE, table.pool.bytes, table.pool.size_bytes, MDOT_ABI_ALIGNMENT},
        cpu->section[0],
        cuda->section[0],
        cuda->section[1],
    };
    cg_parts parts = {.machine = cpu->machine,
                      .code = cpu->code,
                      .code_bytes = cpu->code_bytes,
                      .sections = sections,
                      .section_count = 4};
    mdot_error err;
    if (cg_link_artefact(&parts, path, m->arena, &err) != MDOT_OK) fail_msg("%s", err.message);
    cg_cpu_backend.done(cpu->images);
    cg_pool_done(&table.pool);
}

static void images_are_read_as_they_were_written(void **state)
{
    (void)state;
    place p = make_place();
    model m;
    make_model(&m, "predict", 2.5f);
    cu_kernel kernels[BUCKETS];
    cu_images images;
    make_images(m.arena, kernels, &images);
    write_with_images(&m, &images, p.path);
    mdot_predictor *predictor = NULL;
    mdot_error err;
    if (!fixture_machine_runs(MDOT_CPU_X86_64_V3)) skip();
    if (mdot_predictor_open(p.path, &(mdot_open_options){.struct_size = sizeof(mdot_open_options), .device = "cpu"},
                            &predictor, &err) != MDOT_OK)
        fail_msg("%s", err.message);
    mdot_predictor_info info = MDOT_INIT(mdot_predictor_info);
    mdot_predictor_get_info(predictor, &info);
    assert_non_null(strstr(info.compiler, ", NVRTC 13.2"));
    static const char *const targets[IMAGES] = {"sm_75", "sm_80", "sm_90a"};
    static const char *const computes[IMAGES] = {"fp16", "bf16", "bf16"};
    for (size_t i = 0; i < IMAGES; i++) {
        mdot_image_info image = MDOT_INIT(mdot_image_info);
        assert_int_equal(mdot_predictor_get_image(predictor, 2 + i, &image), MDOT_OK);
        assert_string_equal(image.target, targets[i]);
        assert_string_equal(image.kernel_precision, computes[i]);
        assert_int_equal(image.image_bytes, images.image[i].cubin.size_bytes);
        assert_int_equal(image.weights_bytes, 4);
        for (size_t b = 0; b < BUCKETS; b++) {
            mdot_image_kernel_info kernel = MDOT_INIT(mdot_image_kernel_info);
            assert_int_equal(mdot_predictor_get_image_kernel(predictor, 2 + i, 0, b, &kernel), MDOT_OK);
            assert_string_equal(kernel.name, "scale");
            assert_int_equal(kernel.threads, 128);
            assert_int_equal(kernel.grid_barriers, 3 + b);
            assert_int_equal(kernel.registers, 40);
            assert_int_equal(kernel.shared_bytes, 4096 + 768);
            assert_int_equal(kernel.local_bytes, 16);
            assert_int_equal(kernel.spill_bytes, 16);
            assert_int_equal(kernel.tensor_instructions, 3);
            assert_int_equal(kernel.barriers, 2);
            assert_int_equal(kernel.inline_input_bytes, 512);
            assert_int_equal(kernel.scratch_bytes, 8192);
            assert_int_equal(kernel.code_bytes, 80);
        }
    }
    check_results(predictor, 0, 2.5f);
    mdot_predictor_close(predictor);
    cg_pool_done(&images.cubins);
    cg_pool_done(&images.weights);
    ir_arena_destroy(m.arena);
    process_remove_folder(p.folder);
}

/* ---- The schema's hash ------------------------------------------------------------------------------------------- */

/* Reads the hash from the table. */
static uint64_t schema_hash(model *m)
{
    cg_options options = {.predictor_name = "hand-made", .target_count = 2, .targets = both_levels};
    cg_table table = {0};
    assert_int_equal(cg_build_table(&m->entry, 1, &options, (cg_image_set[CG_BACKENDS]){0}, &table, NULL), MDOT_OK);
    const mdot_abi_table *head = (const mdot_abi_table *)table.pool.bytes;
    uint64_t hash = ((const mdot_abi_entry *)(table.pool.bytes + head->entries_at))->schema_hash;
    cg_pool_done(&table.pool);
    return hash;
}

static void schema_hash_follows_names_types_and_shapes_only(void **state)
{
    (void)state;
    model m, other;
    make_model(&m, "predict", 2);
    make_model(&other, "some other entry", 7);
    uint64_t hash = schema_hash(&m);
    assert_int_equal(schema_hash(&other), hash);
    other.y.name = "z";
    assert_int_not_equal(schema_hash(&other), hash);
    other.y.name = "y";
    other.x.type.dtype = MDOT_DTYPE_I32;
    assert_int_not_equal(schema_hash(&other), hash);
    other.x.type.dtype = MDOT_DTYPE_F32;
    other.y.type.dim[0].offset = 1;
    assert_int_not_equal(schema_hash(&other), hash);
    other.y.type.dim[0].offset = 0;
    other.graph.input_count = 0; /* one output "y" differs from one input "y" */
    other.graph.outputs = other.inputs;
    uint64_t output_x = schema_hash(&other);
    other.graph.input_count = 1;
    other.graph.output_count = 0;
    assert_int_not_equal(schema_hash(&other), output_x);
    ir_arena_destroy(m.arena);
    ir_arena_destroy(other.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_artefact_runs_on_every_level_of_this_machine),
        cmocka_unit_test(entries_keep_their_own_weights),
        cmocka_unit_test(table_describes_the_plans),
        cmocka_unit_test(buckets_of_the_same_kernels_share_one_list),
        cmocka_unit_test(images_are_read_as_they_were_written),
        cmocka_unit_test(schema_hash_follows_names_types_and_shapes_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
