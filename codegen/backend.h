/* backend.h — a backend makes images with one kind. It is a table of data and functions: accepted values for --target
 * and --kernel-precision, and functions from plans to images. compiler/ and the artefact writer loop over cg_backends
 * and refer to none by name. */
#pragma once

#include "base/text.h"
#include "codegen/byte_pool.h"
#include "codegen/codegen.h"

typedef struct cg_data_section {
    const char *name, *symbol; /* the symbol is global and marks the section's start */
    const void *bytes;
    size_t size_bytes, alignment;
} cg_data_section;

/* Each section starts on a new page. Therefore processes share a section's pages, separately from pages read by a GPU
 * alone. */
enum { CG_PAGE_BYTES = 4096, CG_MAX_SECTIONS = 2 };

/* The images that a backend has made. Zero-initialised: empty. */
typedef struct cg_image_set {
    void *images; /* the backend's own, for describe and done */
    int image_count;
    const char *toolchain; /* name of the compiler, in the arena, for example "LLVM 19.1.7" */
    cg_data_section section[CG_MAX_SECTIONS];
    int section_count;
    const cg_machine *machine; /* CPU machine of `code`, an object file for the artefact */
    const void *code;
    size_t code_bytes;
} cg_image_set;

typedef struct cg_dump { /* text that the backend can dump */
    const char *name;
    bool needs_target; /* produced while making images, so it needs a target */
} cg_dump;

typedef struct cg_backend {
    const char
        *name; /* for example "cpu": the --target name of the default targets, and the --kernel-precision prefix */
    const char *example;  /* example of a target, for example "sm_90a" */
    mdot_image_kind kind; /* image kind */
    bool is_default;      /* every artefact has images of it: the default targets, if the caller names none */
    const cg_dump *dumps; /* terminated by an entry whose name is NULL */
    cg_compute computes[CG_COMPUTES]; /* values of --kernel-precision; the first is the default */
    int compute_count;

    /* Sets the targets of a name, ascending, for a requested precision `compute`. A target that lacks it takes its
     * nearest one. Returns NOT_FOUND if the name is unknown to this backend, and INVALID_ARGUMENT if no near
     * precision exists. */
    mdot_status (*parse)(const char *name, cg_compute kernel_precision, cg_target out_targets[MDOT_ABI_MAX_IMAGES],
                         int *out_count, mdot_error *err);
    /* Adds the names that `parse` accepts, except open-ended families. */
    void (*list)(bs_join *names);

    /* Makes images for the options' targets of this backend (cg_targets_of), in order. It makes fewer, with a warning,
     * in the cases that the backend's header lists. Call `done` in either case. */
    mdot_status (*make_images)(const cg_entry *entries, int entry_count, const cg_options *options, ir_arena *arena,
                               cg_image_set *out_set, mdot_error *err);
    /* Writes the images' records into the table, the first at `at`, and the fields that they need into the head. */
    void (*describe)(const void *images, const cg_entry *entries, int entry_count, cg_table *table, uint32_t at,
                     mdot_abi_table *head);
    void (*done)(void *images); /* accepts NULL */
} cg_backend;

/* ---- backends.c: the list of backends. compiler/ and the artefact writer loop over it and refer to none by name. */

enum { CG_BACKENDS = 2 };
extern const cg_backend *const cg_backends[CG_BACKENDS]; /* ascending by kind */
