/* capture.h — what a function of this process prints. */
#pragma once

#include <stdio.h>

typedef struct capture {
    int kept[2];
    FILE *file[2];
    char out[16384], err[4096]; /* after capture_end; longer texts are cut */
} capture;

void capture_begin(capture *c);
void capture_end(capture *c);
