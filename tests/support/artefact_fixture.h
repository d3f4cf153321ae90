/* artefact_fixture.h — a small artefact made by hand: its table is written out as a C structure, independent of
 * codegen/table_builder.c, its code is fixture/code.c (which says what it computes), and cg_link_artefact puts them together.
 *
 * Tests get its bytes, change them, seal them again where the checksum should hold, and save them under a fresh name.
 */
#ifndef ARTEFACT_FIXTURE_H
#define ARTEFACT_FIXTURE_H

#include "codegen/artefact.h"
#include "mdot/mdot.h"

enum {
    FIXTURE_LEVELS = 2,
    FIXTURE_CODES = 6,
    FIXTURE_BUCKETS = 2,
    FIXTURE_MAX_LENGTH = 16,
    FIXTURE_SCRATCH_BYTES_A_STEP = 100,
    FIXTURE_IMAGES = 3,
    FIXTURE_IMAGE_KERNELS = FIXTURE_CODES / FIXTURE_LEVELS,
    FIXTURE_IMAGE_BYTES = 512
};

/* Plain structures instead of offsets: `*_at` fields are offsetof within this. */
typedef struct fixture_table {
    mdot_abi_table head;
    mdot_abi_entry entry[2];
    mdot_abi_tensor predict_input[3], predict_output[2];
    float predict_default[2]; /* of the first input's columns */
    mdot_abi_tensor double_input[1], double_output[1];
    mdot_abi_bucket predict_bucket[FIXTURE_BUCKETS], double_bucket[1];
    mdot_abi_kernel kernel[2]; /* of both of predict's buckets */
    double kernel_flops[FIXTURE_BUCKETS][2];
    mdot_abi_image cpu_image[FIXTURE_LEVELS]; /* v3, v4, with the same weights */
    mdot_abi_image image[FIXTURE_IMAGES]; /* behind them: sm_80, sm_90, sm_90a; one after the other in the section */
    mdot_abi_cpu_function function[FIXTURE_LEVELS][FIXTURE_IMAGE_KERNELS];
    mdot_abi_cuda_kernel image_kernel[FIXTURE_IMAGE_KERNELS]; /* the same ones of every image */
    mdot_abi_cuda_resources image_resources[FIXTURE_IMAGE_KERNELS];
    char text[512];
} fixture_table;

typedef struct fixture {
    char *folder;
    unsigned char *bytes; /* the file */
    size_t size_bytes;
    size_t table_at;
} fixture;

/* Both fail the running test when the linker does. The second kind also has CUDA images: bytes that count from 0 in
 * each image and in their weights, which no driver would take for a cubin. */
void fixture_open(fixture *f);
void fixture_open_with_images(fixture *f);
void fixture_close(fixture *f);
/* One for all tests of a program, as cmocka_run_group_tests opens and closes it. Without what the environment says of
 * predictors. */
extern fixture fixture_shared;
int fixture_setup(void **state);
int fixture_teardown(void **state);
/* With bytes of its own, which the test may change, and frees. */
fixture fixture_copy(const fixture *f);

/* Where a section lies in an ELF file of any kind; false when there is none of the name. */
bool fixture_find_section(const void *file, size_t file_bytes, const char *name, size_t *out_at,
                          size_t *out_size_bytes);

/* The table inside f->bytes. */
fixture_table *fixture_table_of(fixture *f);
/* Recomputes file_bytes and checksum after a change. */
void fixture_seal(fixture *f);
/* Writes the bytes to a fresh file in the folder; the name is malloc'ed. */
char *fixture_save(const fixture *f, const void *bytes, size_t size_bytes);

/* Whether this machine runs the level's code, by the compiler's own means, independent of the runtime's. */
bool fixture_machine_runs(mdot_cpu_isa level);
/* Skips the running test where the machine is too old for the fixture's code. */
void fixture_skip_unless_v3(void);

/* The bytes saved and opened; the file is gone again. Fails the running test when they do not open. */
mdot_predictor *fixture_predictor(const fixture *f);

#endif
