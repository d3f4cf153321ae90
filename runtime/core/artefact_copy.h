/* artefact_copy.h — a private copy of the file's bytes. */
#ifndef RT_ARTEFACT_COPY_H
#define RT_ARTEFACT_COPY_H

#include "mdot/mdot.h"

typedef struct rt_copy {
    int descriptor; /* memfd; -1: ordinary memory */
    unsigned char *bytes;
    size_t size_bytes;
} rt_copy;

/* Copies the file's bytes, or the first few if it is not an ELF file. rt_copy_free frees the copy; mappings made
 * from it remain. */
mdot_status rt_copy_make(int file, uint64_t size_bytes, rt_copy *out_copy, mdot_error *err);
void rt_copy_free(rt_copy *copy);
/* Maps whole pages of the copy from `offset` on over those at `at`. */
mdot_status rt_copy_map(const rt_copy *copy, uint64_t offset, size_t size_bytes, int protection, void *at,
                        mdot_error *err);
/* Frees the memory of such pages, which must not be read again. */
void rt_copy_forget(const rt_copy *copy, uint64_t offset, size_t size_bytes, void *at);

#endif
