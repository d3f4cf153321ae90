/* artefact_fixture.h — a small artefact made by hand. The table is a C structure, independent of
 * codegen/table_builder.c. The code is fixture/code.c, which documents the results. cg_link_artefact links both. Tests
 * get the bytes, change them, seal them again if the checksum should be valid, and save them under a new name. */
#pragma once

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

/* Plain structures rather than offsets: the `*_at` fields are offsetof values within this structure. */
typedef struct fixture_table {
    mdot_abi_table head;
    mdot_abi_entry entry[2];
    mdot_abi_tensor predict_input[3], predict_output[2];
    float predict_default[2]; /* defaults for the first input's columns */
    mdot_abi_tensor double_input[1], double_output[1];
    mdot_abi_bucket predict_bucket[FIXTURE_BUCKETS], double_bucket[1];
    mdot_abi_kernel kernel[2]; /* shared by both buckets of predict */
    double kernel_flops[FIXTURE_BUCKETS][2];
    mdot_abi_image cpu_image[FIXTURE_LEVELS]; /* v3 and v4, with the same weights */
    mdot_abi_image image[FIXTURE_IMAGES]; /* follow the CPU images: sm_80, sm_90, sm_90a, contiguous in the section */
    mdot_abi_cpu_function function[FIXTURE_LEVELS][FIXTURE_IMAGE_KERNELS];
    mdot_abi_cuda_kernel image_kernel[FIXTURE_IMAGE_KERNELS]; /* shared by all CUDA images */
    mdot_abi_cuda_resources image_resources[FIXTURE_IMAGE_KERNELS];
    char text[512];
} fixture_table;

typedef struct fixture {
    char *folder;
    unsigned char *bytes; /* content of the file */
    size_t size_bytes;
    size_t table_at;
} fixture;

/* Both fail the running test if the linker fails. The second kind also has CUDA images. Image bytes and weight bytes
 * count from 0 in each image, so every driver would refuse them as cubins. */
void fixture_open(fixture *f);
void fixture_open_with_images(fixture *f);
void fixture_close(fixture *f);
/* One fixture for all tests in a program. cmocka_run_group_tests opens and closes it. The environment variables for
 * predictors are unset. */
extern fixture fixture_shared;
int fixture_setup(void **state);
int fixture_teardown(void **state);
/* The copy has separate bytes, which the test may change and must free. */
fixture fixture_copy(const fixture *f);

/* Finds a section in an ELF file of any kind. Returns false if the name is absent. */
bool fixture_find_section(const void *file, size_t file_bytes, const char *name, size_t *out_at,
                          size_t *out_size_bytes);

/* The table inside f->bytes. */
fixture_table *fixture_table_of(fixture *f);
/* Recomputes file_bytes and checksum after a change. */
void fixture_seal(fixture *f);
/* Writes the bytes to a new file in the folder. The returned name is malloc'ed. */
char *fixture_save(const fixture *f, const void *bytes, size_t size_bytes);

/* Whether this machine runs the level's code, according to compiler built-ins and independent of the runtime's
 * check. */
bool fixture_machine_runs(mdot_cpu_isa level);
/* Skips the running test if the machine is too old for the fixture's code. */
void fixture_skip_unless_v3(void);

/* Saves the bytes, opens the file and deletes it. Fails the running test if opening fails. */
mdot_predictor *fixture_predictor(const fixture *f);
