/* loader.h — the file as loaded code. */
#ifndef RT_LOADER_H
#define RT_LOADER_H

#include "runtime/core/artefact_copy.h"
#include "runtime/core/core.h"
#include "runtime/core/elf_sections.h"

#include <stdatomic.h>

typedef struct rt_library {
    rt_artefact artefact;
    atomic_uint references; /* see rt_artefact_keep */
    void *memory;
    size_t size_bytes;
} rt_library;

/* Maps the segments of `elf` and touches their pages except those that only a device reads. rt_artefact_release
 * frees the library. */
mdot_status rt_library_open(const rt_copy *copy, const rt_elf *elf, rt_library **out_library, mdot_error *err);
/* Frees the sections that only a device reads, unless another reference to the artefact exists. */
void rt_library_forget_device(rt_library *library, const rt_copy *copy, const rt_elf *elf);

#endif
