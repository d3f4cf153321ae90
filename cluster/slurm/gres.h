/* gres.h — the GPUs in a request's text of resources: "gres:gpu:a100:4,gres:nic:1". Slurm produces such text from
 * --gres, --gpus and similar options. Later versions write gres/gpu for gres:gpu, and = before the count. */
#ifndef SL_GRES_H
#define SL_GRES_H

#include <stdbool.h>
#include <stdint.h>

enum { SL_GRES_TYPE_BYTES = 64 };

typedef struct sl_gres {
    int64_t count;                 /* GPUs of all types together; 0: none requested */
    char type[SL_GRES_TYPE_BYTES]; /* in lower case; empty if unspecified */
    bool is_mixed;                 /* several types, or a type for only some of the GPUs */
} sl_gres;

/* Parses a text; NULL means zero GPUs. Parts that are not understood count as zero. */
sl_gres sl_gres_read(const char *text);

/* Returns the text with `type` added to each part that asks for GPUs of any type. The caller frees it; NULL if memory
 * ran out. */
char *sl_gres_with_type(const char *text, const char *type);

#endif
