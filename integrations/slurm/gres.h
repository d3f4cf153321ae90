/* gres.h — the GPUs in a request's text of resources: "gres:gpu:a100:4,gres:nic:1", which Slurm's --gres, --gpus and
 * their like become. Later versions write gres/gpu for gres:gpu, and = before the count. */
#ifndef SL_GRES_H
#define SL_GRES_H

#include <stdbool.h>
#include <stdint.h>

enum { SL_GRES_TYPE_BYTES = 64 };

typedef struct sl_gres {
    int64_t count;                 /* GPUs, of all types together; 0: none are asked for */
    char type[SL_GRES_TYPE_BYTES]; /* in small letters; empty where none is said */
    bool is_mixed;                 /* several types, or some with and some without */
} sl_gres;

/* NULL is a text without GPUs. What cannot be understood counts as none. */
sl_gres sl_gres_read(const char *text);

/* The text with `type` in each part that asks for GPUs of any type; the caller's to free. NULL without memory. */
char *sl_gres_with_type(const char *text, const char *type);

#endif
